// SPDX-License-Identifier: Apache-2.0
// AccessLog: a line for a RunFunction call, on stderr or in a file of its own.
//
//   time level msg, function, composite, outcome, reason and detail of a miss,
//   key, latency, the function's latency, status
//
// It never has a body, nor a value of the request except the composite's
// identity. docs/watching.md has the fields.
//
// It blocks no call: Write copies a record into a queue that is bounded in
// bytes, and returns. The log's own thread makes the lines and writes them. A
// line is dropped and counted if the queue is full, or if the output does not
// take it: a full disk, a pipe without a reader, or a removed file. One line of
// the daemon's log says when that begins, and then one a minute. If both logs
// go to stderr, that line comes among the lines of this log, once stderr takes
// them. Lines of calls that ended at the same time may come in another order.
//
// Thread-safe. No call writes when it is destroyed. The destructor writes the
// waiting lines for at most a second.
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

// The facts of a line. Only Write reads the texts. At most kMostText bytes of
// each are written.
struct AccessRecord {
  static constexpr size_t kMostText = 512;

  absl::Time ended;
  absl::string_view function;
  // The composite's; empty if unknown.
  absl::string_view api_version;
  absl::string_view kind;
  absl::string_view object_namespace;
  absl::string_view name;
  Outcome outcome = Outcome::kBypass;
  // The reason and the detail of a miss.
  insight::trace::Reason reason = insight::trace::Reason::kNone;
  absl::string_view detail;
  // All zero: the call has none.
  cache::key::Key key;
  absl::Duration latency;
  // Zero: the function did not answer this call.
  absl::Duration upstream_latency;
  int code = 0;
};

class AccessLog {
 public:
  // The limit of bytes in the queue. Beyond it lines are dropped.
  static constexpr size_t kQueueBytes = 4 << 20;

  // Writes nothing until it is configured. The registry of the counters
  // outlives it.
  explicit AccessLog(const Instruments::AccessLogCounters& counters)
      : counters_(counters) {}
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  // Sets the options; at any time and any number of times. If the file cannot
  // be opened, returns an error that names it, and the old options stay.
  absl::Status Configure(const AccessLogOptions& options);

  // The file was moved away: later lines go to a new file with its name. If
  // that cannot be opened, one line of the log says so, and the old file stays.
  // Without a file a line says so.
  void Reopen();

  // Whether a call may have a line. Check it before you read data for a line.
  bool on() const {
    return calls_.load(std::memory_order_relaxed) != LoggedCalls::kNone;
  }
  // Whether this call has a line. Call it once, because it may be random.
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
  // Returns how many bytes of `text` were written.
  size_t WriteSome(absl::string_view text, Output* output);
  // Waits until the output takes bytes. False: the output was replaced, or the
  // log ends.
  bool AwaitOutput(Output* output);
  // Counts `lines` lines that the output does not take.
  void Lose(uint64_t lines, const Output& output);
  // Logs in the daemon's log that lines were dropped, if no other line has said
  // so, at most once a minute.
  void TellOverflow(Output* output);
  void ReopenNow(const std::shared_ptr<Output>& output);

  std::atomic<LoggedCalls> calls_{LoggedCalls::kNone};
  std::atomic<int64_t> slow_ns_{0};
  std::atomic<double> sample_{1};
  const Instruments::AccessLogCounters counters_;

  Mutex mutex_;
  CondVar changed_;
  std::string queue_ ABSL_GUARDED_BY(mutex_);  // records, one after another
  // Lines that the queue or stderr did not take, since the last log line about
  // that.
  uint64_t overflowed_ ABSL_GUARDED_BY(mutex_) = 0;
  LogLimiter overflow_log_limit_{absl::Minutes(1)};
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
