// Clock: where the cache gets its time, so that tests can bring their own.
//
// SystemClock gives max(the last time given, wall clock, wall clock at start +
// CLOCK_BOOTTIME since): it never runs backwards within a process and follows
// the wall clock forwards, through suspends too.
//
// Thread-safe.
#ifndef FNCACHE_CACHE_CLOCK_H_
#define FNCACHE_CACHE_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace fncache::cache {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() = 0;
};

// Time moves only when told to.
class SimulatedClock : public Clock {
 public:
  explicit SimulatedClock(absl::Time start) : now_(absl::ToUnixNanos(start)) {}
  absl::Time Now() override { return absl::FromUnixNanos(now_.load()); }
  void Advance(absl::Duration by) { now_ += absl::ToInt64Nanoseconds(by); }
  void Set(absl::Time to) { now_ = absl::ToUnixNanos(to); }

 private:
  std::atomic<int64_t> now_;
};

}  // namespace fncache::cache

#endif  // FNCACHE_CACHE_CLOCK_H_
