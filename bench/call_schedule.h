// SPDX-License-Identifier: Apache-2.0
// CallSchedule: when the calls of an open loop are meant to begin.
//
// Call i begins at the start + i / rate, whatever became of the calls before:
// who measures latency from these times counts also the waiting that a slow
// server (or client) causes to calls that it kept from beginning.
//
// Times are nanoseconds of any clock. Not thread-safe.
#ifndef FNCACHE_BENCH_CALL_SCHEDULE_H_
#define FNCACHE_BENCH_CALL_SCHEDULE_H_

#include <cstdint>

namespace fncache::bench {

class CallSchedule {
 public:
  // `rate` calls a second, above 0, for `calls` calls.
  CallSchedule(int64_t start, double rate, uint64_t calls)
      : start_(start), rate_(rate), calls_(calls) {}

  // When the next call is meant to begin. Not if done().
  int64_t next() const {
    return start_ +
           static_cast<int64_t>(static_cast<double>(begun_) * 1e9 / rate_);
  }
  bool done() const { return begun_ == calls_; }
  bool due(int64_t now) const { return !done() && next() <= now; }

  // Begins the next call; the time at which it was meant to.
  int64_t Begin() {
    const int64_t intended = next();
    ++begun_;
    return intended;
  }

 private:
  const int64_t start_;
  const double rate_;
  const uint64_t calls_;
  uint64_t begun_ = 0;
};

}  // namespace fncache::bench

#endif  // FNCACHE_BENCH_CALL_SCHEDULE_H_
