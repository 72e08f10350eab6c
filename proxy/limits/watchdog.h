// SPDX-License-Identifier: Apache-2.0
// Watchdog: whether a call that keeps memory makes progress. A call that moves
// less than an eighth of its bytes (at most 4 MiB) in 10 s stalls. Otherwise a
// call that moves byte by byte would keep its memory for ever. Its owner ends
// such a call while others wait for memory (Budget::OthersWait).
//
// Times are nanoseconds of the event loop's clock. Not thread-safe.
#ifndef FNCACHE_PROXY_LIMITS_WATCHDOG_H_
#define FNCACHE_PROXY_LIMITS_WATCHDOG_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace fncache::proxy::limits {

class Watchdog {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(10);
  // Progress of a call that keeps `kept` bytes is at least this many bytes.
  static size_t Least(size_t kept) {
    return std::clamp<size_t>(kept / 8, 1, 4 << 20);
  }

  // The call makes progress now, and has moved `moved` bytes since it began.
  void Restart(int64_t now, uint64_t moved) {
    since_ = now;
    moved_ = moved;
  }
  // The call has moved `moved` bytes since it began, and keeps `kept`.
  void Saw(int64_t now, uint64_t moved, size_t kept) {
    if (moved >= moved_ + Least(kept)) Restart(now, moved);
  }
  // How long the call has made no progress.
  absl::Duration Idle(int64_t now) const {
    return absl::Nanoseconds(now - since_);
  }
  bool Stalls(int64_t now) const { return Idle(now) >= kPatience; }

 private:
  int64_t since_ = 0;
  uint64_t moved_ = 0;
};

}  // namespace fncache::proxy::limits

#endif  // FNCACHE_PROXY_LIMITS_WATCHDOG_H_
