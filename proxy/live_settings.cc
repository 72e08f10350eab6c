// SPDX-License-Identifier: Apache-2.0
#include "proxy/live_settings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cache/policy.h"
#include "cache/store/store.h"
#include "common/log_level.h"

namespace fncache::proxy {
namespace {

constexpr char kLogAlarm[] = "log level";
constexpr char kTraceAlarm[] = "trace";

absl::Duration OrNever(absl::Duration duration) {
  return duration == absl::ZeroDuration() ? absl::InfiniteDuration() : duration;
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone());
}

// A reload keeps the number of shards of the memory tier. So the largest entry
// may be smaller than after a start with the same limit.
void WarnOfLargeEntries(const settings::DaemonOptions& options,
                        const cache::store::StoreStats& memory) {
  uint64_t largest = 0;
  for (const settings::FunctionOptions& function : options.functions) {
    largest = std::max(largest, function.policy.max_entry_bytes);
  }
  largest = std::min(largest, options.cache_memory / 4);
  if (memory.largest >= largest) return;
  Log(LogLevel::kWarning,
      "larger answers than this are not stored before a restart, which divides "
      "cache.memory",
      {{"bytes", memory.largest}, {"max_entry_bytes", largest}});
}

}  // namespace

transport::ListenerLimits ListenerLimitsOf(
    const settings::DaemonOptions& options) {
  transport::ListenerLimits limits;
  limits.max_request_bytes = options.max_request_bytes;
  limits.max_streams = static_cast<uint32_t>(options.max_streams);
  limits.max_metadata_bytes = static_cast<uint32_t>(options.max_metadata_bytes);
  limits.max_connections = static_cast<size_t>(options.max_connections);
  limits.idle_timeout = OrNever(options.idle_timeout);
  limits.max_connection_age = OrNever(options.max_connection_age);
  return limits;
}

std::vector<cache::store::StoredFunction> StoredFunctionsOf(
    const settings::DaemonOptions& options) {
  std::vector<cache::store::StoredFunction> functions;
  for (const settings::FunctionOptions& function : options.functions) {
    functions.push_back(
        {function.name, function.generation,
         function.policy.store_secrets == cache::StoreSecrets::kAll});
  }
  return functions;
}

absl::Status LiveSettings::Apply(
    const settings::DaemonOptions& options, const std::vector<bool>& changed,
    const std::vector<telemetry::ListedSetting>& list) {
  MutexLock lock(&mutex_);
  const TraceSettings trace = TraceSettingsOf(options);
  const TraceSettings old_trace = receivers_.trace->current();
  const bool new_trace = !(trace == TraceSettingsOf(options_));
  const bool ends_trace = trace_.has_value() && new_trace &&
                          trace_->until == absl::InfiniteFuture();
  // The steps that can fail come first.
  if (!trace_.has_value() || ends_trace) {
    absl::Status traced = receivers_.trace->Change(trace, list);
    if (!traced.ok()) return traced;
  } else if (new_trace) {
    // It begins when the order is over.
    absl::Status traceable = receivers_.trace->Check(trace);
    if (!traceable.ok()) return traceable;
  }
  absl::Status logged = receivers_.access_log->Configure(options.access_log);
  cache::store::TieredChange tiers;
  tiers.memory_bytes = options.cache_memory;
  tiers.disk_bytes = options.cache_disk;
  tiers.shared_timeout = options.shared.timeout;
  tiers.shared_max_entry_bytes = options.shared.max_entry_bytes;
  tiers.functions = StoredFunctionsOf(options);
  absl::Status stored =
      receivers_.store->Change(tiers, receivers_.clock->Now());
  if (stored.ok() && !logged.ok()) {
    stored = absl::Status(logged.code(),
                          absl::StrCat("log.access_file: ", logged.message()));
  }
  if (!stored.ok()) {
    receivers_.access_log->Configure(options_.access_log).IgnoreError();
    receivers_.trace->Change(old_trace, list_).IgnoreError();
    return stored;
  }
  WarnOfLargeEntries(options, receivers_.store->Stats());
  receivers_.inflight->SetBound(options.inflight_bytes);
  for (size_t i = 0; i < receivers_.functions.size(); ++i) {
    const Function& function = receivers_.functions[i];
    function.listener->SetLimits(ListenerLimitsOf(options));
    function.upstream->SetLimits(
        options.max_response_bytes,
        static_cast<uint32_t>(options.max_metadata_bytes));
    if (!changed[i]) continue;
    function.handler->Replace(options.functions[i]);
    // Calls that fill from now on check the new settings first.
    if (options.functions[i].policy.store_secrets ==
        cache::StoreSecrets::kNone) {
      receivers_.store->EraseSecrets(static_cast<cache::FunctionId>(i));
    }
  }
  const bool new_level = options.log_level != options_.log_level;
  const bool new_format = options.log_format != options_.log_format;
  options_ = options;
  list_ = list;
  const bool ends_level = log_level_.has_value() && new_level &&
                          log_level_->until == absl::InfiniteFuture();
  if (ends_level) log_level_.reset();
  if (new_level || new_format) InitLogging(Level(), options_.log_format);
  if (ends_level) {
    Log(LogLevel::kInfo, "log level follows the settings",
        {{"level", LogLevelName(Level())}});
  } else if (new_level && log_level_.has_value()) {
    Log(LogLevel::kWarning, LogHidden());
  }
  if (ends_trace) {
    trace_.reset();
    Log(LogLevel::kInfo, "the trace follows the settings",
        {{"dir", options_.trace_dir}});
  } else if (new_trace && trace_.has_value()) {
    Log(LogLevel::kWarning, TraceHidden());
  }
  return absl::OkStatus();
}

