// SPDX-License-Identifier: Apache-2.0
// LiveSettings: puts settings in force while the daemon runs, in all objects
// that keep them. An order of an administrator can override the log level or
// the trace.
//
// An order overrides the settings until its time is over. An order without an
// end does so until a reload changes the same settings.
//
// A call has the settings that were in force when its request was complete.
// Settings that are fixed at the start of the process do not change: see
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
#include "proxy/limits/budget.h"
#include "proxy/serving/handler.h"
#include "proxy/settings/options.h"
#include "proxy/telemetry/access_log.h"
#include "proxy/telemetry/settings_list.h"
#include "proxy/trace_switch.h"
#include "proxy/transport/listener.h"
#include "proxy/transport/upstream.h"

namespace fncache::proxy {

// An order for a trace; absent fields are as in the settings.
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

// The options that listeners keep.
transport::ListenerLimits ListenerLimitsOf(
    const settings::DaemonOptions& options);
// The options of functions that the stores keep.
std::vector<cache::store::StoredFunction> StoredFunctionsOf(
    const settings::DaemonOptions& options);

class LiveSettings {
 public:
  struct Function {
    serving::FunctionHandler* handler;
    transport::Listener* listener;
    transport::Upstream* upstream;
  };
  // The objects that keep settings. They outlive this object.
  struct Receivers {
    std::vector<Function> functions;  // in the order of the options
    cache::store::TieredStore* store;
    limits::Budget* inflight;
    TraceSwitch* trace;
    telemetry::AccessLog* access_log;
    Clock* clock;
  };

  // `options` are in force already. `alarms` is stopped before this object is
  // destroyed.
  LiveSettings(Receivers receivers, settings::DaemonOptions options,
               std::vector<telemetry::ListedSetting> list, Alarms* alarms)
      : receivers_(std::move(receivers)),
        alarms_(*alarms),
        options_(std::move(options)),
        list_(std::move(list)) {}

  // Puts all of `options` in force, or returns an error and changes nothing.
  // The functions are the same as before; `changed` says which of them have
  // changed settings.
  absl::Status Apply(const settings::DaemonOptions& options,
                     const std::vector<bool>& changed,
                     const std::vector<telemetry::ListedSetting>& list);

  // A text for people: the settings that begin with `key` ("log.level",
  // "trace.") and that an order overrides now. Empty: there are none.
  std::string HiddenBy(absl::string_view key) const;

  // Sets the log level for `during` (infinite: until the next call or until
  // log.level changes). After that the setting applies. Returns the level
  // before.
  LogLevel SetLogLevel(LogLevel level, absl::Duration during);
  // Traces with `order` instead of the settings for `during`. After that the
  // settings apply. InvalidArgument or Unavailable says why it cannot. Returns
  // the settings of the trace.
  absl::StatusOr<TraceSettings> StartTrace(const TraceOrder& order,
                                           absl::Duration during);
  // Ends the trace for `during`. Returns the statistics of the trace that it
  // ended.
  EndedTrace StopTrace(absl::Duration during);

 private:
  // An order with a number, so that a late alarm does not end the next order.
  template <typename Value>
  struct Order {
    uint64_t number;
    absl::Time until;  // infinite: until a reload changes it
    Value value;
  };

  absl::Time Until(absl::Duration during) const {
    return receivers_.clock->Now() + during;
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

  const Receivers receivers_;
  Alarms& alarms_;

  mutable Mutex mutex_;
  settings::DaemonOptions options_ ABSL_GUARDED_BY(mutex_);
  std::vector<telemetry::ListedSetting> list_ ABSL_GUARDED_BY(mutex_);
  // Orders that override the settings.
  uint64_t orders_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::optional<Order<LogLevel>> log_level_ ABSL_GUARDED_BY(mutex_);
  absl::optional<Order<TraceSettings>> trace_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_LIVE_SETTINGS_H_
