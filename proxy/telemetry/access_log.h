// SPDX-License-Identifier: Apache-2.0
// AccessLog: a line for a RunFunction call, on stderr or in a file of its own.
//
//   time level msg, function, whose composite it was, outcome, reason and
//   detail of a miss, key, latency, the function's latency, status
//
// Never a body, nor a value of the request beyond the composite's identity.
// docs/watching.md has the fields.
//
// It blocks nothing: Write copies what a line is made of into a queue that is
// bounded in bytes, and returns; a thread of the log's own makes the lines and
// writes them. What does not fit the queue, and what a full disk, a pipe that
// nobody reads or a file that has gone does not take, is dropped and counted.
// One line of the daemon's log says when that begins, and then one a minute;
// where both go to stderr, among the lines of this one, once it takes them.
// Lines of calls that ended at the same time may change places.
//
// Thread-safe. Those who write are gone before it goes; the destructor writes
// what waits, for a second at most.
#ifndef FNCACHE_PROXY_TELEMETRY_ACCESS_LOG_H_
#define FNCACHE_PROXY_TELEMETRY_ACCESS_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cache/key/key.h"
#include "common/log_limiter.h"
#include "common/mutex.h"
#include "insight/trace/traced_call.h"
#include "proxy/telemetry/access_log_options.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/telemetry/labels.h"

namespace fncache::proxy::telemetry {

// What a line tells. The texts are looked at in Write only; of each no more
// than kMostText bytes are written.
struct AccessRecord {
  static constexpr size_t kMostText = 512;

  absl::Time ended;
  absl::string_view function;
  // The composite's; empty where not known.
  absl::string_view api_version;
  absl::string_view kind;
  absl::string_view object_namespace;
  absl::string_view name;
  Outcome outcome = Outcome::kBypass;
  // Of a miss.
  insight::trace::Reason reason = insight::trace::Reason::kNone;
  absl::string_view detail;
  // All zero: it has none.
  cache::key::Key key;
  absl::Duration latency;
  // Zero: the function did not answer this call.
  absl::Duration upstream_latency;
  int code = 0;
};

class AccessLog {
 public:
  // So much may wait to be written.
  static constexpr size_t kQueueBytes = 4 << 20;

  // Writes nothing until it is configured. What the counters are of outlives
  // it.
  explicit AccessLog(const Instruments::AccessLogCounters& counters)
      : counters_(counters) {}
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  // From now on these options hold, at any time and as often as wanted. Where
  // the file cannot be opened it says so, naming it, and the former ones stay.
  absl::Status Configure(const AccessLogOptions& options);

  // The file was moved away: what comes from now on goes to a new one of its
  // name. Where that cannot be opened, one line of the log says so, and the old
  // one stays. Without a file it says so.
  void Reopen();

  // Whether any call may have a line: ask before reading for it.
  bool on() const {
    return calls_.load(std::memory_order_relaxed) != LoggedCalls::kNone;
  }
  // Whether this call has one. Ask once, because it may be drawn.
  bool Wants(const CallRecord& call) const { return on() && Chooses(call); }
  void Write(const AccessRecord& record);

 private:
  class Output;
  bool Chooses(const CallRecord& call) const;
  void Run();
  // Writes a batch of records. False: some were dropped.
  bool WriteBatch(absl::string_view records, LogFormat format, Output* output);
  // Writes whole lines. False: some were dropped.
  bool WriteLines(absl::string_view lines, Output* output);
  // Returns how many bytes of it were written.
  size_t WriteSome(absl::string_view text, Output* output);
  // Waits until the output takes something. False: it is not worth waiting for
  // any more.
  bool AwaitRoom(Output* output);
  // So many lines are not written, because the output does not take them.
  void Lose(uint64_t lines, const Output& output);
  // Says in the daemon's log that lines were dropped of which nothing else
  // tells, unless that has just been said.
  void TellOverflow(Output* output);
  void ReopenNow(const std::shared_ptr<Output>& output);

  std::atomic<LoggedCalls> calls_{LoggedCalls::kNone};
  std::atomic<int64_t> slow_ns_{0};
  std::atomic<double> sample_{1};
  const Instruments::AccessLogCounters counters_;

  Mutex mutex_;
  CondVar changed_;
  std::string queue_ ABSL_GUARDED_BY(mutex_);  // records, one after another
  // Lines that the queue did not take, or stderr, since that was last told.
  uint64_t overflowed_ ABSL_GUARDED_BY(mutex_) = 0;
  LogLimiter overflows_told_{absl::Minutes(1)};
  bool idle_ ABSL_GUARDED_BY(mutex_) = false;  // the writer waits for a record
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool reopen_ ABSL_GUARDED_BY(mutex_) = false;
  LogFormat format_ ABSL_GUARDED_BY(mutex_) = LogFormat::kText;
  std::shared_ptr<Output> output_ ABSL_GUARDED_BY(mutex_);
  absl::Time patience_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  std::thread writer_ ABSL_GUARDED_BY(mutex_);  // from the first line on
};

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_ACCESS_LOG_H_
