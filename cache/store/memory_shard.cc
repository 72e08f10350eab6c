// SPDX-License-Identifier: Apache-2.0
#include "cache/store/memory_shard.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "common/huge_heap.h"

namespace fncache::cache::store {
namespace {

// Read more often than this in the small queue, an entry moves to the main one.
constexpr uint32_t kMoveAbove = 1;
// The small queue's fraction of the capacity, from the paper.
constexpr uint64_t kSmallDivisor = 10;
// The largest fraction of the capacity that one entry may take.
constexpr uint64_t kLargestDivisor = 4;
// How many entries a fill that finds the shard full looks at for one that has
// expired, before it evicts a live one.
constexpr int kReclaimProbes = 4;
// How many entries one eviction may pass over because they were read. This
// bounds the time under the lock.
constexpr int kMaxPasses = 1024;
// How many entries RemoveIf and SetCapacity remove under one lock.
constexpr size_t kRemovedTogether = 256;
// glibc's own bytes per allocation.
constexpr uint64_t kMallocOverhead = 16;

// A table of the index below this size is never replaced by a smaller one.
constexpr size_t kSmallTable = 31;

// The bytes of a table: a pointer and a control byte for each slot, and a group
// of control bytes (abseil's raw_hash_set.h).
uint64_t TableBytes(size_t slots) {
  if (slots == 0) return 0;
  return slots * (sizeof(EntryRef) + 1) + 16 + sizeof(EntryRef) +
         kMallocOverhead;
}

}  // namespace

// Keys are hashes already. Mixing their halves saves us from relying on either.
uint64_t MemoryShard::HashOf(const key::Key& key) {
  return key.low ^ (key.high * 0x9e3779b97f4a7c15ull);
}

MemoryShard::MemoryShard(uint64_t capacity, Observer* observer)
    : capacity_(capacity), observer_(observer) {}

MemoryShard::~MemoryShard() {
  for (const EntryRef& entry : index_) entry->Mark(Entry::kInMemory, false);
}

inline const Entry* MemoryShard::Find(const key::Key& key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : found->get();
}

uint64_t MemoryShard::Used() const {
  return sizeof(*this) + small_.bytes + main_.bytes + ghost_.bytes() +
         TableBytes(index_.capacity());
}

uint64_t MemoryShard::Growth() const {
  const size_t slots = index_.capacity();
  // Up to 25/32 of the slots abseil reuses those of erased entries instead,
  // but for the smallest tables.
  if (slots > kSmallTable && index_.size() * 32 <= slots * 25) return 0;
  return TableBytes(2 * slots + 1);
}

// ------------------------------------------------------------ The queues

MemoryShard::Queue& MemoryShard::QueueOf(const Entry& entry) {
  return entry.Has(Entry::kInMainQueue) ? main_ : small_;
}

void MemoryShard::Enqueue(const Entry* entry) {
  Queue& queue = QueueOf(*entry);
  entry->prev_ = nullptr;
  entry->next_ = queue.head;
  (queue.head == nullptr ? queue.tail : queue.head->prev_) = entry;
  queue.head = entry;
  queue.bytes += entry->charge();
}

void MemoryShard::Dequeue(const Entry* entry) {
  if (hand_ == entry) hand_ = entry->prev_;
  Queue& queue = QueueOf(*entry);
  (entry->prev_ == nullptr ? queue.head : entry->prev_->next_) = entry->next_;
  (entry->next_ == nullptr ? queue.tail : entry->next_->prev_) = entry->prev_;
  queue.bytes -= entry->charge();
}

void MemoryShard::Insert(const key::Key& key, EntryRef entry, bool main,
                         uint32_t reads, bool kept_below) {
  entry->key_ = key;
  entry->Mark(Entry::kInMemory, true);
  entry->Mark(Entry::kInMainQueue, main);
  entry->Mark(Entry::kKeptBelow, kept_below);
  entry->SetReads(reads);
  Enqueue(entry.get());
  index_.insert(std::move(entry));
}

void MemoryShard::Remove(const Entry* entry, Removal why, Doomed* doomed) {
  // The bytes are those that a fill is counted with, not the memory that it
  // took, so that bytes written less bytes deleted are those that are there.
  observer_->OnRemoved(Tier::kMemory, why, entry->function(),
                       /*last=*/!entry->Has(Entry::kKeptBelow), 1,
                       entry->body().size() + entry->meta_rest().size());
  entry->Mark(Entry::kInMemory, false);
  Dequeue(entry);
  const auto at = index_.find(entry->key_);
  doomed->push_back(*at);
  index_.erase(at);
  if (index_.capacity() > kSmallTable &&
      index_.size() < index_.capacity() / 8) {
    index_.rehash(0);
  }
}

// -------------------------------------------------------------- Eviction

const Entry* MemoryShard::After(const Entry* entry) const {
  if (entry != nullptr && entry->prev_ != nullptr) return entry->prev_;
  // The small queue, then the main one.
  const bool small = entry == nullptr || entry->Has(Entry::kInMainQueue);
  const Entry* const next = small ? small_.tail : main_.tail;
  if (next != nullptr) return next;
  return small ? main_.tail : small_.tail;
}

bool MemoryShard::ReclaimExpired(absl::Time now, Doomed* doomed) {
  for (int probe = 0; probe < kReclaimProbes; ++probe) {
    hand_ = After(hand_);
    if (hand_->kept_until() <= now) {
      Remove(hand_, Removal::kExpired, doomed);
      return true;
    }
  }
  return false;
}

void MemoryShard::EvictOne(absl::Time now, Doomed* doomed) {
  if (ReclaimExpired(now, doomed)) return;
  for (int passes = 0;; ++passes) {
    const bool small =
        main_.tail == nullptr ||
        (small_.tail != nullptr && small_.bytes > capacity_ / kSmallDivisor);
    const Entry* const entry = small ? small_.tail : main_.tail;
    if (entry->kept_until() <= now) {
      Remove(entry, Removal::kExpired, doomed);
      return;
    }
    const uint32_t reads = entry->reads();
    if (passes < kMaxPasses && reads > (small ? kMoveAbove : 0)) {
      Dequeue(entry);
      entry->Mark(Entry::kInMainQueue, true);
      entry->SetReads(small ? 0 : reads - 1);
      Enqueue(entry);
      continue;
    }
    if (small) ghost_.Insert(HashOf(entry->key_), index_.size());
    Remove(entry, Removal::kEvicted, doomed);
    return;
  }
}

bool MemoryShard::FreeCapacity(uint64_t charge, absl::Time now,
                               Doomed* doomed) {
  while (Used() + Growth() + charge > capacity_) {
    if (index_.empty()) return false;
    EvictOne(now, doomed);
  }
  return true;
}

// ------------------------------------------------------------ The store

Found MemoryShard::Get(const key::Key& key, absl::Time now) {
  EntryRef expired;
  {
    ReaderMutexLock lock(&mutex_);
    const auto found = index_.find(key);
    if (found == index_.end()) return {};
    const Entry& entry = **found;
    if (IsFromTheFuture(entry, now)) return {nullptr, /*expired=*/true};
    if (now < entry.kept_until()) {
      entry.CountRead();
      return {*found, /*expired=*/false};
    }
    expired = *found;
  }
  // The entry is removed at once, which frees memory, and the fill that follows
  // starts with a new one.
  Doomed doomed;
  MutexLock lock(&mutex_);
  if (Find(key) == expired.get()) {
    Remove(expired.get(), Removal::kExpired, &doomed);
  }
  return {nullptr, /*expired=*/true};
}

PutResult MemoryShard::Put(const key::Key& key, EntryRef entry, absl::Time now,
                           Source source) {
  const auto begin = std::chrono::steady_clock::now();
  if (!entry) return PutResult::kTooLarge;
  const FunctionId function = entry->function();
  const uint64_t charge = entry->charge();
  const bool fill = source != Source::kPromotion;
  const auto too_large = [&] {
    if (fill) {
      observer_->OnDropped(Tier::kMemory, Dropped::kTooLarge, function);
    }
    return PutResult::kTooLarge;
  };
  if (charge > capacity_ / kLargestDivisor) return too_large();
  if (entry->kept_until() <= now) return PutResult::kExpired;
  // Entries are most of what the heap holds: it grows with them.
  FollowHeap();
  {
    Doomed doomed;  // outlives the lock
    MutexLock lock(&mutex_);
    bool main = false;
    uint32_t reads = 0;
    if (const Entry* const there = Find(key); there != nullptr) {
      const bool future = IsFromTheFuture(*there, now);
      if (!future && there->started() > entry->started()) {
        return PutResult::kOlder;
      }
      if (!future && !fill && there->started() == entry->started()) {
        return PutResult::kStored;  // promoted by another reader
      }
      there->CountRead();
      main = there->Has(Entry::kInMainQueue);
      reads = there->reads();
      Remove(there,
             future                       ? Removal::kDropped
             : there->kept_until() <= now ? Removal::kExpired
                                          : Removal::kReplaced,
             &doomed);
    } else {
      main = ghost_.Take(HashOf(key));
    }
    if (!FreeCapacity(charge, now, &doomed)) return too_large();
    Insert(key, std::move(entry), main, reads,
           /*kept_below=*/source != Source::kFill);
  }
  if (fill) {
    observer_->OnWritten(
        Tier::kMemory, function, charge,
        absl::FromChrono(std::chrono::steady_clock::now() - begin));
  }
  return PutResult::kStored;
}

bool MemoryShard::Erase(const key::Key& key, const Entry* only) {
  Doomed doomed;
  MutexLock lock(&mutex_);
  const Entry* const entry = Find(key);
  if (entry == nullptr || (only != nullptr && entry != only)) return false;
  Remove(entry, Removal::kDropped, &doomed);
  return true;
}

bool MemoryShard::Purge(const key::Key& key, absl::Time until, absl::Time now) {
  Doomed doomed;
  MutexLock lock(&mutex_);
  const Entry* const entry = Find(key);
  if (entry == nullptr ||
      (entry->started() > until && !IsFromTheFuture(*entry, now))) {
    return false;
  }
  Remove(entry, Removal::kPurged, &doomed);
  return true;
}

uint64_t MemoryShard::RemoveIf(absl::FunctionRef<bool(const Entry&)> gone,
                               Removal why) {
  std::vector<EntryRef> found;
  {
    ReaderMutexLock lock(&mutex_);
    for (const EntryRef& entry : index_) {
      if (gone(*entry)) found.push_back(entry);
    }
  }
  uint64_t removed = 0;
  for (size_t next = 0; next < found.size();) {
    Doomed doomed;  // outlives the lock
    MutexLock lock(&mutex_);
    for (size_t n = 0; n < kRemovedTogether && next < found.size(); ++n) {
      const Entry* const entry = found[next++].get();
      if (Find(entry->key_) != entry) continue;  // it left meanwhile
      Remove(entry, why, &doomed);
      ++removed;
    }
  }
  return removed;
}

EntryRef MemoryShard::Inspect(const key::Key& key, int* reads) const {
  ReaderMutexLock lock(&mutex_);
  const auto found = index_.find(key);
  if (found == index_.end()) return nullptr;
  *reads = static_cast<int>((*found)->reads());
  return *found;
}

void MemoryShard::SetCapacity(uint64_t capacity, absl::Time now) {
  capacity_ = capacity;
  bool more = true;
  while (more) {
    Doomed doomed;  // outlives the lock
    MutexLock lock(&mutex_);
    for (size_t n = 0; n < kRemovedTogether; ++n) {
      more = !index_.empty() && Used() > capacity_;
      if (!more) break;
      EvictOne(now, &doomed);
    }
  }
}

StoreStats MemoryShard::Stats() const {
  ReaderMutexLock lock(&mutex_);
  return {index_.size(), Used(), capacity_, /*up=*/true,
          capacity_ / kLargestDivisor};
}

}  // namespace fncache::cache::store
