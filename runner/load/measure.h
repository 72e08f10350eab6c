// SPDX-License-Identifier: Apache-2.0
// Measure: counts the actions of a load, for its results.
//
//   loops (schedule, reconciler, raw) -> Measure -> LoadResults
//
// Nothing counts before Start or after Stop. The loops leave out all that began
// in the warm-up. Times are nanoseconds of CLOCK_MONOTONIC.
//
// Thread-safe. A Series lives as long as the Measure.
#ifndef FNCACHE_RUNNER_LOAD_MEASURE_H_
#define FNCACHE_RUNNER_LOAD_MEASURE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "cache/outcome.h"
#include "common/latency_histogram.h"
#include "common/mutex.h"
#include "runner/load/results.h"

namespace fncache::runner::load {

// The outcome that a cache in front reported for a call.
using cache::Outcome;

enum class CallEnd {
  kOk,
  kFailed,
  kNotReached,  // failed, and no function saw it
};

// Reads a header cache-status (RFC 9211); its last cache counts. A call that
// was forwarded because an entry had expired is a miss. An entry that was
// served after its time (a ttl below zero) is stale. A call that the caller's
// own directives sent past the cache is a bypass.
Outcome OutcomeOf(absl::string_view cache_status);

int64_t MonotonicNanos();
int64_t ProcessCpuNanos();

LatencySummary Summarize(const LatencyHistogram& histogram);

class Measure {
 public:
  class Series;

  Measure();
  ~Measure();

  Series* SeriesOf(absl::string_view step, absl::string_view function);

  void Start(int64_t now);
  // The duration ends here. Calls that began in it count until Stop.
  void EndDuration(int64_t now);
  void Stop(int64_t now);
  bool measuring() const;

  void AddCall(Series* series, Outcome outcome, int64_t nanoseconds,
               CallEnd end);
  // `latency` is from the due time, `service` from the start.
  void AddPipeline(int64_t latency, int64_t service, bool ok);
  // `example` is called for the first of its kind only.
  void AddError(absl::string_view message,
                const std::function<std::string()>& example);
  // The delay of a start after it was due.
  void AddLag(int64_t nanoseconds);
  // The time that an answer waited for a thread that continues its pipeline.
  void AddWait(int64_t nanoseconds);
  void AddDropped();
  // Gauges for the timeline, as they are now.
  void SetState(uint64_t ready, double in_flight);
  // Ends an interval of the timeline if a second has passed.
  void Tick(int64_t now);

  // The last whole interval, and the errors so far.
  struct Glimpse {
    TimelinePoint last;
    uint64_t errors = 0;
  };
  Glimpse Look() const;

  // All counts, so far or until Stop.
  void Fill(LoadResults* results) const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_MEASURE_H_
