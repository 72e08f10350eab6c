// SPDX-License-Identifier: Apache-2.0
// The runs of a trace that got the answer of before, counted as a daemon counts
// them (insight/explain/repeats.h), and the paths of its requests that are
// drift. Needs a trace of level full.
//
// Blocks; thread-safe.
#ifndef FNCACHE_RUNNER_ADVISE_REPEATS_H_
#define FNCACHE_RUNNER_ADVISE_REPEATS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "insight/explain/repeats.h"
#include "insight/trace/masks_in_force.h"

namespace fncache::runner::advise {

struct TraceRepeats {
  uint64_t runs = 0;  // whose answers were compared
  std::array<uint64_t, insight::explain::kRepeatOvers> over{};
  // The paths of values, as masks spell them, that were drift whenever they
  // were there, and those that were not.
  std::vector<std::string> drift;
  std::vector<std::string> other;

  uint64_t Over(insight::explain::RepeatOver what) const {
    return over[static_cast<size_t>(what)];
  }
};

// By function. One without such runs may be missing.
absl::StatusOr<std::map<std::string, TraceRepeats>> CountRepeats(
    const std::string& trace, const insight::trace::MasksInForce& in_force);

}  // namespace fncache::runner::advise

#endif  // FNCACHE_RUNNER_ADVISE_REPEATS_H_
