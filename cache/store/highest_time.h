// SPDX-License-Identifier: Apache-2.0
// HighestTime: the latest of all times that a store was given, so that a
// deadline that has passed stays so: threads read the clock one after another.
//
// Thread-safe.
#ifndef FNCACHE_CACHE_STORE_HIGHEST_TIME_H_
#define FNCACHE_CACHE_STORE_HIGHEST_TIME_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace fncache::cache::store {

class HighestTime {
 public:
  // Takes note of `now`, and returns the latest time until then.
  absl::Time See(absl::Time now) {
    const int64_t given = absl::ToUnixNanos(now);
    int64_t seen = seen_.load(std::memory_order_relaxed);
    while (seen < given && !seen_.compare_exchange_weak(
                               seen, given, std::memory_order_relaxed)) {
    }
    return absl::FromUnixNanos(std::max(seen, given));
  }
  // The Unix epoch before any.
  absl::Time get() const {
    return absl::FromUnixNanos(seen_.load(std::memory_order_relaxed));
  }

 private:
  std::atomic<int64_t> seen_{0};  // Unix nanoseconds
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_HIGHEST_TIME_H_
