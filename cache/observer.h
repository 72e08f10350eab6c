// SPDX-License-Identifier: Apache-2.0
// Observer: receives reports of what the cache does, for the owner of the
// metrics.
//
// A report without a function (kNoFunction) is about the tier alone.
//
// It is called on hot paths and from the cache's own threads, also under its
// locks: implementations are thread-safe, do not block and do not call the
// cache.
#ifndef FNCACHE_CACHE_OBSERVER_H_
#define FNCACHE_CACHE_OBSERVER_H_

#include <cstdint>

#include "absl/time/time.h"

namespace fncache::cache {

// A function's index in the daemon's settings: the cache refers to functions by
// it, and metrics are kept by it. Below 2^24. (Data that outlives the process
// names the function instead.)
using FunctionId = uint32_t;

// Stands for no function: for what a tier does on its own account, or for a
// function that the settings do not name (any more).
constexpr FunctionId kNoFunction = FunctionId{1} << 24;

enum class Tier { kMemory, kDisk, kShared };

enum class Removal {
  kExpired,   // past its deadline
  kEvicted,   // to free capacity
  kReplaced,  // by a newer fill of the same key
  kDropped,   // corrupt, or from a time that is no more
  kPurged,    // by an operator
};

// Why a fill did not reach a tier.
enum class Dropped {
  kQueueFull,  // the write-behind queue was full
  kTooLarge,   // more than the tier holds
  kError,      // the tier failed (disk full, ...)
  kShutdown,   // the process ended first
};

enum class TierError { kRead, kWrite, kCorrupt, kOther };

class Observer {
 public:
  virtual ~Observer() = default;
  // `count` entries left the tier. `bytes` is the size of their stored
  // responses; on disk it includes the frame around them. For entries of one
  // file it may be an amount in proportion. `last` says that no lower tier
  // keeps them.
  virtual void OnRemoved(Tier tier, Removal why, FunctionId function, bool last,
                         uint64_t count, uint64_t bytes) {}
  virtual void OnDropped(Tier tier, Dropped why, FunctionId function) {}
  virtual void OnError(Tier tier, TierError what, FunctionId function) {}
  // A fill reached the tier, and the tier needed `took` for it.
  virtual void OnWritten(Tier tier, FunctionId function, uint64_t bytes,
                         absl::Duration took) {}
  // A look-up that was sent to the shared tier's server has ended. `took`
  // includes the wait for a thread.
  virtual void OnSharedLookup(absl::Duration took) {}
};

}  // namespace fncache::cache

#endif  // FNCACHE_CACHE_OBSERVER_H_
