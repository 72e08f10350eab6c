// SPDX-License-Identifier: Apache-2.0
#include "proxy/live_settings.h"

#include <algorithm>

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

// The memory tier keeps its parts, so that its largest entry follows its bound
// closer than after a start.
void WarnOfLargeEntries(const settings::DaemonOptions& options,
                        const cache::store::StoreStats& memory) {
  uint64_t largest = 0;
  for (const settings::FunctionOptions& function : options.functions) {
    largest = std::max(largest, function.policy.max_entry_bytes);
  }
  largest = std::min(largest, options.cache_memory / 4);
  if (memory.largest >= largest) return;
  Log(LogLevel::kWarning,
      "larger answers than this are not stored until a restart divides "
      "cache.memory anew",
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

absl::Status LiveSettings::Apply(const settings::DaemonOptions& options,
                                 const std::vector<bool>& changed,
                                 const std::vector<ListedSetting>& list) {
  MutexLock lock(&mutex_);
  // First what can fail.
  if (!trace_.has_value()) {
    absl::Status traced = places_.trace->Change(TraceSettingsOf(options), list);
    if (!traced.ok()) return traced;
  }
  absl::Status logged = places_.access_log->Configure(options.access_log);
  absl::Status stored = places_.store->Change(
      {options.cache_memory, options.cache_disk, StoredFunctionsOf(options)},
      places_.clock->Now());
  if (stored.ok() && !logged.ok()) {
    stored = absl::Status(logged.code(),
                          absl::StrCat("log.access_file: ", logged.message()));
  }
  if (!stored.ok()) {
    places_.access_log->Configure(options_.access_log).IgnoreError();
    if (!trace_.has_value()) {
      places_.trace->Change(TraceSettingsOf(options_), list_).IgnoreError();
    }
    return stored;
  }
  WarnOfLargeEntries(options, places_.store->Stats());
  places_.inflight->SetBound(options.inflight_bytes);
  for (size_t i = 0; i < places_.functions.size(); ++i) {
    const Function& function = places_.functions[i];
    function.listener->SetLimits(ListenerLimitsOf(options));
    function.upstream->SetLimits(
        options.max_response_bytes,
        static_cast<uint32_t>(options.max_metadata_bytes));
    if (!changed[i]) continue;
    function.handler->Replace(options.functions[i]);
    // Calls that fill from now on look at the new settings first.
    if (options.functions[i].policy.store_secrets ==
        cache::StoreSecrets::kNone) {
      places_.store->EraseSecrets(static_cast<cache::FunctionId>(i));
    }
  }
  const bool log = options.log_level != options_.log_level ||
                   options.log_format != options_.log_format;
  options_ = options;
  list_ = list;
  if (log) InitLogging(Level(), options_.log_format);
  return absl::OkStatus();
}

LogLevel LiveSettings::SetLogLevel(LogLevel level, absl::Duration during) {
  MutexLock lock(&mutex_);
  const LogLevel before = Level();
  log_level_ = level;
  InitLogging(Level(), options_.log_format);
  Log(LogLevel::kInfo, "log.level is another one for a while",
      {{"level", LogLevelName(level)}, {"for", absl::FormatDuration(during)}});
  alarms_.Set(kLogAlarm, during, [this] { EndLogLevel(); });
  return before;
}

void LiveSettings::EndLogLevel() {
  MutexLock lock(&mutex_);
  log_level_.reset();
  InitLogging(Level(), options_.log_format);
  Log(LogLevel::kInfo, "log.level is the setting's again",
      {{"level", LogLevelName(Level())}});
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
  absl::Status begun = places_.trace->Change(wanted, list_);
  if (!begun.ok()) return begun;
  trace_ = wanted;
  Log(LogLevel::kInfo, "a trace is written for a while",
      {{"dir", wanted.dir}, {"for", absl::FormatDuration(during)}});
  alarms_.Set(kTraceAlarm, during, [this] { EndTrace(); });
  return wanted;
}

std::string LiveSettings::StopTrace(absl::Duration during) {
  MutexLock lock(&mutex_);
  std::string dir = trace_.has_value() ? trace_->dir : options_.trace_dir;
  // To write none never fails.
  places_.trace->Change(TraceSettings(), list_).IgnoreError();
  if (options_.trace_dir.empty()) {
    trace_.reset();
    alarms_.Cancel(kTraceAlarm);
    Log(LogLevel::kInfo, "no trace is written any more");
    return dir;
  }
  trace_ = TraceSettings();
  Log(LogLevel::kInfo, "no trace is written for a while",
      {{"for", absl::FormatDuration(during)}});
  alarms_.Set(kTraceAlarm, during, [this] { EndTrace(); });
  return dir;
}

void LiveSettings::EndTrace() {
  MutexLock lock(&mutex_);
  if (!trace_.has_value()) return;
  trace_.reset();
  const absl::Status settled =
      places_.trace->Change(TraceSettingsOf(options_), list_);
  if (settled.ok()) {
    Log(LogLevel::kInfo, "the trace is as the settings say again",
        {{"dir", options_.trace_dir}});
    return;
  }
  // What the order began goes on no longer.
  places_.trace->Change(TraceSettings(), list_).IgnoreError();
  Log(LogLevel::kError, "the trace cannot go on as the settings say",
      {{"why", settled.message()}});
}

}  // namespace fncache::proxy
