// SPDX-License-Identifier: Apache-2.0
// Thresholds: what must hold of a load's results, as k6 writes it.
//
//   METRIC[{step=S,function=F,outcome=O}]:AGG OP VALUE
//
//   pipeline, service, call   seconds: p(N) avg mean min max med, count, rate
//                             (a second)
//   errors, late, dropped     count, rate (the fraction of all)
//   hits                      count, rate (hits, stale and collapsed over those
//                             and misses)
//   runs                      count, rate (function runs a second)
//   ready                     count, rate (the fraction of all composites)
//
// Labels: step and function with call, errors, hits and runs; outcome with
// call. Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_LOAD_THRESHOLD_H_
#define FNCACHE_RUNNER_LOAD_THRESHOLD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "runner/load/results.h"

namespace fncache::runner::load {

struct Threshold {
  enum class Op {
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kEqual,
    kUnequal
  };

  std::string expression;  // as it was written
  std::string metric;
  std::string step, function, outcome;  // "" = any
  std::string aggregate;                // "p" with `percentile`
  double percentile = 0;                // 0 to 100
  Op op = Op::kLess;
  double value = 0;  // seconds, or a plain number
};

// The names that a threshold may use: those of the Composition.
struct ThresholdNames {
  std::vector<std::string> steps;
  std::vector<std::string> functions;
};

// InvalidArgument names the error and the accepted values; it does not name the
// flag.
absl::StatusOr<Threshold> ParseThreshold(absl::string_view expression,
                                         const ThresholdNames& names);

// Whether the results meet it; a threshold without data is not met.
ThresholdResults Evaluate(const Threshold& threshold,
                          const LoadResults& results);

// Whether a longer run cannot mend a failure: latencies, errors, late, dropped
// and runs that are too many. Hits and readiness come with time.
bool MayAbort(const Threshold& threshold);

// The smallest latency that `percent` of 100 do not exceed, of buckets in
// ascending order; none of nothing.
absl::optional<double> PercentileOf(
    const std::vector<std::pair<double, uint64_t>>& buckets, double percent);

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_THRESHOLD_H_
