// SPDX-License-Identifier: Apache-2.0
// Repeats: runs of a function for a miss that got the answer of before, and
// what the request differed in (DESIGN, "Tuning"). Each such run could have
// been saved: by `tune: on`, by `ttl.min`, or by masks that an operator
// answers for.
//
// Plain data.
#ifndef FNCACHE_INSIGHT_EXPLAIN_REPEATS_H_
#define FNCACHE_INSIGHT_EXPLAIN_REPEATS_H_

#include <cstddef>
#include <cstdint>

namespace fncache::insight::explain {

// Why a run that got the answer of before was a miss.
enum class RepeatOver : uint8_t {
  // The request differed in drift only, and the answer of before was still
  // served: `tune: on` saves it.
  kDrift,
  // It differed in drift or not at all, and the time of the answer was over:
  // `ttl.min` saves it, for requests with other drift together with `tune`.
  kTime,
  // All else: other paths, another generation, an answer that was evicted,
  // purged or not stored.
  kOther,
  kNone,  // it is no repeat
};
inline constexpr size_t kRepeatOvers = 3;

// "drift", "time", "other". `over` is below kRepeatOvers.
inline const char* RepeatOverName(size_t over) {
  constexpr const char* kNames[kRepeatOvers] = {"drift", "time", "other"};
  return kNames[over];
}

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_REPEATS_H_
