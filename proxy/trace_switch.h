// SPDX-License-Identifier: Apache-2.0
// TraceSwitch: begins and ends the daemon's trace while calls run. Each call
// uses the writer that existed when it arrived. Its records after the end of
// that writer are dropped.
//
// Thread-safety: Change, Check and current from one thread at a time, the rest
// from any.
#ifndef FNCACHE_PROXY_TRACE_SWITCH_H_
#define FNCACHE_PROXY_TRACE_SWITCH_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "common/mutex.h"
#include "insight/trace/writer.h"
#include "proxy/serving/context.h"
#include "proxy/settings/options.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/telemetry/settings_list.h"

namespace fncache::proxy {

// The settings trace.*.
struct TraceSettings {
  std::string dir;  // empty = no trace
  insight::trace::Level level = insight::trace::Level::kPaths;
  uint64_t file_size = 64ull << 20;
  int files = 8;
  double sample = 1;

  bool operator==(const TraceSettings& other) const;
};
TraceSettings TraceSettingsOf(const settings::DaemonOptions& options);

class TraceSwitch {
 public:
  // `instruments` gets the source of trace metrics with the first trace, and
  // outlives this object. `cache_dir` is the disk tier's directory, if there is
  // one. No trace is written to directories that this tier removes or renames.
  TraceSwitch(telemetry::Instruments* instruments,
              absl::optional<std::string> cache_dir)
      : instruments_(*instruments), cache_dir_(std::move(cache_dir)) {}
  // Precondition: no call is left.
  ~TraceSwitch();
  TraceSwitch(const TraceSwitch&) = delete;
  TraceSwitch& operator=(const TraceSwitch&) = delete;

  // The source of calls' writers. It lives as long as this object.
  serving::TraceShared* shared() { return &shared_; }

  // From now on calls are traced as `wanted` says. `settings` are written to
  // the trace for its reader. An error names the setting, and the old trace
  // continues.
  absl::Status Change(const TraceSettings& wanted,
                      const std::vector<telemetry::ListedSetting>& settings);

  // Whether Change could begin this trace, as far as a check without a start
  // shows. Call it on the thread that calls Change.
  absl::Status Check(const TraceSettings& wanted) const;

  // The settings of the trace in progress; an empty `dir`: there is none.
  const TraceSettings& current() const { return current_; }

  // The statistics of all traces since the start.
  insight::trace::TraceStats Stats() const;
  // The statistics of the trace that ended last.
  insight::trace::TraceStats LastStats() const;

 private:
  using Writer = insight::trace::TraceWriter;
  // OK if `dir` is no directory of the disk tier.
  absl::Status CheckDirectory(const std::string& dir) const;
  absl::Status Begin(const TraceSettings& wanted,
                     const std::vector<telemetry::ListedSetting>& settings);
  // Closes the writer, if there is one, and adds its statistics to the sums.
  void End(const std::shared_ptr<Writer>& writer);

  telemetry::Instruments& instruments_;
  const absl::optional<std::string> cache_dir_;
  bool watched_ = false;
  TraceSettings current_;
  serving::TraceShared shared_;

  mutable Mutex mutex_;
  insight::trace::TraceStats ended_ ABSL_GUARDED_BY(mutex_);
  insight::trace::TraceStats last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_TRACE_SWITCH_H_
