// SPDX-License-Identifier: Apache-2.0
#include "cache/store/memory_and_disk.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <utility>

#include "cache/store/memory_store.h"
#include "cache/store/write_behind.h"
#include "common/mutex.h"
#include "common/thread_pool.h"

namespace fncache::cache::store {
namespace {

class MemoryAndDisk final : public TieredStore {
 public:
  MemoryAndDisk(const TieredOptions& options, std::unique_ptr<DiskStore> disk,
                Clock* clock, Observer* observer)
      : TieredStore(options.bans),
        clock_(clock),
        no_observer_(observer == nullptr ? std::make_unique<Observer>()
                                         : nullptr),
        observer_(observer == nullptr ? no_observer_.get() : observer),
        memory_({options.memory_bytes, options.max_entry_bytes}, observer_),
        disk_(std::move(disk)) {
    WriteBehind::Options queue;
    queue.max_entries = options.write_queue_entries;
    queue.max_bytes = options.write_queue_bytes;
    queue.drain = options.drain;
    queue_ = std::make_unique<WriteBehind>(
        queue, [this](const WriteBehind::Operation& op) { WriteToDisk(op); },
        [this] { Tick(); },
        [this](const WriteBehind::Operation& op) {
          if (!op.write) return;
          observer_->OnDropped(Tier::kDisk, Dropped::kShutdown,
                               op.entry->function());
        });
    readers_ = std::make_unique<ThreadPool>(options.read_threads,
                                            options.read_queue_entries);
  }

  ~MemoryAndDisk() override {
    readers_.reset();
    // The queue is stopped while `queue_` still points to it, because it is
    // asked for what waits while it drains.
    queue_->Stop();
    bans().Retry();
    bans().Detach();
  }

  const key::Seed& seed() const override { return disk_->seed(); }
  bool has_lower() const override { return true; }

  Found GetMemory(const key::Key& key, absl::Time now) override {
    return memory_.Get(key, now);
  }
  Found Get(const key::Key& key, absl::Time now) override;
  void GetLower(const key::Key& key, FunctionId function, absl::Time now,
                absl::AnyInvocable<void(Found)> done) override;
  PutResult Fill(const key::Key& key, EntryRef entry, bool lower,
                 absl::Time now) override;
  void Supersede(const key::Key& key, absl::Time started, FunctionId function,
                 absl::Time now) override;
  bool Erase(const key::Key& key) override;
  PurgedKey Purge(const key::Key& key, absl::Time until,
                  absl::Time now) override;
  std::vector<Inspection> Inspect(const key::Key& key) const override;
  uint64_t Sweep(FunctionId function, absl::Time until) override;
  uint64_t LowerEntriesOf(FunctionId function) const override {
    return disk_->EntriesOf(function);
  }
  absl::Time LatestTime() const override { return disk_->LatestTime(); }

  StoreStats Stats() const override { return memory_.Stats(); }
  StoreStats LowerStats() const override { return disk_->Stats(); }
  size_t QueueDepth() const override { return queue_->depth(); }
  size_t LookupQueueDepth() const override { return readers_->waiting(); }
  absl::Status Change(const TieredChange& change, absl::Time now) override {
    const absl::Status changed =
        disk_->Change(change.disk_bytes, change.functions);
    if (changed.ok()) memory_.SetCapacity(change.memory_bytes, now);
    return changed;
  }
  void EraseSecrets(FunctionId function) override {
    memory_.EraseSecrets(function);
  }
  void Flush() override { queue_->Flush(); }

 private:
  // Orders the fills of a key with its promotions: a promotion takes note of
  // `fills`, looks on disk without the lock, and goes on only if there was no
  // fill meanwhile.
  struct Stripe {
    Mutex mutex;
    std::atomic<uint64_t> fills{0};
  };

  // The latest of all times given so far, so that an entry that has expired
  // stays so.
  absl::Time Latest(absl::Time now) {
    const int64_t given = absl::ToUnixNanos(now);
    int64_t seen = latest_.load(std::memory_order_relaxed);
    while (seen < given && !latest_.compare_exchange_weak(
                               seen, given, std::memory_order_relaxed)) {
    }
    return absl::FromUnixNanos(std::max(seen, given));
  }
  Stripe& StripeOf(const key::Key& key) {
    return stripes_[key.high % kStripes];
  }
  Found LookBelow(const key::Key& key, FunctionId function, absl::Time now);
  void WriteToDisk(const WriteBehind::Operation& operation);
  void Tick();
  // Deletes what an earlier purge could not, and writes down what it was; once
  // in kCatchUp at most. On the queue's thread.
  void CatchUp(absl::Time now);

