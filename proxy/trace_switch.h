// SPDX-License-Identifier: Apache-2.0
// TraceSwitch: begins and ends the daemon's trace while calls come and go. Each
// call writes to the writer that there was when it came; what it still has to
// say once that is closed is dropped.
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
  // `instruments` hears of the first trace, and outlives this. `cache_dir` is
  // the disk tier's directory, where there is one: what that removes and
  // renames is no place for a trace.
  TraceSwitch(telemetry::Instruments* instruments,
              absl::optional<std::string> cache_dir)
      : instruments_(*instruments), cache_dir_(std::move(cache_dir)) {}
  // Precondition: no call is left.
  ~TraceSwitch();
  TraceSwitch(const TraceSwitch&) = delete;
  TraceSwitch& operator=(const TraceSwitch&) = delete;

  // What calls take their writer from. As long as this lives.
  serving::TraceShared* shared() { return &shared_; }

  // Has calls traced as `wanted` says from now on. `settings` are told to
  // whoever reads the trace. An error names the setting, and leaves the trace
  // that there was.
  absl::Status Change(const TraceSettings& wanted,
                      const std::vector<telemetry::ListedSetting>& settings);

  // Whether Change could begin such a trace, as far as can be told without
  // beginning it. From the thread that calls Change.
  absl::Status Check(const TraceSettings& wanted) const;

  // What is written now; without `dir`, nothing is.
  const TraceSettings& current() const { return current_; }

  // Of all traces since the start.
  insight::trace::TraceStats Stats() const;
  // Of the trace that ended last.
  insight::trace::TraceStats LastStats() const;

 private:
  using Writer = insight::trace::TraceWriter;
  // Whether `dir` is none of the disk tier's.
  absl::Status CheckPlace(const std::string& dir) const;
  absl::Status Begin(const TraceSettings& wanted,
                     const std::vector<telemetry::ListedSetting>& settings);
  // Closes the writer, if there is one, and counts what it did.
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
