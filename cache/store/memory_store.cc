// SPDX-License-Identifier: Apache-2.0
#include "cache/store/memory_store.h"

#include <algorithm>
#include <utility>

#include "cache/store/memory_shard.h"

namespace fncache::cache::store {
namespace {

// There are more shards than cores to contend for them.
constexpr uint64_t kMaxShards = 64;
// Beyond four of the largest entries a shard has this much for nodes, the index
// and the entries' own headers.
constexpr uint64_t kShardSlack = 64 << 10;

uint64_t ShardCount(const MemoryStoreOptions& options) {
  // Settings may give any size; this keeps the products from overflowing.
  const uint64_t largest =
      std::min<uint64_t>(options.max_entry_bytes, uint64_t{1} << 56);
  const uint64_t least = 4 * largest + kShardSlack;
  uint64_t count = 1;
  while (count < kMaxShards && options.capacity / (count * 2) >= least) {
    count *= 2;
  }
  return count;
}

}  // namespace

MemoryStore::MemoryStore(const MemoryStoreOptions& options, Observer* observer)
    : no_observer_(observer == nullptr ? std::make_unique<Observer>()
                                       : nullptr) {
  const uint64_t count = ShardCount(options);
  for (uint64_t i = 0; i < count; ++i) {
    shards_.push_back(std::make_unique<MemoryShard>(
        options.capacity / count,
        observer == nullptr ? no_observer_.get() : observer));
  }
}

MemoryStore::~MemoryStore() = default;

MemoryShard& MemoryStore::ShardOf(const key::Key& key) const {
  // The shard is chosen by other bits than those that its own index uses.
  const uint64_t mixed = (key.high ^ key.low) * 0x9e3779b97f4a7c15ull;
  return *shards_[(mixed >> 58) & (shards_.size() - 1)];
}

Found MemoryStore::Get(const key::Key& key, absl::Time now) {
  return ShardOf(key).Get(key, now);
}

PutResult MemoryStore::Put(const key::Key& key, EntryRef entry, absl::Time now,
                           bool kept_below) {
  return ShardOf(key).Put(key, std::move(entry), now,
                          kept_below ? MemoryShard::Source::kFillAndBelow
                                     : MemoryShard::Source::kFill);
}

PutResult MemoryStore::Promote(const key::Key& key, EntryRef entry,
                               absl::Time now) {
  return ShardOf(key).Put(key, std::move(entry), now,
                          MemoryShard::Source::kPromotion);
}

bool MemoryStore::Erase(const key::Key& key) {
  return ShardOf(key).Erase(key, nullptr);
}

bool MemoryStore::EraseIf(const key::Key& key, const Entry* entry) {
  return ShardOf(key).Erase(key, entry);
}

PurgedKey MemoryStore::Purge(const key::Key& key, absl::Time until,
                             absl::Time now) {
  return {ShardOf(key).Purge(key, until, now) ? 1 : 0, /*lasting=*/true};
}

uint64_t MemoryStore::Sweep(FunctionId function, absl::Time until) {
  uint64_t removed = 0;
  const auto purged = [&](const Entry& entry) {
    return (function == kNoFunction || entry.function() == function) &&
           entry.started() <= until;
  };
  for (const auto& shard : shards_) {
    removed += shard->RemoveIf(purged, Removal::kPurged);
  }
  return removed;
}

std::vector<Inspection> MemoryStore::Inspect(const key::Key& key) const {
  Inspection there;
  there.entry = ShardOf(key).Inspect(key, &there.reads);
  if (!there.entry) return {};
  there.bytes = there.entry->charge();
  return {there};
}

void MemoryStore::Clear() {
  for (const auto& shard : shards_) {
    shard->RemoveIf([](const Entry&) { return true; }, Removal::kDropped);
  }
}

void MemoryStore::SetCapacity(uint64_t capacity, absl::Time now) {
  for (const auto& shard : shards_) {
    shard->SetCapacity(capacity / shards_.size(), now);
  }
}

void MemoryStore::EraseSecrets(FunctionId function) {
  const auto secret = [function](const Entry& entry) {
    return entry.secrets() && entry.function() == function;
  };
  for (const auto& shard : shards_) {
    shard->RemoveIf(secret, Removal::kDropped);
  }
}

StoreStats MemoryStore::Stats() const {
  StoreStats sum;
  for (const auto& shard : shards_) {
    const StoreStats stats = shard->Stats();
    sum.entries += stats.entries;
    sum.bytes += stats.bytes;
    sum.capacity += stats.capacity;
    sum.largest = stats.largest;
  }
  return sum;
}

}  // namespace fncache::cache::store
