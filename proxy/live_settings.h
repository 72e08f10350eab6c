// SPDX-License-Identifier: Apache-2.0
// LiveSettings: puts settings in force while the daemon runs, in all the places
// that keep them, and lets the log's level and the trace differ from the
// settings for a while.
//
// Such an order of an administrator's goes before the settings until its time
// is over; one without an end, until a reload changes what it is about.
//
// A call lives under the settings that there were when its request was there.
// What is fixed when the process starts is not touched: see
// Setting::reloads.
//
// Thread-safe.
#ifndef FNCACHE_PROXY_LIVE_SETTINGS_H_
#define FNCACHE_PROXY_LIVE_SETTINGS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/store/tiered_store.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "insight/trace/writer.h"
#include "proxy/alarms.h"
#include "proxy/serving/handler.h"
#include "proxy/settings/options.h"
#include "proxy/telemetry/access_log.h"
#include "proxy/telemetry/settings_list.h"
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

// A trace that was ended.
struct EndedTrace {
  std::string dir;  // empty: there was none
  insight::trace::TraceStats stats;
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
               std::vector<telemetry::ListedSetting> list, Alarms* alarms)
      : places_(std::move(places)),
        alarms_(*alarms),
        options_(std::move(options)),
        list_(std::move(list)) {}

  // All of `options` from now on, or an error and nothing of it. The same
  // functions as before, of which `changed` says whether theirs differ.
  absl::Status Apply(const settings::DaemonOptions& options,
                     const std::vector<bool>& changed,
                     const std::vector<telemetry::ListedSetting>& list);

  // Which of the settings that begin with `key` ("log.level", "trace.") are not
  // what is in force now, because an order goes before them; empty: all are.
  // For people.
  std::string HiddenBy(absl::string_view key) const;

  // Logs from another level up, for that long (infinite: until this is called
  // again or log.level changes), then from the setting's again. Returns the
  // level of before.
  LogLevel SetLogLevel(LogLevel level, absl::Duration during);
  // Traces as `order` says in place of the settings, or not at all, for that
  // long, then as the settings say again. InvalidArgument or Unavailable says
  // why not. Returns what is written now.
  absl::StatusOr<TraceSettings> StartTrace(const TraceOrder& order,
                                           absl::Duration during);
  // Traces no more, for that long. Returns what was written by the trace that
  // this ended.
  EndedTrace StopTrace(absl::Duration during);

 private:
  // An order, numbered, so that an alarm which was late does not end the next.
  template <typename Value>
  struct Order {
    uint64_t number;
    absl::Time until;  // infinite: until a reload changes it
    Value value;
  };

  absl::Time Until(absl::Duration during) const {
    return places_.clock->Now() + during;
  }
  void EndLogLevel(uint64_t number);
  void EndTrace(uint64_t number);
  void OrderTrace(TraceSettings wanted, absl::Duration during)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string LogHidden() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string TraceHidden() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LogLevel Level() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return log_level_.has_value() ? log_level_->value : options_.log_level;
  }

  const Places places_;
  Alarms& alarms_;

  mutable Mutex mutex_;
  settings::DaemonOptions options_ ABSL_GUARDED_BY(mutex_);
  std::vector<telemetry::ListedSetting> list_ ABSL_GUARDED_BY(mutex_);
  // In place of the settings, for a while.
  uint64_t orders_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::optional<Order<LogLevel>> log_level_ ABSL_GUARDED_BY(mutex_);
  absl::optional<Order<TraceSettings>> trace_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_LIVE_SETTINGS_H_
