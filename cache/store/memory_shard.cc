// SPDX-License-Identifier: Apache-2.0
#include "cache/store/memory_shard.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "common/huge_heap.h"

namespace fncache::cache::store {
namespace {

constexpr uint8_t kMaxFrequency = 3;
// Read more often than this in the small queue, an entry moves to the main one.
constexpr uint8_t kMoveAbove = 1;
// The small queue's part of the capacity, as the paper has it.
constexpr uint64_t kSmallPart = 10;
// An entry may have this part of the capacity at most.
constexpr uint64_t kLargestPart = 4;
// How many entries a fill that finds the shard full looks at for one that has
// expired, before it evicts a live one.
constexpr int kReclaimProbes = 4;
// How many entries one eviction may pass over because they were read. This
// bounds the time under the lock.
constexpr int kMaxPasses = 1024;
// How many entries RemoveIf looks at under one lock, and how many SetCapacity
// evicts.
constexpr size_t kSweptTogether = 1024;
constexpr int kEvictedTogether = 256;
// glibc's own bytes per allocation.
constexpr uint64_t kMallocOverhead = 16;

// Keys are hashes already. Mixing their halves saves us from relying on either.
uint64_t HashOf(const key::Key& key) {
  return key.low ^ (key.high * 0x9e3779b97f4a7c15ull);
}

uint8_t TagOf(uint64_t hash) { return static_cast<uint8_t>(hash >> 56); }

size_t HighestPowerOfTwo(size_t n) {
  return size_t{1} << (63 - __builtin_clzll(n));
}

}  // namespace

struct MemoryShard::Node {
  key::Key key;
  EntryRef entry;
  Index next = kNone;   // towards the queue's tail
  Index prev = kNone;   // towards its head
  Index chain = kNone;  // the next that found no slot in its bucket
  std::atomic<uint8_t> frequency{0};
  bool main = false;
  bool kept_below = false;

  // Called by readers that share the lock, so an update may be lost, which does
  // no harm.
  void Touch() {
    const uint8_t seen = frequency.load(std::memory_order_relaxed);
    if (seen < kMaxFrequency) {
      frequency.store(seen + 1, std::memory_order_relaxed);
    }
  }
};

// A bucket is one cache line.
struct alignas(64) MemoryShard::Bucket {
  static constexpr size_t kSlots = 12;

  Bucket() { std::fill(std::begin(nodes), std::end(nodes), kNone); }

