// TieredStore: memory before disk. What the proxy's hit path calls.
//
// Look-ups: GetMemory on the serving thread; on a miss there, GetLower, whose
// answer comes on an I/O thread and whose entry is promoted to memory. Fills:
// memory at once, disk behind the answer through a bounded queue.
//
// Thread-safe. Flush and destruction wait for the write-behind queue.
#ifndef FNCACHE_CACHE_TIERED_STORE_H_
#define FNCACHE_CACHE_TIERED_STORE_H_

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "cache/store.h"

namespace fncache::cache {

class TieredStore : public Store {
 public:
  // Memory, then lower tiers, on the calling thread. For tests and tools.
  Found Get(const Key& key, absl::Time now) override = 0;

  // Never blocks.
  virtual Found GetMemory(const Key& key, absl::Time now) = 0;

  virtual bool has_lower() const = 0;
  // Looks in the lower tiers on an I/O thread and calls `done` there, exactly
  // once; at once, with a miss, where the queue of look-ups is full.
  // Precondition: has_lower().
  virtual void GetLower(const Key& key, absl::Time now,
                        absl::AnyInvocable<void(Found)> done) = 0;

  // Fills memory now, and with `lower` the lower tiers behind. The result is
  // the memory tier's.
  virtual PutResult Fill(const Key& key, EntryRef entry, bool lower,
                         absl::Time now) = 0;
  PutResult Put(const Key& key, EntryRef entry, absl::Time now) override {
    return Fill(key, std::move(entry), /*lower=*/true, now);
  }

  // The memory tier's figures; LowerStats are the disk tier's.
  StoreStats Stats() const override = 0;
  virtual StoreStats LowerStats() const = 0;
  // Fills waiting for the disk.
  virtual size_t QueueDepth() const = 0;

  // Returns once everything filled before the call is on disk or dropped.
  virtual void Flush() = 0;
};

}  // namespace fncache::cache

#endif  // FNCACHE_CACHE_TIERED_STORE_H_
