// SPDX-License-Identifier: Apache-2.0
#include "common/clock.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace fncache {
namespace {

// A wall clock set to the end of time must not wrap to its beginning.
int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? std::numeric_limits<int64_t>::max()
               : std::numeric_limits<int64_t>::min();
}

}  // namespace

int64_t ReadClock(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

SystemClock::SystemClock()
    : SystemClock([] { return ReadClock(CLOCK_REALTIME); },
                  [] { return ReadClock(CLOCK_BOOTTIME); }) {}

SystemClock::SystemClock(Source wall, Source boottime)
    : wall_(std::move(wall)),
      boottime_(std::move(boottime)),
      start_wall_(wall_()),
      start_boottime_(boottime_()),
      last_(start_wall_) {}

absl::Time SystemClock::Now() {
  const int64_t steady =
      SaturatingAdd(start_wall_, boottime_() - start_boottime_);
  const int64_t now = std::max(wall_(), steady);
  // A maximum without a lock. Relaxed will do: one variable's values have one
  // order, and who learned of a time from another thread sees it here too.
  int64_t last = last_.load(std::memory_order_relaxed);
  while (last < now) {
    if (last_.compare_exchange_weak(last, now, std::memory_order_relaxed)) {
      return absl::FromUnixNanos(now);
    }
  }
  return absl::FromUnixNanos(last);
}

}  // namespace fncache
