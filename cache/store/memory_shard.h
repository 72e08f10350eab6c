// SPDX-License-Identifier: Apache-2.0
// MemoryShard: one shard of the memory store; see memory_store.h.
//
// The shard's queues link the entries themselves. The index over them is a
// flat_hash_set. When 7/8 of it is full it doubles at once, and lookups wait
// meanwhile: 60 ns for each entry, so 1 ms at 16,000 entries. An entry is
// accepted only if the next table fits beside the old one and all else. When
// less than an eighth of the index is in use, it shrinks.
//
// Thread-safe. Look-ups share the lock.
#ifndef FNCACHE_CACHE_STORE_MEMORY_SHARD_H_
#define FNCACHE_CACHE_STORE_MEMORY_SHARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "cache/key/key.h"
#include "cache/observer.h"
#include "cache/store/entry.h"
#include "cache/store/ghost_queue.h"
#include "cache/store/store.h"
#include "common/mutex.h"

namespace fncache::cache::store {

class MemoryShard {
 public:
  enum class Source {
    kFill,          // new, and nowhere else
    kFillAndBelow,  // new, and also written to a lower tier
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
  // Removes the entries for which `gone` is true, except entries that are
  // filled meanwhile. Returns how many.
  uint64_t RemoveIf(absl::FunctionRef<bool(const Entry&)> gone, Removal why);
  // The key's entry, and how often it was read lately, without a trace.
  EntryRef Inspect(const key::Key& key, int* reads) const;
  // Changes the bound; evicts until it holds.
  void SetCapacity(uint64_t capacity, absl::Time now);
  StoreStats Stats() const;

 private:
  static uint64_t HashOf(const key::Key& key);
  static const key::Key& KeyIn(const key::Key& key) { return key; }
  static const key::Key& KeyIn(const EntryRef& entry) { return entry->key_; }
  struct Hash {
    using is_transparent = void;
    template <typename T>
    size_t operator()(const T& of) const {
      return HashOf(KeyIn(of));
    }
  };
  struct SameKey {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return KeyIn(a) == KeyIn(b);
    }
  };
  struct Queue {
    const Entry* head = nullptr;  // the newest
    const Entry* tail = nullptr;  // the oldest
    uint64_t bytes = 0;
  };
  // Entries that left the shard. They are freed once the lock is not held
  // any more.
  using Doomed = absl::InlinedVector<EntryRef, 4>;

  // Null if there is none.
  const Entry* Find(const key::Key& key) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  uint64_t Used() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  Queue& QueueOf(const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Enqueue(const Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Dequeue(const Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Insert(const key::Key& key, EntryRef entry, bool main, uint32_t reads,
              bool kept_below) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(const Entry* entry, Removal why, Doomed* doomed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // False if `charge` bytes do not fit even into an empty shard.
  bool FreeCapacity(uint64_t charge, absl::Time now, Doomed* doomed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns how many bytes the next table has, if one more entry may need it.
  uint64_t Growth() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // The entry that the search for expired ones looks at after this one.
  const Entry* After(const Entry* entry) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool ReclaimExpired(absl::Time now, Doomed* doomed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EvictOne(absl::Time now, Doomed* doomed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<uint64_t> capacity_;
  Observer* const observer_;

  mutable Mutex mutex_;
  absl::flat_hash_set<EntryRef, Hash, SameKey> index_ ABSL_GUARDED_BY(mutex_);
  Queue small_ ABSL_GUARDED_BY(mutex_);
  Queue main_ ABSL_GUARDED_BY(mutex_);
  GhostQueue ghost_ ABSL_GUARDED_BY(mutex_);
  // Where the search for expired entries continues; null: at a tail.
  const Entry* hand_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_MEMORY_SHARD_H_
