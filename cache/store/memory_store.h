// SPDX-License-Identifier: Apache-2.0
// MemoryStore: the tier that answers hits, in bounded memory.
//
// Sharded by key. Within a shard entries are kept by S3-FIFO (Yang, Zhang, Qiu,
// Yue, Rashmi: "FIFO queues are all you need for cache eviction", SOSP 2023):
// new keys enter a small queue, those read again move on to the main queue, and
// keys that left the small queue unread are remembered in a ghost queue for a
// while, so that a scan of keys never seen again does not displace what is in
// use.
//
// A hit takes its shard's reader lock and bumps an atomic counter; queues are
// only touched by fills. Readers share entries by reference, so an entry may
// outlive its removal from the store.
//
// Every byte of memory that an entry causes counts against the capacity: its
// allocation, its slot in the index and its mark in the ghost queue.
//
// Thread-safe.
#ifndef FNCACHE_CACHE_STORE_MEMORY_STORE_H_
#define FNCACHE_CACHE_STORE_MEMORY_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "cache/observer.h"
#include "cache/store/store.h"

namespace fncache::cache::store {

class MemoryShard;

struct MemoryStoreOptions {
  // Bound in bytes.
  uint64_t capacity = 256ull << 20;
  // The largest entry that is expected: a shard holds at least four of them.
  // Where `capacity` does not, there is one shard, and an entry over a quarter
  // of it is not accepted.
  uint64_t max_entry_bytes = 16ull << 20;
};

class MemoryStore final : public Store {
 public:
  // `observer` (null = none) outlives the store.
  MemoryStore(const MemoryStoreOptions& options, Observer* observer);
  ~MemoryStore() override;

  // Also removes the entry if it is expired (Found.expired).
  Found Get(const key::Key& key, absl::Time now) override;

  // Fills the key, and reports it to the observer.
  PutResult Put(const key::Key& key, EntryRef entry, absl::Time now) override {
    return Put(key, std::move(entry), now, /*kept_below=*/false);
  }
  // `kept_below`: a lower tier keeps the entry too, so that it is not lost when
  // it leaves this one.
  PutResult Put(const key::Key& key, EntryRef entry, absl::Time now,
                bool kept_below);
  // Takes over an entry that was found in a lower tier. Unlike a fill, it is
  // not reported to the observer.
  PutResult Promote(const key::Key& key, EntryRef entry, absl::Time now);

  bool Erase(const key::Key& key) override;
  // Removes the key's entry only if it is this one.
  bool EraseIf(const key::Key& key, const Entry* entry);

  PurgedKey Purge(const key::Key& key, absl::Time until,
                  absl::Time now) override;
  // Removes the entries of a function (kNoFunction: of all) that started at or
  // before `until`, those aside that are filled meanwhile; returns how many.
  uint64_t Sweep(FunctionId function, absl::Time until);
  std::vector<Inspection> Inspect(const key::Key& key) const override;

  // Removes every entry, those aside that are filled meanwhile.
  void Clear();

  // Changes the bound, and evicts until it holds. The shards stay as many as
  // they are, so an entry over a quarter of what each has then is not accepted.
  void SetCapacity(uint64_t capacity, absl::Time now);
  // Removes the function's entries with connection details.
  void EraseSecrets(FunctionId function);

  StoreStats Stats() const override;

  // Tests and benchmarks check by it how capacity is divided.
  size_t shards() const { return shards_.size(); }

 private:
  MemoryShard& ShardOf(const key::Key& key) const;

  const std::unique_ptr<Observer> no_observer_;
  std::vector<std::unique_ptr<MemoryShard>> shards_;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_MEMORY_STORE_H_
