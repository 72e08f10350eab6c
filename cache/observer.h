// Observer: what the cache reports as it works, to whoever keeps metrics.
//
// Reports without a function (kNoFunction) are of the tier alone.
//
// Called on hot paths and from the cache's own threads, also under its locks:
// implementations are thread-safe, do not block and do not call the cache.
#ifndef FNCACHE_CACHE_OBSERVER_H_
#define FNCACHE_CACHE_OBSERVER_H_

#include <cstdint>

#include "absl/time/time.h"
#include "cache/store/entry.h"

namespace fncache::cache {

enum class Tier { kMemory, kDisk };

enum class Removal {
  kExpired,   // past its deadline
  kEvicted,   // to make room
  kReplaced,  // by a newer fill of the same key
  kDropped,   // purged, corrupt, or from a time that is no more
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
  // `count` entries of `bytes` bytes in all left the tier: of responses as they
  // are kept, on disk with the frame around them (part of a file's entries:
  // in proportion). `last` says that no lower tier is there to keep them.
  virtual void OnRemoved(Tier tier, Removal why, store::FunctionId function,
                         bool last, uint64_t count, uint64_t bytes) {}
  virtual void OnDropped(Tier tier, Dropped why, store::FunctionId function) {}
  virtual void OnError(Tier tier, TierError what, store::FunctionId function) {}
  // A fill reached the tier, taking `took` there.
  virtual void OnWritten(Tier tier, store::FunctionId function, uint64_t bytes,
                         absl::Duration took) {}
};

}  // namespace fncache::cache

#endif  // FNCACHE_CACHE_OBSERVER_H_
