// SPDX-License-Identifier: Apache-2.0
// MemoryShard: one shard of the memory store; see memory_store.h.
//
// Nodes lie dense in an array of chunks and refer to each other by index: a
// removed node's place is taken by the last one. The index over them is a
// linear hash table (Litwin, VLDB 1980), which grows and shrinks by one bucket
// at a time, so that no fill ever waits for a whole table to be rebuilt. Both
// give back what they do not need, so what is counted is what is held.
//
// A look-up among millions of entries spends its time waiting for memory. So a
// bucket is one cache line, and says by some bits of each key's hash which node
// to look at: a look-up waits three times, for the bucket, the node and the
// entry.
//
// Thread-safe. Look-ups share the lock.
#ifndef FNCACHE_CACHE_STORE_MEMORY_SHARD_H_
#define FNCACHE_CACHE_STORE_MEMORY_SHARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "cache/key/key.h"
#include "cache/observer.h"
#include "cache/store/chunked_array.h"
#include "cache/store/entry.h"
#include "cache/store/ghost_queue.h"
#include "cache/store/store.h"
#include "common/mutex.h"

namespace fncache::cache::store {

class MemoryShard {
 public:
  enum class Source {
    kFill,          // new, and nowhere else
    kFillAndBelow,  // new, and on its way to a lower tier
    kPromotion,     // from a lower tier
  };

  // `observer` outlives the shard.
  MemoryShard(uint64_t capacity, Observer* observer);
  ~MemoryShard();

  Found Get(const key::Key& key, absl::Time now);
  PutResult Put(const key::Key& key, EntryRef entry, absl::Time now,
                Source source);
  // Removes the key's entry, if it is `only` or `only` is null.
  bool Erase(const key::Key& key, const Entry* only);
  // Removes the key's entry if it started at or before `until`, or is from the
  // future.
  bool Purge(const key::Key& key, absl::Time until, absl::Time now);
  // Removes the entries for which `gone` is true, those aside that are filled
  // meanwhile; returns how many.
  uint64_t RemoveIf(absl::FunctionRef<bool(const Entry&)> gone, Removal why);
  // The key's entry, and how often it was read lately, without a trace.
  EntryRef Inspect(const key::Key& key, int* reads) const;
  // Changes the bound; evicts until it holds.
  void SetCapacity(uint64_t capacity, absl::Time now);
  StoreStats Stats() const;

 private:
  using Index = uint32_t;
  static constexpr Index kNone = ~Index{0};
  // How many nodes a bucket has on average.
  static constexpr size_t kLoad = 8;

  struct Node;
  struct Bucket;
  struct Queue {
    Index head = kNone;  // the newest
    Index tail = kNone;  // the oldest
    uint64_t bytes = 0;
  };
  // Entries that left the shard. They are freed once the lock is not held
  // any more.
  using Doomed = absl::InlinedVector<EntryRef, 4>;

  Node& At(Index i) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  Bucket& BucketOf(uint64_t hash) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  Index Find(const key::Key& key) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  uint64_t Used() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  void AddBucket() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropBucket() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Distributes a bucket's nodes anew, after the number of buckets changed.
  void Redistribute(Bucket* bucket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Link takes a node into the index, Unlink takes it out.
  void Link(Index i) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unlink(Index i) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the index say `to` where it says `from`, whose node is still there.
  void Relink(Index from, Index to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Queue& QueueOf(const Node& node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Enqueue(Index i) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Dequeue(Index i) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void Insert(const key::Key& key, EntryRef entry, bool main, uint8_t frequency,
              bool kept_below) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(Index i, Removal why, Doomed* doomed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves the last node into a free place.
  void FillHole(Index hole) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // False if `charge` bytes do not fit even into an empty shard.
  bool MakeRoom(uint64_t charge, absl::Time now, Doomed* doomed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns by how many bytes one more node may make the chunks grow.
  uint64_t Growth() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool ReclaimExpired(absl::Time now, Doomed* doomed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EvictOne(absl::Time now, Doomed* doomed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<uint64_t> capacity_;
  Observer* const observer_;

  mutable Mutex mutex_;
  // Their chunks have at most 40 and 64 KiB, because the allocator would fetch
  // larger ones from the system one by one.
  ChunkedArray<Node, 32, 1024> nodes_ ABSL_GUARDED_BY(mutex_);
  size_t size_ ABSL_GUARDED_BY(mutex_) = 0;
  ChunkedArray<Bucket, 8, 1024> buckets_ ABSL_GUARDED_BY(mutex_);
  size_t bucket_count_ ABSL_GUARDED_BY(mutex_) = 0;
  Queue small_ ABSL_GUARDED_BY(mutex_);
  Queue main_ ABSL_GUARDED_BY(mutex_);
  GhostQueue ghost_ ABSL_GUARDED_BY(mutex_);
  // Where the search for expired entries goes on.
  size_t hand_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_MEMORY_SHARD_H_
