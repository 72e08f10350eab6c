// SPDX-License-Identifier: Apache-2.0
// GhostQueue: the keys that left the small queue of S3-FIFO lately.
//
// It is approximate and takes four bytes a key: a table of buckets, each with
// eight fingerprints and their insertion times. No mark is removed for its age.
// A mark is too old once as many keys have come after it as are live, and is
// then overwritten. A fingerprint that matches by chance (one in some
// thousands) lets a new key into the main queue, which costs a little memory
// and nothing else.
//
// Not thread-safe: its shard's lock guards it.
#ifndef FNCACHE_CACHE_STORE_GHOST_QUEUE_H_
#define FNCACHE_CACHE_STORE_GHOST_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace fncache::cache::store {

class GhostQueue {
 public:
  // Remembers the key of this hash. `live` is the number of entries cached: as
  // many keys are remembered at a time, and the table is sized by it.
  void Insert(uint64_t hash, size_t live);

  // Whether the key is remembered; it is not any more afterwards.
  bool Take(uint64_t hash);

  size_t bytes() const { return slots_ * sizeof(uint32_t); }

 private:
  static constexpr size_t kBucket = 8;

  uint32_t* BucketOf(uint64_t hash) const;
  uint32_t TimeUnit() const;
  uint16_t Time() const {
    return static_cast<uint16_t>(inserted_ / TimeUnit());
  }
  bool TooOld(uint32_t mark) const;
  void Resize(size_t live);

  size_t slots_ = 0;  // a multiple of kBucket
  size_t live_ = 0;
  uint64_t inserted_ = 0;
  // Fingerprint (never 0) in the upper half, time in the lower; 0 is free.
  std::unique_ptr<uint32_t[]> table_;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_GHOST_QUEUE_H_
