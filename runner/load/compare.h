// SPDX-License-Identifier: Apache-2.0
// Compares two saved runs, and decides whether the later is worse.
//
// A change has its 95 % interval: Poisson's for rates, Wilson's for fractions,
// and for percentiles that of the order statistics of the histogram's counts. A
// change whose intervals overlap may be chance.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_LOAD_COMPARE_H_
#define FNCACHE_RUNNER_LOAD_COMPARE_H_

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "runner/load/results.h"

namespace fncache::runner::load {

struct Interval {
  double value = 0;
  double low = 0;
  double high = 0;
};

struct Change {
  std::string name;  // pipelines: p99
  enum class Unit { kSeconds, kRate, kFraction } unit = Unit::kSeconds;
  Interval before;
  Interval after;
  // (after - before) / before; for fractions after - before. None if there was
  // none before.
  absl::optional<double> change;
  bool more_is_worse = true;
  // Whether the intervals lie apart.
  bool sure = false;
};

std::vector<Change> Compare(const LoadResults& before,
                            const LoadResults& after);
// The changes for the worse by more than `most` (0.1 = 10 %) that are sure.
std::vector<Change> Regressions(const std::vector<Change>& changes,
                                double most);
// A table for a terminal.
std::string CompareText(const std::vector<Change>& changes);
std::string FormatInterval(const Interval& interval, Change::Unit unit);
std::string FormatChange(const Change& change);

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_COMPARE_H_
