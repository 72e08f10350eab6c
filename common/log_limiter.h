// SPDX-License-Identifier: Apache-2.0
// LogLimiter: keeps a log line that any peer can cause from flooding the log.
// The first one passes at once, then one in each interval, which can say how
// many others there were.
//
// Thread-safe.
#ifndef FNCACHE_COMMON_LOG_LIMITER_H_
#define FNCACHE_COMMON_LOG_LIMITER_H_

#include <cstdint>

#include "absl/time/time.h"
#include "common/mutex.h"

namespace fncache {

class LogLimiter {
 public:
  explicit LogLimiter(absl::Duration interval) : interval_(interval) {}

  // Whether a line may be written at `now`. If so, `unlogged` is set to the
  // number of lines that were not since the last one.
  bool Allows(absl::Time now, uint64_t* unlogged) {
    MutexLock lock(&mutex_);
    // A clock that was set back must not silence the log.
    if (now >= last_ && now - last_ < interval_) {
      ++unlogged_;
      return false;
    }
    last_ = now;
    *unlogged = unlogged_;
    unlogged_ = 0;
    return true;
  }

 private:
  const absl::Duration interval_;
  Mutex mutex_;
  absl::Time last_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  uint64_t unlogged_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fncache

#endif  // FNCACHE_COMMON_LOG_LIMITER_H_
