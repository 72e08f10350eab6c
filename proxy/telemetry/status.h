// SPDX-License-Identifier: Apache-2.0
// Status: everything that the status page tells, as data, and what of it is
// wrong. The page for people (status_page.h) and the one for programs
// (status_json.h) are two forms of one Status, so they cannot differ.
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
    // What changed most often in requests that missed, and who had written it.
    insight::explain::MissMemory::Top miss_paths{};
    insight::explain::MissMemory::Top miss_writers{};
    LastError last_error{};
    // Absent before the listeners are open.
    absl::optional<FunctionFacts> facts{};
  };
  std::vector<Function> functions;  // in the order of reading's

  std::vector<Instruments::CertificateReading> certificates;
  std::vector<ListedSetting> settings;  // without secrets
  ReloadFigures reload;
};

// Something that an operator should look at.
struct Problem {
  enum class Severity {
    kWarning,  // answers are right and complete, but something is lost or will
               // be
    kError,    // something does not work now
  };
  Severity severity = Severity::kWarning;
  std::string kind;     // "function_unreachable"
  std::string subject;  // whose problem it is: "function-a", "disk"
  std::string text;     // for people, one sentence or two
};
const char* SeverityName(Problem::Severity severity);  // "warning", "error"

// Errors first.
std::vector<Problem> FindProblems(const Status& status);

// For people. Whole seconds, in the largest units that matter: 3d 4h 5m 6s.
std::string SpanText(absl::Duration duration);
// 2027-01-15 08:00:00 UTC
std::string TimeText(absl::Time time);

// The share of look-ups that were answered from the cache, 0 to 1; nothing
// where there was no look-up.
absl::optional<double> HitRate(const FunctionCounts& counts);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_STATUS_H_
