// SPDX-License-Identifier: Apache-2.0
// LiveSettings: puts settings in force while the daemon runs, in all the places
// that keep them, and lets the log's level and the trace differ from the
// settings for a while.
//
// A call lives under the settings that there were when its request was there.
// What is fixed when the process starts is not touched: see
// Setting::reloads.
//
// Thread-safe.
#ifndef FNCACHE_PROXY_LIVE_SETTINGS_H_
#define FNCACHE_PROXY_LIVE_SETTINGS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/store/tiered_store.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/settings_list.h"
#include "proxy/alarms.h"
#include "proxy/serving/handler.h"
#include "proxy/settings/options.h"
#include "proxy/telemetry/access_log.h"
#include "proxy/trace_switch.h"
#include "proxy/transport/inflight.h"
#include "proxy/transport/listener.h"
#include "proxy/transport/upstream.h"

namespace fncache::proxy {

// A trace for a while; what is absent is as the settings have it.
struct TraceOrder {
  absl::optional<std::string> dir;
  absl::optional<insight::trace::Level> level;
  absl::optional<double> sample;
};

// What of the options listeners keep.
transport::ListenerLimits ListenerLimitsOf(
    const settings::DaemonOptions& options);
// What the stores know of the functions.
std::vector<cache::store::StoredFunction> StoredFunctionsOf(
    const settings::DaemonOptions& options);

class LiveSettings {
 public:
  struct Function {
    serving::FunctionHandler* handler;
    transport::Listener* listener;
    transport::Upstream* upstream;
  };
  // What keeps settings. It all outlives this.
  struct Places {
    std::vector<Function> functions;  // in the order of the options
    cache::store::TieredStore* store;
    transport::Inflight* inflight;
    TraceSwitch* trace;
    telemetry::AccessLog* access_log;
    Clock* clock;
  };

  // `options` are in force already. `alarms` is stopped before this goes.
  LiveSettings(Places places, settings::DaemonOptions options,
               std::vector<ListedSetting> list, Alarms* alarms)
      : places_(std::move(places)),
        alarms_(*alarms),
        options_(std::move(options)),
        list_(std::move(list)) {}

  // All of `options` from now on, or an error and nothing of it. The same
  // functions as before, of which `changed` says whether theirs differ.
  absl::Status Apply(const settings::DaemonOptions& options,
                     const std::vector<bool>& changed,
                     const std::vector<ListedSetting>& list);

  // Logs from another level up, for that long (infinite: until this is called
  // again), then from the setting's again. Returns the level of before.
  LogLevel SetLogLevel(LogLevel level, absl::Duration during);
  // Traces as `order` says in place of the settings, or not at all, for that
  // long, then as the settings say again. InvalidArgument or Unavailable says
  // why not. Returns what is written now.
  absl::StatusOr<TraceSettings> StartTrace(const TraceOrder& order,
                                           absl::Duration during);
  // Returns where to it was written; empty if it was not.
  std::string StopTrace(absl::Duration during);

 private:
  void EndLogLevel();
  void EndTrace();
  LogLevel Level() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return log_level_.value_or(options_.log_level);
  }

  const Places places_;
  Alarms& alarms_;

  Mutex mutex_;
  settings::DaemonOptions options_ ABSL_GUARDED_BY(mutex_);
  std::vector<ListedSetting> list_ ABSL_GUARDED_BY(mutex_);
  // In place of the settings, for a while.
  absl::optional<LogLevel> log_level_ ABSL_GUARDED_BY(mutex_);
  absl::optional<TraceSettings> trace_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_LIVE_SETTINGS_H_