  static constexpr size_t kStripes = 64;
  static constexpr std::chrono::seconds kCatchUp{1};

  Clock* const clock_;
  const std::unique_ptr<Observer> no_observer_;
  Observer* const observer_;
  MemoryStore memory_;
  const std::unique_ptr<DiskStore> disk_;
  std::atomic<int64_t> latest_{0};  // Unix nanoseconds
  std::array<Stripe, kStripes> stripes_;
  std::chrono::steady_clock::time_point caught_up_;  // the queue's thread's own
  std::unique_ptr<WriteBehind> queue_;
  std::unique_ptr<ThreadPool> readers_;
};

Found MemoryAndDisk::Get(const key::Key& key, absl::Time now) {
  Found found = memory_.Get(key, now);
  if (found.entry) return found;
  Found below = LookBelow(key, kNoFunction, now);
  below.expired = !below.entry && (below.expired || found.expired);
  return below;
}

void MemoryAndDisk::GetLower(const key::Key& key, FunctionId function,
                             absl::Time now,
                             absl::AnyInvocable<void(Found)> done) {
  // Shared, so that a pool that does not take the work leaves it callable.
  auto call =
      std::make_shared<absl::AnyInvocable<void(Found)>>(std::move(done));
  ThreadPool::Work work = [this, key, function, now, call](bool run) {
    (*call)(run ? LookBelow(key, function, now) : Found{});
  };
  if (readers_->Submit(&work)) return;
  observer_->OnError(Tier::kDisk, TierError::kOther, function);
  (*call)(Found{});
}

Found MemoryAndDisk::LookBelow(const key::Key& key, FunctionId function,
                               absl::Time now) {
  Stripe& stripe = StripeOf(key);
  const absl::Time latest = Latest(now);
  bool expired = false;
  // A fill in between starts it over, because the entry found may be older.
  for (int attempt = 0; attempt < 4; ++attempt) {
    const uint64_t fills = stripe.fills.load(std::memory_order_acquire);
    // Filled, perhaps, while the look-up waited for a thread.
    Found found = memory_.Get(key, now);
    if (found.entry) return found;
    expired |= found.expired;
    if (auto pending = queue_->Pending(key); pending.has_value()) {
      const Entry& entry = *pending->entry;
      const bool alive =
          latest < entry.kept_until() && !IsFromTheFuture(entry, now);
      // An entry that is not kept below is gone when it leaves memory.
      if (!pending->write || !alive || !disk_->MayKeep(entry) ||
          disk_->IsPurged(key, entry)) {
        return {nullptr, expired || !alive};
      }
      found = {std::move(pending->entry), false};
    } else {
      found = disk_->Find(key, function, now);
    }
    if (!found.entry) return {nullptr, expired || found.expired};
    MutexLock lock(&stripe.mutex);
    if (stripe.fills.load(std::memory_order_relaxed) != fills) continue;
    if (memory_.Promote(key, found.entry, now) == PutResult::kOlder) {
      return memory_.Get(key, now);
    }
    return found;
  }
  return {nullptr, expired};
}

PutResult MemoryAndDisk::Fill(const key::Key& key, EntryRef entry, bool lower,
                              absl::Time now) {
  Stripe& stripe = StripeOf(key);
  MutexLock lock(&stripe.mutex);
  stripe.fills.fetch_add(1, std::memory_order_release);
  const PutResult result = memory_.Put(key, entry, now, /*kept_below=*/lower);
  if (result != PutResult::kStored) return result;
  if (!queue_->Enqueue({key, entry, lower})) {
    // The disk's entry under this key is older and must not come back.
    disk_->Hide(key, entry->started());
    if (lower) {
      observer_->OnDropped(Tier::kDisk, Dropped::kQueueFull, entry->function());
    }
  }
  return result;
}

void MemoryAndDisk::Supersede(const key::Key& key, absl::Time started,
                              FunctionId function, absl::Time now) {
  EntryInfo info;
  info.function = function;
  info.started = started;
  info.arrived = now;
  info.lifetime = absl::Hours(1);
  // Stands for the answer: what is below is to go as if that had been filled
  // for memory alone.
  EntryRef mark = Entry::Create(info, "", {});
  Stripe& stripe = StripeOf(key);
  MutexLock lock(&stripe.mutex);
  const Found found = memory_.Get(key, now);
  if (found.entry) {
    if (found.entry->started() > started) return;
    found.entry->Supersede();
  }
  const auto pending = queue_->Pending(key);
  if (pending.has_value() && pending->entry->started() > started) return;
  stripe.fills.fetch_add(1, std::memory_order_release);
  if (!mark || !queue_->Enqueue({key, std::move(mark), /*write=*/false})) {
    disk_->Hide(key, started);
  }
}

void MemoryAndDisk::WriteToDisk(const WriteBehind::Operation& operation) {
  const key::Key& key = operation.key;
  const EntryRef& entry = operation.entry;
  const absl::Time now = clock_->Now();
  CatchUp(now);
  EntryRef later;
  const PutResult result =
      operation.write ? disk_->PutOrGet(key, entry, now, &later)
                      : disk_->EraseUpTo(key, entry->started(),
                                         entry->function(), now, &later);
  if (result != PutResult::kOlder) return;
  // The memory tier had lost the later one and took an earlier one for new.
  Stripe& stripe = StripeOf(key);
  MutexLock lock(&stripe.mutex);
  stripe.fills.fetch_add(1, std::memory_order_release);
  const auto pending = queue_->Pending(key);
  const bool newest =
      !pending.has_value() || pending->entry.get() == entry.get();
  if (later && newest) memory_.Promote(key, later, now);
  memory_.EraseIf(key, entry.get());
}

bool MemoryAndDisk::Erase(const key::Key& key) {
  Stripe& stripe = StripeOf(key);
  bool found = false;
  {
    MutexLock lock(&stripe.mutex);
    stripe.fills.fetch_add(1, std::memory_order_release);
    found = memory_.Erase(key);
  }
  // The lock is not held, because the queue's thread may want it.
  found |= queue_->Remove(key);
  found |= disk_->Erase(key);
  // A look-up may have promoted the entry in between.
  MutexLock lock(&stripe.mutex);
  stripe.fills.fetch_add(1, std::memory_order_release);
  memory_.Erase(key);
  return found;
}

PurgedKey MemoryAndDisk::Purge(const key::Key& key, absl::Time until,
                               absl::Time now) {
  Stripe& stripe = StripeOf(key);
  PurgedKey purged;
  {
    MutexLock lock(&stripe.mutex);
    stripe.fills.fetch_add(1, std::memory_order_release);
    purged = memory_.Purge(key, until, now);
  }
  const bool queued = queue_->Remove(key, until, now);
  const PurgedKey below = disk_->Purge(key, until, now);
  purged.lasting = below.lasting;
  if (queued || below.removed > 0) ++purged.removed;
  // A look-up may have promoted the entry in between.
  MutexLock lock(&stripe.mutex);
  stripe.fills.fetch_add(1, std::memory_order_release);
  memory_.Purge(key, until, now);
  return purged;
}

std::vector<Inspection> MemoryAndDisk::Inspect(const key::Key& key) const {
  std::vector<Inspection> there = memory_.Inspect(key);
  const auto pending = queue_->Pending(key);
  if (!pending.has_value()) {
    for (Inspection& below : disk_->Inspect(key)) {
      there.push_back(std::move(below));
    }
  } else if (pending->write) {
    // It is as good as there.
    Inspection below;
    below.tier = Tier::kDisk;
    below.entry = pending->entry;
    below.bytes = below.entry->charge();
    there.push_back(std::move(below));
  }
  return there;
}

uint64_t MemoryAndDisk::Sweep(FunctionId function, absl::Time until) {
  // Entries that wait are in memory, too, or have left it to be on disk only.
  const uint64_t waiting = queue_->Sweep(function, until);
  return std::max(memory_.Sweep(function, until), waiting);
}

void MemoryAndDisk::Tick() {
  const absl::Time now = clock_->Now();
  disk_->Tick(now);
  CatchUp(now);
}

void MemoryAndDisk::CatchUp(absl::Time now) {
  const auto steady = std::chrono::steady_clock::now();
  if (steady - caught_up_ < kCatchUp) return;
  caught_up_ = steady;
  for (const auto& [key, until] : bans().Kept()) {
    if (disk_->Purge(key, until, now).lasting) bans().Deleted(key, until);
  }
  bans().Retry();
}

}  // namespace

std::unique_ptr<TieredStore> MakeMemoryAndDisk(const TieredOptions& options,
                                               std::unique_ptr<DiskStore> disk,
                                               Clock* clock,
                                               Observer* observer) {
  return std::make_unique<MemoryAndDisk>(options, std::move(disk), clock,
                                         observer);
}

}  // namespace fncache::cache::store
