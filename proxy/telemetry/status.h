// SPDX-License-Identifier: Apache-2.0
// Status: all facts of the status page, as data, and the problems among them.
// The page for people (status_page.h) and the one for programs (status_json.h)
// are two forms of one Status, so they cannot differ.
//
// A plain value; FindProblems is a pure function.
#ifndef FNCACHE_PROXY_TELEMETRY_STATUS_H_
#define FNCACHE_PROXY_TELEMETRY_STATUS_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "insight/explain/miss_memory.h"
#include "proxy/telemetry/function_facts.h"
#include "proxy/telemetry/history.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/telemetry/process_metrics.h"
#include "proxy/telemetry/reload_figures.h"
#include "proxy/telemetry/settings_list.h"

namespace fncache::proxy::telemetry {

struct Status {
  std::string version;
  std::string state;  // "ready", "draining", "starting", "not_accepting"
  absl::Duration uptime;
  ProcessFigures process;
  // Counts since the start and in the last minute, and the tiers.
  History::Reading reading;

  struct Function {
    std::string name;
    std::string upstream;  // its target
    Reachability reachability;
    FunctionGauges gauges;
    // The most frequent changes in requests that missed, and their writers.
    insight::explain::MissMemory::Top miss_paths{};
    insight::explain::MissMemory::Top miss_writers{};
    LastError last_error{};
    // Absent before the listeners are open.
    absl::optional<FunctionFacts> facts{};
    // Paths that changed besides drift in repeats.
    std::vector<insight::explain::UnreadPath> unread{};
  };
  std::vector<Function> functions;  // in the order of reading's

  // Absent without a shared tier.
  absl::optional<cache::store::SharedFigures> shared;
  std::vector<Instruments::CertificateReading> certificates;
  std::vector<ListedSetting> settings;  // without secrets
  ReloadFigures reload;
};

// A problem that an operator should check.
struct Problem {
  enum class Severity {
    kWarning,  // answers are right and complete, but a loss occurs or will
               // occur
    kError,    // a function of the daemon does not work now
  };
  Severity severity = Severity::kWarning;
  std::string kind;     // "function_unreachable"
  std::string subject;  // the object with the problem: "function-a", "disk"
  std::string text;     // for people, one sentence or two
};
const char* SeverityName(Problem::Severity severity);  // "warning", "error"

// Errors first.
std::vector<Problem> FindProblems(const Status& status);

// A text for people, in whole seconds and the largest units: 3d 4h 5m 6s.
std::string SpanText(absl::Duration duration);
// 2027-01-15 08:00:00 UTC
std::string TimeText(absl::Time time);

// The fraction of look-ups that were answered from the cache, 0 to 1; absent
// without a look-up.
absl::optional<double> HitRate(const FunctionCounts& counts);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_STATUS_H_