  // The highest bits of the nodes' hashes; a node is looked at where they are
  // those that are sought.
  uint8_t tags[kSlots] = {};
  // The first of the nodes that found no slot; each names the next.
  Index chain = kNone;
  // Nodes stand without gaps; the free places (kNone) come last.
  Index nodes[kSlots];
};

MemoryShard::MemoryShard(uint64_t capacity, Observer* observer)
    : capacity_(capacity), observer_(observer) {
  static_assert(sizeof(Node) == 40, "the overhead per entry is a promise");
  static_assert(sizeof(Bucket) == 64, "it is one cache line");
  MutexLock lock(&mutex_);
  AddBucket();
}

MemoryShard::~MemoryShard() {
  for (size_t i = 0; i < size_; ++i) {
    At(static_cast<Index>(i)).entry->SetInMemory(false);
  }
}

inline MemoryShard::Node& MemoryShard::At(Index i) const { return nodes_[i]; }

inline MemoryShard::Bucket& MemoryShard::BucketOf(uint64_t hash) const {
  const size_t power = HighestPowerOfTwo(bucket_count_);
  const size_t wide = hash & (2 * power - 1);
  return buckets_[wide < bucket_count_ ? wide : wide - power];
}

MemoryShard::Index MemoryShard::Find(const key::Key& key) const {
  const uint64_t hash = HashOf(key);
  const Bucket& bucket = BucketOf(hash);
  const uint8_t tag = TagOf(hash);
  for (size_t slot = 0; slot < Bucket::kSlots; ++slot) {
    if (bucket.tags[slot] != tag) continue;
    const Index i = bucket.nodes[slot];
    if (i == kNone) return kNone;
    if (At(i).key == key) return i;
  }
  Index i = bucket.chain;
  while (i != kNone && At(i).key != key) i = At(i).chain;
  return i;
}

uint64_t MemoryShard::Used() const {
  return sizeof(*this) + small_.bytes + main_.bytes + ghost_.bytes() +
         nodes_.Bytes(kMallocOverhead) + buckets_.Bytes(kMallocOverhead);
}

uint64_t MemoryShard::Growth() const {
  uint64_t bytes = 0;
  if (size_ == nodes_.room()) bytes += nodes_.Growth(kMallocOverhead);
  if (bucket_count_ == buckets_.room()) {
    bytes += buckets_.Growth(kMallocOverhead);
  }
  return bytes;
}

// ------------------------------------------------------------- The index

void MemoryShard::AddBucket() {
  if (bucket_count_ == buckets_.room()) buckets_.Grow();
  const size_t added = bucket_count_++;
  buckets_[added] = Bucket();
  if (added == 0) return;
  // This bucket held the new one's nodes until now.
  Redistribute(&buckets_[added - HighestPowerOfTwo(added)]);
}

void MemoryShard::DropBucket() {
  Redistribute(&buckets_[--bucket_count_]);
  buckets_.ShrinkTo(bucket_count_);
}

void MemoryShard::Redistribute(Bucket* bucket) {
  const Bucket old = std::exchange(*bucket, Bucket());
  for (size_t slot = 0; slot < Bucket::kSlots; ++slot) {
    if (old.nodes[slot] == kNone) return;
    Link(old.nodes[slot]);
  }
  for (Index i = old.chain; i != kNone;) {
    const Index next = At(i).chain;
    Link(i);
    i = next;
  }
}

void MemoryShard::Link(Index i) {
  const uint64_t hash = HashOf(At(i).key);
  Bucket& bucket = BucketOf(hash);
  for (size_t slot = 0; slot < Bucket::kSlots; ++slot) {
    if (bucket.nodes[slot] != kNone) continue;
    bucket.tags[slot] = TagOf(hash);
    bucket.nodes[slot] = i;
    return;
  }
  At(i).chain = std::exchange(bucket.chain, i);
}

void MemoryShard::Unlink(Index i) {
  Bucket& bucket = BucketOf(HashOf(At(i).key));
  size_t slot = 0;
  while (slot < Bucket::kSlots && bucket.nodes[slot] != i) ++slot;
  if (slot == Bucket::kSlots) {
    Index* link = &bucket.chain;
    while (*link != i) link = &At(*link).chain;
    *link = At(i).chain;
    return;
  }
  if (bucket.chain != kNone) {
    const Index chained = bucket.chain;
    bucket.chain = At(chained).chain;
    bucket.tags[slot] = TagOf(HashOf(At(chained).key));
    bucket.nodes[slot] = chained;
    return;
  }
  size_t last = Bucket::kSlots - 1;
  while (bucket.nodes[last] == kNone) --last;
  bucket.tags[slot] = bucket.tags[last];
  bucket.nodes[slot] = bucket.nodes[last];
  bucket.nodes[last] = kNone;
}

void MemoryShard::Relink(Index from, Index to) {
  Bucket& bucket = BucketOf(HashOf(At(from).key));
  for (Index& node : bucket.nodes) {
    if (node != from) continue;
    node = to;
    return;
  }
  Index* link = &bucket.chain;
  while (*link != from) link = &At(*link).chain;
  *link = to;
}

// ------------------------------------------------------------ The queues

MemoryShard::Queue& MemoryShard::QueueOf(const Node& node) {
  return node.main ? main_ : small_;
}

void MemoryShard::Enqueue(Index i) {
  Node& node = At(i);
  Queue& queue = QueueOf(node);
  node.prev = kNone;
  node.next = queue.head;
  (queue.head == kNone ? queue.tail : At(queue.head).prev) = i;
  queue.head = i;
  queue.bytes += node.entry->charge();
}

void MemoryShard::Dequeue(Index i) {
  Node& node = At(i);
  Queue& queue = QueueOf(node);
  (node.prev == kNone ? queue.head : At(node.prev).next) = node.next;
  (node.next == kNone ? queue.tail : At(node.next).prev) = node.prev;
  queue.bytes -= node.entry->charge();
}

void MemoryShard::Insert(const key::Key& key, EntryRef entry, bool main,
                         uint8_t frequency, bool kept_below) {
  if (size_ == nodes_.room()) nodes_.Grow();
  const Index i = static_cast<Index>(size_++);
  Node& node = At(i);
  node.key = key;
  node.entry = std::move(entry);
  node.entry->SetInMemory(true);
  node.frequency.store(frequency, std::memory_order_relaxed);
  node.main = main;
  node.kept_below = kept_below;
  if (size_ > kLoad * bucket_count_) AddBucket();
  Link(i);
  Enqueue(i);
}

void MemoryShard::Remove(Index i, Removal why, Doomed* doomed) {
  Node& node = At(i);
  const Entry& entry = *node.entry;
  // The bytes are those that a fill is counted with, not the memory that it
  // took, so that bytes written less bytes deleted are those that are there.
  observer_->OnRemoved(Tier::kMemory, why, entry.function(),
                       /*last=*/!node.kept_below, 1,
                       entry.body().size() + entry.meta_rest().size());
  entry.SetInMemory(false);
  Dequeue(i);
  Unlink(i);
  doomed->push_back(std::exchange(node.entry, nullptr));
  FillHole(i);
  // A bucket goes only when the nodes are an eighth fewer than when it was
  // added, so that buckets do not come and go with every entry.
  if (bucket_count_ > 1 && kLoad * bucket_count_ > size_ + size_ / 8 + kLoad) {
    DropBucket();
  }
}

void MemoryShard::FillHole(Index hole) {
  const Index last = static_cast<Index>(--size_);
  if (hole != last) {
    Node& from = At(last);
    Node& to = At(hole);
    Relink(last, hole);
    Queue& queue = QueueOf(from);
    (from.prev == kNone ? queue.head : At(from.prev).next) = hole;
    (from.next == kNone ? queue.tail : At(from.next).prev) = hole;
    to.key = from.key;
    to.entry = std::exchange(from.entry, nullptr);
    to.next = from.next;
    to.prev = from.prev;
    to.chain = from.chain;
    to.frequency.store(from.frequency.load(std::memory_order_relaxed),
                       std::memory_order_relaxed);
    to.main = from.main;
    to.kept_below = from.kept_below;
  }
  nodes_.ShrinkTo(size_);
}

// -------------------------------------------------------------- Eviction

bool MemoryShard::ReclaimExpired(absl::Time now, Doomed* doomed) {
  for (int probe = 0; probe < kReclaimProbes; ++probe) {
    if (++hand_ >= size_) hand_ = 0;
    if (At(static_cast<Index>(hand_)).entry->kept_until() <= now) {
      Remove(static_cast<Index>(hand_), Removal::kExpired, doomed);
      return true;
    }
  }
  return false;
}

void MemoryShard::EvictOne(absl::Time now, Doomed* doomed) {
  if (ReclaimExpired(now, doomed)) return;
  for (int passes = 0;; ++passes) {
    const bool small =
        main_.tail == kNone ||
        (small_.tail != kNone && small_.bytes > capacity_ / kSmallPart);
    const Index i = small ? small_.tail : main_.tail;
    Node& node = At(i);
    const uint8_t frequency = node.frequency.load(std::memory_order_relaxed);
    if (node.entry->kept_until() <= now) {
      Remove(i, Removal::kExpired, doomed);
      return;
    }
    if (passes < kMaxPasses && frequency > (small ? kMoveAbove : 0)) {
      Dequeue(i);
      node.main = true;
      node.frequency.store(small ? 0 : frequency - 1,
                           std::memory_order_relaxed);
      Enqueue(i);
      continue;
    }
    if (small) ghost_.Insert(HashOf(node.key), size_);
    Remove(i, Removal::kEvicted, doomed);
    return;
  }
}

bool MemoryShard::MakeRoom(uint64_t charge, absl::Time now, Doomed* doomed) {
  while (Used() + Growth() + charge > capacity_) {
    if (size_ == 0) return false;
    EvictOne(now, doomed);
  }
  return true;
}

// ------------------------------------------------------------ The store

Found MemoryShard::Get(const key::Key& key, absl::Time now) {
  EntryRef expired;
  {
    ReaderMutexLock lock(&mutex_);
    const Index i = Find(key);
    if (i == kNone) return {};
    Node& node = At(i);
    const Entry& entry = *node.entry;
    if (IsFromTheFuture(entry, now)) return {nullptr, /*expired=*/true};
    if (now < entry.kept_until()) {
      node.Touch();
      return {node.entry, /*expired=*/false};
    }
    expired = node.entry;
  }
  // It is removed at once, which frees room, and the fill that follows starts
  // anew.
  Doomed doomed;
  MutexLock lock(&mutex_);
  const Index i = Find(key);
  if (i != kNone && At(i).entry.get() == expired.get()) {
    Remove(i, Removal::kExpired, &doomed);
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
  if (charge > capacity_ / kLargestPart) return too_large();
  if (entry->kept_until() <= now) return PutResult::kExpired;
  // Entries are most of what the heap holds: it grows with them.
  FollowHeap();
  {
    Doomed doomed;  // outlives the lock
    MutexLock lock(&mutex_);
    bool main = false;
    uint8_t frequency = 0;
    if (const Index i = Find(key); i != kNone) {
      Node& node = At(i);
      const Entry& there = *node.entry;
      const bool future = IsFromTheFuture(there, now);
      if (!future && there.started() > entry->started())
        return PutResult::kOlder;
      if (!future && !fill && there.started() == entry->started()) {
        return PutResult::kStored;  // promoted by another reader
      }
      node.Touch();
      main = node.main;
      frequency = node.frequency.load(std::memory_order_relaxed);
      Remove(i,
             future                      ? Removal::kDropped
             : there.kept_until() <= now ? Removal::kExpired
                                         : Removal::kReplaced,
             &doomed);
    } else {
      main = ghost_.Take(HashOf(key));
    }
    if (!MakeRoom(charge, now, &doomed)) return too_large();
    Insert(key, std::move(entry), main, frequency,
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
  const Index i = Find(key);
  if (i == kNone) return false;
  if (only != nullptr && At(i).entry.get() != only) return false;
  Remove(i, Removal::kDropped, &doomed);
  return true;
}

bool MemoryShard::Purge(const key::Key& key, absl::Time until, absl::Time now) {
  Doomed doomed;
  MutexLock lock(&mutex_);
  const Index i = Find(key);
  if (i == kNone) return false;
  const Entry& entry = *At(i).entry;
  if (entry.started() > until && !IsFromTheFuture(entry, now)) return false;
  Remove(i, Removal::kPurged, &doomed);
  return true;
}

uint64_t MemoryShard::RemoveIf(absl::FunctionRef<bool(const Entry&)> gone,
                               Removal why) {
  uint64_t removed = 0;
  // From the last node down: the places of those that go are taken by nodes
  // that were looked at. What is filled meanwhile is not looked for.
  size_t next = ~size_t{0};
  while (next > 0) {
    Doomed doomed;  // outlives the lock
    MutexLock lock(&mutex_);
    next = std::min(next, size_);
    for (size_t n = 0; n < kSweptTogether && next > 0; ++n) {
      const auto i = static_cast<Index>(--next);
      if (!gone(*At(i).entry)) continue;
      Remove(i, why, &doomed);
      ++removed;
    }
  }
  return removed;
}

EntryRef MemoryShard::Inspect(const key::Key& key, int* reads) const {
  ReaderMutexLock lock(&mutex_);
  const Index i = Find(key);
  if (i == kNone) return nullptr;
  *reads = At(i).frequency.load(std::memory_order_relaxed);
  return At(i).entry;
}

void MemoryShard::SetCapacity(uint64_t capacity, absl::Time now) {
  capacity_ = capacity;
  bool more = true;
  while (more) {
    Doomed doomed;  // outlives the lock
    MutexLock lock(&mutex_);
    for (int i = 0; i < kEvictedTogether; ++i) {
      more = size_ > 0 && Used() > capacity_;
      if (!more) break;
      EvictOne(now, &doomed);
    }
  }
}

StoreStats MemoryShard::Stats() const {
  ReaderMutexLock lock(&mutex_);
  return {size_, Used(), capacity_, /*up=*/true, capacity_ / kLargestPart};
}

}  // namespace fncache::cache::store
