// SPDX-License-Identifier: Apache-2.0
// MemoryOnly: a TieredStore without a tier below memory, under a seed that dies
// with the process.
//
// Thread-safe.
#ifndef FNCACHE_CACHE_STORE_MEMORY_ONLY_H_
#define FNCACHE_CACHE_STORE_MEMORY_ONLY_H_

#include <cstddef>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "cache/key/digest.h"
#include "cache/store/memory_store.h"
#include "cache/store/tiered_store.h"

namespace fncache::cache::store {

class MemoryOnly : public TieredStore {
 public:
  // Of the options only the memory tier's count. `observer` (null = none)
  // outlives the store.
  MemoryOnly(const TieredOptions& options, Observer* observer);

  const key::Seed& seed() const override { return seed_; }
  bool has_lower() const final { return false; }
  Found Get(const key::Key& key, absl::Time now) override {
    return memory_.Get(key, now);
  }
  Found GetMemory(const key::Key& key, absl::Time now) override {
    return memory_.Get(key, now);
  }
  void GetLower(const key::Key& key, FunctionId function, absl::Time now,
                absl::AnyInvocable<void(Found)> done) override {
    done(Found{});
  }
  PutResult Fill(const key::Key& key, EntryRef entry, bool lower,
                 absl::Time now) override {
    return memory_.Put(key, std::move(entry), now);
  }
  bool Erase(const key::Key& key) override { return memory_.Erase(key); }
  PurgedKey Purge(const key::Key& key, absl::Time until,
                  absl::Time now) override {
    return memory_.Purge(key, until, now);
  }
  std::vector<Inspection> Inspect(const key::Key& key) const override {
    return memory_.Inspect(key);
  }
  uint64_t Sweep(FunctionId function, absl::Time until) override {
    return memory_.Sweep(function, until);
  }

  StoreStats Stats() const override { return memory_.Stats(); }
  StoreStats LowerStats() const override;
  size_t QueueDepth() const override { return 0; }
  size_t LookupQueueDepth() const override { return 0; }
  absl::Status Change(const TieredChange& change, absl::Time now) override;
  void EraseSecrets(FunctionId function) override {
    memory_.EraseSecrets(function);
  }
  void Flush() override {}

 protected:
  MemoryStore memory_;

 private:
  const key::Seed seed_;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_MEMORY_ONLY_H_