std::string LiveSettings::LogHidden() const {
  return absl::StrCat("log.level: fncache admin log has it at ",
                      LogLevelName(log_level_->value), " until ",
                      TimeText(log_level_->until),
                      "; then it will be what the settings say");
}

std::string LiveSettings::TraceHidden() const {
  const std::string& dir = trace_->value.dir;
  return absl::StrCat("trace.*: fncache admin trace ",
                      dir.empty() ? "stop has ended it" : "start has it in ",
                      dir, " until ", TimeText(trace_->until),
                      "; then it will be what the settings say");
}

std::string LiveSettings::HiddenBy(absl::string_view key) const {
  MutexLock lock(&mutex_);
  if (key == "log.level" && log_level_.has_value()) return LogHidden();
  if (absl::StartsWith(key, "trace.") && trace_.has_value()) {
    return TraceHidden();
  }
  return "";
}

LogLevel LiveSettings::SetLogLevel(LogLevel level, absl::Duration during) {
  MutexLock lock(&mutex_);
  const LogLevel before = Level();
  const uint64_t number = ++orders_;
  log_level_ = Order<LogLevel>{number, Until(during), level};
  InitLogging(Level(), options_.log_format);
  Log(LogLevel::kInfo, "log level overridden",
      {{"level", LogLevelName(level)}, {"for", absl::FormatDuration(during)}});
  alarms_.Set(kLogAlarm, during, [this, number] { EndLogLevel(number); });
  return before;
}

void LiveSettings::EndLogLevel(uint64_t number) {
  MutexLock lock(&mutex_);
  if (!log_level_.has_value() || log_level_->number != number) return;
  log_level_.reset();
  InitLogging(Level(), options_.log_format);
  Log(LogLevel::kInfo, "log level follows the settings",
      {{"level", LogLevelName(Level())}});
}

void LiveSettings::OrderTrace(TraceSettings wanted, absl::Duration during) {
  const uint64_t number = ++orders_;
  trace_ = Order<TraceSettings>{number, Until(during), std::move(wanted)};
  alarms_.Set(kTraceAlarm, during, [this, number] { EndTrace(number); });
}

absl::StatusOr<TraceSettings> LiveSettings::StartTrace(const TraceOrder& order,
                                                       absl::Duration during) {
  MutexLock lock(&mutex_);
  TraceSettings wanted = TraceSettingsOf(options_);
  if (order.dir.has_value()) wanted.dir = *order.dir;
  if (order.level.has_value()) wanted.level = *order.level;
  if (order.sample.has_value()) wanted.sample = *order.sample;
  if (wanted.dir.empty()) {
    return absl::InvalidArgumentError(
        "trace.dir: is not set; accepted: a directory, there or in the order");
  }
  absl::Status begun = receivers_.trace->Change(wanted, list_);
  if (!begun.ok()) return begun;
  Log(LogLevel::kInfo, "trace started by an order",
      {{"dir", wanted.dir}, {"for", absl::FormatDuration(during)}});
  OrderTrace(wanted, during);
  return wanted;
}

EndedTrace LiveSettings::StopTrace(absl::Duration during) {
  MutexLock lock(&mutex_);
  EndedTrace ended;
  ended.dir = receivers_.trace->current().dir;
  // Ending a trace never fails.
  receivers_.trace->Change(TraceSettings(), list_).IgnoreError();
  if (!ended.dir.empty()) ended.stats = receivers_.trace->LastStats();
  if (options_.trace_dir.empty()) {
    trace_.reset();
    alarms_.Cancel(kTraceAlarm);
    Log(LogLevel::kInfo, "trace stopped by an order");
    return ended;
  }
  Log(LogLevel::kInfo, "trace paused by an order",
      {{"for", absl::FormatDuration(during)}});
  OrderTrace(TraceSettings(), during);
  return ended;
}

void LiveSettings::EndTrace(uint64_t number) {
  MutexLock lock(&mutex_);
  if (!trace_.has_value() || trace_->number != number) return;
  trace_.reset();
  const absl::Status settled =
      receivers_.trace->Change(TraceSettingsOf(options_), list_);
  if (settled.ok()) {
    Log(LogLevel::kInfo, "the trace follows the settings",
        {{"dir", options_.trace_dir}});
    return;
  }
  // The order's trace ends all the same.
  receivers_.trace->Change(TraceSettings(), list_).IgnoreError();
  Log(LogLevel::kError, "the trace cannot go on as the settings say",
      {{"why", settled.message()}});
}

}  // namespace fncache::proxy
