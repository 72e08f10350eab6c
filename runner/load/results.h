// SPDX-License-Identifier: Apache-2.0
// LoadResults: the measurements of a load run, as data. The summary, the JSON,
// the page, thresholds and comparisons are all made from it.
//
// Durations are seconds as doubles, as in the JSON
// (docs/load-results.schema.json).
#ifndef FNCACHE_RUNNER_LOAD_RESULTS_H_
#define FNCACHE_RUNNER_LOAD_RESULTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace fncache::runner::load {

struct LatencySummary {
  double mean = 0, min = 0, max = 0;
  double p50 = 0, p90 = 0, p95 = 0, p99 = 0, p999 = 0;
  // Upper end of a bucket in seconds, count; of the buckets that counted
  // something.
  std::vector<std::pair<double, uint64_t>> buckets;
};

struct CallResults {
  std::string step;
  std::string function;
  std::string outcome;  // hit, miss, stale, collapsed, bypass, none
  uint64_t count = 0;
  uint64_t errors = 0;
  uint64_t unreached = 0;  // of these, calls that never reached a function
  double rate = 0;         // a second
  LatencySummary latency;
};

struct ErrorResults {
  std::string message;
  uint64_t count = 0;
  std::string example;  // which step of which composite, when
};

struct ThresholdResults {
  std::string expression;
  absl::optional<double> value;  // none: no data, which is a failure
  bool ok = false;
};

// One interval of the timeline.
struct TimelinePoint {
  double at = 0;       // seconds since the measured phase began, its end
  double seconds = 0;  // its length
  uint64_t pipelines = 0, errors = 0, late = 0, dropped = 0;
  uint64_t calls = 0, hits = 0, misses = 0, stale = 0, collapsed = 0;
  double p50 = 0, p90 = 0, p99 = 0, max = 0;  // pipelines' latency
  double hit_p99 = 0, miss_p99 = 0;           // calls' latency
  uint64_t ready = 0;  // composites that are ready at its end
  double in_flight = 0;
};

struct DaemonCounts {  // by --admin-url, over the measured phase
  std::map<std::string, uint64_t> outcomes;  // outcome -> calls
  bool agrees = false;
  std::string disagreement;
};

// A function that calls still waited for at the end of the run.
struct UnreachedResults {
  std::string function;
  std::string target;
  std::string why;
};

// The runner's needs for these composites at the end of the run.
struct VerdictResults {
  // The shortest and the longest time until a composite comes back, which is
  // its TTL most often. 0 = none comes back.
  double shortest = 0, longest = 0;
  double needed = 0;  // pipelines a second, of these waits
  // The pipelines a second that were measured. Only where some composites never
  // settle: these come back without a wait.
  absl::optional<double> measured;
  double churn = 0;  // pipelines a second, of writes by others
  uint64_t workers = 0;
  // The fraction of the workers that the pipelines above keep busy. None
  // without a measured pipeline.
  absl::optional<double> busy;
  // Composites that were created in the run, those of them that became ready,
  // and the times from creation to ready.
  uint64_t created = 0;
  uint64_t created_ready = 0;
  double ready_p50 = 0, ready_p95 = 0;
};

struct LoadResults {
  int version = 1;
  std::string tool_version;
  std::string started;  // RFC 3339
  std::map<std::string, std::string> settings;
  std::map<std::string, std::string> machine;  // cpu, cores, memory, kernel
  double duration = 0;
  bool interrupted = false;

  struct {
    uint64_t pipelines = 0, calls = 0;
    double seconds = 0;
    uint64_t ready = 0;  // composites, when all had settled
    // Why nothing was measured; empty if all could settle, or did not have to.
    std::string failure;
    // Composites that never settle, and which fields keep changing. Also of
    // --start create, in which nothing settles before.
    uint64_t never = 0;
    std::vector<std::string> changing;
  } settle;
  struct {
    uint64_t count = 0, errors = 0, late = 0, dropped = 0;
    double rate = 0;
    LatencySummary latency;       // from when it was due
    LatencySummary service_time;  // from when it started
  } pipelines;
  std::vector<CallResults> calls;
  absl::optional<double> hit_rate;  // none without a cache's word
  // Calls that reached a function: no hit, stale hit or collapsed.
  uint64_t function_runs = 0;
  double function_seconds = 0;
  struct {
    uint64_t count = 0, ready = 0, requeues = 0;
    uint64_t breaker_openings = 0, events_dropped = 0;
    uint64_t lost_ready = 0;  // ready after settling, and not at the end
    // Composites whose pipeline marks nothing as ready or unready.
    uint64_t unmarked = 0;
    // Composed resources that the runner deleted, because no answer wanted them
    // any longer; in settling, too.
    uint64_t deleted = 0;
  } composites;
  std::vector<ErrorResults> errors;
  std::vector<ThresholdResults> thresholds;
  struct {
    double lag_p99 = 0;        // by how much starts were late
    double wait_p99 = 0;       // answers' wait for a thread
    double wait_fraction = 0;  // of the pipelines' time
    double cpu = 0;            // cores used
    bool saturated = false;
    std::string why;
  } generator;
  std::vector<UnreachedResults> unreached;
  absl::optional<VerdictResults> verdict;
  absl::optional<DaemonCounts> daemon;
  std::vector<TimelinePoint> timeline;
};

std::string ResultsToJson(const LoadResults& results);
// InvalidArgument says where the text is not of the schema, or of a later
// version.
absl::StatusOr<LoadResults> ResultsFromJson(absl::string_view json);

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_RESULTS_H_
