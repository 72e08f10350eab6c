// SPDX-License-Identifier: Apache-2.0
// Clock: where the cache gets its time, so that tests can bring their own.
//
// SystemClock gives max(the last time given, wall clock, wall clock at start +
// CLOCK_BOOTTIME since): it never runs backwards within a process and follows
// the wall clock forwards, through suspends too.
//
// Thread-safe.
#ifndef FNCACHE_COMMON_CLOCK_H_
#define FNCACHE_COMMON_CLOCK_H_

#include <time.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/time/time.h"

namespace fncache {

// Nanoseconds of one of the system's clocks, such as CLOCK_MONOTONIC or the CPU
// time of this thread (clock_gettime).
int64_t ReadClock(clockid_t clock);

class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() = 0;
};

// The process's time. One for all who compare times with each other.
class SystemClock : public Clock {
 public:
  // Nanoseconds: of the wall since the Unix epoch, of the other since anything.
  using Source = std::function<int64_t()>;

  SystemClock();
  // For tests. `boottime` never runs backwards; `wall` does what it wants. Both
  // are called from any thread.
  SystemClock(Source wall, Source boottime);

  // Never before what any call that returned earlier gave, on any thread.
  absl::Time Now() override;

 private:
  const Source wall_;
  const Source boottime_;
  const int64_t start_wall_;
  const int64_t start_boottime_;
  std::atomic<int64_t> last_;
};

// A clock whose time moves only by Advance and Set, so that hours of its time
// pass at once: for tests, and for playing recorded calls under other settings.
class SimulatedClock : public Clock {
 public:
  explicit SimulatedClock(absl::Time start) : now_(absl::ToUnixNanos(start)) {}
  absl::Time Now() override { return absl::FromUnixNanos(now_.load()); }
  void Advance(absl::Duration by) { now_ += absl::ToInt64Nanoseconds(by); }
  void Set(absl::Time to) { now_ = absl::ToUnixNanos(to); }

 private:
  std::atomic<int64_t> now_;
};

}  // namespace fncache

#endif  // FNCACHE_COMMON_CLOCK_H_
