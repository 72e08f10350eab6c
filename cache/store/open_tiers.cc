// SPDX-License-Identifier: Apache-2.0
#include "cache/store/open_tiers.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "cache/store/disk_directory.h"
#include "cache/store/memory_store.h"
#include "cache/store/write_behind.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/thread_pool.h"
#include "common/threads.h"

namespace fncache::cache::store {
namespace {

// RocksDB and the queues of the disk tier start fewer threads than this.
constexpr int kOpeningThreads = 32;

// Memory, and a disk tier that is there from the start, or later, or never.
class Tiers final : public TieredStore {
 public:
  Tiers(TieredOptions options, DiskOpener open, Clock* clock,
        Observer* observer)
      : TieredStore(options.bans),
        clock_(clock),
        no_observer_(observer == nullptr ? std::make_unique<Observer>()
                                         : nullptr),
        observer_(observer == nullptr ? no_observer_.get() : observer),
        open_(std::move(open)),
        has_directory_(options.disk_dir.has_value()),
        retry_(options.disk_retry),
        memory_({options.memory_bytes, options.max_entry_bytes}, observer_),
        options_(std::move(options)) {}

  ~Tiers() override {
    {
      MutexLock lock(&mutex_);
      stop_ = true;
      stopped_.SignalAll();
    }
    if (opener_.joinable()) opener_.join();
    if (opened_ == nullptr) return;
    opened_->readers = nullptr;
    // `queue` stays until it has stopped, because writes ask it what waits.
    opened_->queue->Stop();
    bans().Retry();
    bans().Detach();
  }

  // Opens the disk tier. On Unavailable it is opened later: OpenLater.
  absl::Status Open();
  // Runs without the disk tier, which could not be opened for this reason, and
  // retries every `disk_retry` on a thread.
  void OpenLater(const absl::Status& reason);

  // The address changes when the disk tier opens.
  const key::Seed& seed() const override {
    const DiskTier* const tier = disk_tier();
    return tier == nullptr ? seed_ : tier->disk->seed();
  }
  bool has_lower() const override { return disk_tier() != nullptr; }

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
    const DiskTier* const tier = disk_tier();
    return tier == nullptr ? 0 : tier->disk->EntriesOf(function);
  }
  absl::Time LatestTime() const override {
    const DiskTier* const tier = disk_tier();
    return tier == nullptr ? absl::InfinitePast() : tier->disk->LatestTime();
  }

  StoreStats Stats() const override { return memory_.Stats(); }
  StoreStats LowerStats() const override;
  size_t QueueDepth() const override {
    const DiskTier* const tier = disk_tier();
    return tier == nullptr ? 0 : tier->queue->depth();
  }
  size_t LookupQueueDepth() const override {
    const DiskTier* const tier = disk_tier();
    return tier == nullptr ? 0 : tier->readers->waiting();
  }
  absl::Status Change(const TieredChange& change, absl::Time now) override;
  void EraseSecrets(FunctionId function) override {
    memory_.EraseSecrets(function);
  }
  void Flush() override {
    if (DiskTier* const tier = disk_tier()) tier->queue->Flush();
  }

 private:
  // The disk tier below memory, with its queue and readers.
  struct DiskTier {
    std::unique_ptr<DiskStore> disk;
    std::unique_ptr<WriteBehind> queue;
    std::unique_ptr<ThreadPool> readers;
  };
  // Orders the fills of a key with its promotions: a promotion takes note of
  // `fills`, looks on disk without the lock, and continues only if there was no
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
  DiskTier* disk_tier() const {
    return disk_tier_.load(std::memory_order_acquire);
  }
  // Tries to open the tier every `disk_retry` until that succeeds. On a
  // separate thread.
  void KeepOpening();
  void LogFailure(const absl::Status& status);
  // Precondition: has_lower().
  Found LookBelow(const key::Key& key, FunctionId function, absl::Time now);
  void WriteToDisk(DiskTier* tier, const WriteBehind::Operation& operation);
  void Tick(DiskTier* tier);
  // Deletes the entries that an earlier purge could not delete, and saves the
  // result; at most once every kCatchUp. On the queue's thread.
  void CatchUp(DiskTier* tier, absl::Time now);

  static constexpr size_t kStripes = 64;
  static constexpr std::chrono::seconds kCatchUp{1};

  Clock* const clock_;
  const std::unique_ptr<Observer> no_observer_;
  Observer* const observer_;
  const DiskOpener open_;
  const bool has_directory_;
  const absl::Duration retry_;
  const key::Seed seed_ = RandomSeed();  // without a disk tier
  MemoryStore memory_;
  std::atomic<int64_t> latest_{0};  // Unix nanoseconds
  std::array<Stripe, kStripes> stripes_;
  std::chrono::steady_clock::time_point caught_up_;  // on the queue's thread
  std::string logged_;  // the last failure; on the opening thread

  mutable Mutex mutex_;
  CondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  // The options for the next attempt to open the disk tier.
  TieredOptions options_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<DiskTier> opened_;
  std::atomic<DiskTier*> disk_tier_{nullptr};  // `opened_`, once it is complete
  std::thread opener_;
};

absl::Status Tiers::Open() {
  TieredOptions options;
  {
    MutexLock lock(&mutex_);
    options = options_;
  }
  auto disk = open_(options, clock_, observer_);
  if (!disk.ok()) return disk.status();
  auto opened = std::make_unique<DiskTier>();
  DiskTier* const tier = opened.get();
  tier->disk = *std::move(disk);
  WriteBehind::Options queue;
  queue.max_entries = options.write_queue_entries;
  queue.max_bytes = options.write_queue_bytes;
  queue.drain = options.drain;
  tier->readers = std::make_unique<ThreadPool>(options.read_threads,
                                               options.read_queue_entries);
  MutexLock lock(&mutex_);
  // Settings may have changed since `options` was read.
  const absl::Status changed =
      tier->disk->Change(options_.disk_bytes, options_.functions);
  if (!changed.ok()) return changed;
  // The bans come before the first entry is served.
  const DiskDirectory* const directory = &tier->disk->directory();
  bans().Attach(
      directory->ReadBans(),
      [directory](absl::string_view content) {
        return directory->WriteBans(content);
      },
      std::max(clock_->Now(), tier->disk->LatestTime()));
  tier->queue = std::make_unique<WriteBehind>(
      queue,
      [this, tier](const WriteBehind::Operation& op) { WriteToDisk(tier, op); },
      [this, tier] { Tick(tier); },
      [this](const WriteBehind::Operation& op) {
        if (!op.write) return;
        observer_->OnDropped(Tier::kDisk, Dropped::kShutdown,
                             op.entry->function());
      });
  opened_ = std::move(opened);
  disk_tier_.store(tier, std::memory_order_release);
  return absl::OkStatus();
}

void Tiers::OpenLater(const absl::Status& reason) {
  bans().Await();
  LogFailure(reason);
  {
    MutexLock lock(&mutex_);
    // Only the start waits for an earlier process to release the directory.
    options_.lock_wait = absl::ZeroDuration();
    options_.cancelled = nullptr;
  }
  opener_ = std::thread([this] { KeepOpening(); });
}

void Tiers::KeepOpening() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      // Changes of the system's time do not affect this clock.
      const auto begin = std::chrono::steady_clock::now();
      absl::Duration left = retry_;
      while (left > absl::ZeroDuration() && !stop_) {
        stopped_.WaitWithTimeout(&mutex_, left);
        left =
            retry_ - absl::FromChrono(std::chrono::steady_clock::now() - begin);
      }
      if (stop_) return;
    }
    // RocksDB ends the process if it cannot create a thread.
    absl::Status opened = CheckThreads(kOpeningThreads);
    if (opened.ok()) opened = Open();
    if (opened.ok()) break;
    LogFailure(opened);
  }
  memory_.Clear();
  Log(LogLevel::kInfo,
      "the cache on disk is open: memory was emptied, keys have its seed");
}

void Tiers::LogFailure(const absl::Status& status) {
  // Each attempt uses other numbers in the names of the database's files.
  std::string reason;
  for (const char c : status.message()) {
    if (!absl::ascii_isdigit(c)) reason += c;
  }
  if (logged_ == reason) return;
  logged_ = std::move(reason);
  Log(LogLevel::kError,
      "the cache on disk cannot be opened: memory only, retrying",
      {{"every", absl::FormatDuration(retry_)}, {"error", status.message()}});
}

Found Tiers::Get(const key::Key& key, absl::Time now) {
  Found found = memory_.Get(key, now);
  if (found.entry || !has_lower()) return found;
  Found below = LookBelow(key, kNoFunction, now);
  below.expired = !below.entry && (below.expired || found.expired);
  return below;
}

void Tiers::GetLower(const key::Key& key, FunctionId function, absl::Time now,
                     absl::AnyInvocable<void(Found)> done) {
  DiskTier* const tier = disk_tier();
  // Shared, so that a pool that does not take the work leaves it callable.
  auto call =
      std::make_shared<absl::AnyInvocable<void(Found)>>(std::move(done));
  ThreadPool::Work work = [this, key, function, now, call](bool run) {
    (*call)(run ? LookBelow(key, function, now) : Found{});
  };
  if (tier->readers->Submit(&work)) return;
  observer_->OnError(Tier::kDisk, TierError::kOther, function);
  (*call)(Found{});
}

Found Tiers::LookBelow(const key::Key& key, FunctionId function,
                       absl::Time now) {
  DiskTier* const tier = disk_tier();
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
    if (auto pending = tier->queue->Pending(key); pending.has_value()) {
      const Entry& entry = *pending->entry;
      const bool alive =
          latest < entry.kept_until() && !IsFromTheFuture(entry, now);
      // An entry that no lower tier keeps is lost when it leaves memory.
      if (!pending->write || !alive || !tier->disk->MayKeep(entry) ||
          tier->disk->IsPurged(key, entry)) {
        return {nullptr, expired || !alive};
      }
      found = {std::move(pending->entry), false};
    } else {
      found = tier->disk->Find(key, function, now);
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

PutResult Tiers::Fill(const key::Key& key, EntryRef entry, bool lower,
                      absl::Time now) {
  Stripe& stripe = StripeOf(key);
  MutexLock lock(&stripe.mutex);
  stripe.fills.fetch_add(1, std::memory_order_release);
  DiskTier* const tier = disk_tier();
  const PutResult result =
      memory_.Put(key, entry, now, /*kept_below=*/lower && tier != nullptr);
  if (result != PutResult::kStored) return result;
  if (tier == nullptr) {
    if (lower && has_directory_) {
      observer_->OnDropped(Tier::kDisk, Dropped::kError, entry->function());
    }
  } else if (!tier->queue->Enqueue({key, entry, lower})) {
    // The disk's entry under this key is older and must not come back.
    tier->disk->Hide(key, entry->started());
    if (lower) {
      observer_->OnDropped(Tier::kDisk, Dropped::kQueueFull, entry->function());
    }
  }
  return result;
}

void Tiers::Supersede(const key::Key& key, absl::Time started,
                      FunctionId function, absl::Time now) {
  DiskTier* const tier = disk_tier();
  if (tier == nullptr) {
    TieredStore::Supersede(key, started, function, now);
    return;
  }
  EntryInfo info;
  info.function = function;
  info.started = started;
  info.arrived = now;
  info.lifetime = absl::Hours(1);
  // Stands for the response: lower tiers drop their entry as if the response
  // had been filled into memory only.
  EntryRef mark = Entry::Create(info, "", {});
  Stripe& stripe = StripeOf(key);
  MutexLock lock(&stripe.mutex);
  const Found found = memory_.Get(key, now);
  if (found.entry) {
    if (found.entry->started() > started) return;
    found.entry->Supersede();
  }
  const auto pending = tier->queue->Pending(key);
  if (pending.has_value() && pending->entry->started() > started) return;
  stripe.fills.fetch_add(1, std::memory_order_release);
  if (!mark || !tier->queue->Enqueue({key, std::move(mark), /*write=*/false})) {
    tier->disk->Hide(key, started);
  }
}

void Tiers::WriteToDisk(DiskTier* tier,
                        const WriteBehind::Operation& operation) {
  const key::Key& key = operation.key;
  const EntryRef& entry = operation.entry;
  const absl::Time now = clock_->Now();
  CatchUp(tier, now);
  EntryRef later;
  const PutResult result =
      operation.write ? tier->disk->PutOrGet(key, entry, now, &later)
                      : tier->disk->EraseUpTo(key, entry->started(),
                                              entry->function(), now, &later);
  if (result != PutResult::kOlder) return;
  // The memory tier had evicted the later entry and accepted an earlier one.
  Stripe& stripe = StripeOf(key);
  MutexLock lock(&stripe.mutex);
  stripe.fills.fetch_add(1, std::memory_order_release);
  const auto pending = tier->queue->Pending(key);
  const bool newest =
      !pending.has_value() || pending->entry.get() == entry.get();
  if (later && newest) memory_.Promote(key, later, now);
  memory_.EraseIf(key, entry.get());
}

bool Tiers::Erase(const key::Key& key) {
  Stripe& stripe = StripeOf(key);
  bool found = false;
  {
    MutexLock lock(&stripe.mutex);
    stripe.fills.fetch_add(1, std::memory_order_release);
    found = memory_.Erase(key);
  }
  // The mutex is not locked here, because the queue's thread may need it.
  DiskTier* const tier = disk_tier();
  if (tier == nullptr) return found;
  found |= tier->queue->Remove(key);
  found |= tier->disk->Erase(key);
  // A look-up may have promoted the entry in between.
  MutexLock lock(&stripe.mutex);
  stripe.fills.fetch_add(1, std::memory_order_release);
  memory_.Erase(key);
  return found;
}

PurgedKey Tiers::Purge(const key::Key& key, absl::Time until, absl::Time now) {
  Stripe& stripe = StripeOf(key);
  PurgedKey purged;
  {
    MutexLock lock(&stripe.mutex);
    stripe.fills.fetch_add(1, std::memory_order_release);
    purged = memory_.Purge(key, until, now);
  }
  DiskTier* const tier = disk_tier();
  if (tier == nullptr) {
    // The directory may have the entry.
    purged.lasting = !has_directory_;
    return purged;
  }
  const bool queued = tier->queue->Remove(key, until, now);
  const PurgedKey below = tier->disk->Purge(key, until, now);
  purged.lasting = below.lasting;
  if (queued || below.removed > 0) ++purged.removed;
  // A look-up may have promoted the entry in between.
  MutexLock lock(&stripe.mutex);
  stripe.fills.fetch_add(1, std::memory_order_release);
  memory_.Purge(key, until, now);
  return purged;
}

std::vector<Inspection> Tiers::Inspect(const key::Key& key) const {
  std::vector<Inspection> there = memory_.Inspect(key);
  const DiskTier* const tier = disk_tier();
  if (tier == nullptr) return there;
  const auto pending = tier->queue->Pending(key);
  if (!pending.has_value()) {
    for (Inspection& below : tier->disk->Inspect(key)) {
      there.push_back(std::move(below));
    }
  } else if (pending->write) {
    // The entry counts as present.
    Inspection below;
    below.tier = Tier::kDisk;
    below.entry = pending->entry;
    below.bytes = below.entry->charge();
    there.push_back(std::move(below));
  }
  return there;
}

uint64_t Tiers::Sweep(FunctionId function, absl::Time until) {
  // Waiting entries are also in memory, or were evicted from it.
  DiskTier* const tier = disk_tier();
  const uint64_t waiting =
      tier == nullptr ? 0 : tier->queue->Sweep(function, until);
  return std::max(memory_.Sweep(function, until), waiting);
}

StoreStats Tiers::LowerStats() const {
  if (const DiskTier* const tier = disk_tier()) return tier->disk->Stats();
  StoreStats none;
  none.up = false;
  MutexLock lock(&mutex_);
  if (has_directory_) none.capacity = options_.disk_bytes;
  return none;
}

absl::Status Tiers::Change(const TieredChange& change, absl::Time now) {
  MutexLock lock(&mutex_);
  if (DiskTier* const tier = disk_tier()) {
    const absl::Status changed =
        tier->disk->Change(change.disk_bytes, change.functions);
    if (!changed.ok()) return changed;
  }
  memory_.SetCapacity(change.memory_bytes, now);
  options_.disk_bytes = change.disk_bytes;
  options_.functions = change.functions;
  return absl::OkStatus();
}

void Tiers::Tick(DiskTier* tier) {
  const absl::Time now = clock_->Now();
  tier->disk->Tick(now);
  CatchUp(tier, now);
}

void Tiers::CatchUp(DiskTier* tier, absl::Time now) {
  const auto steady = std::chrono::steady_clock::now();
  if (steady - caught_up_ < kCatchUp) return;
  caught_up_ = steady;
  for (const auto& [key, until] : bans().Kept()) {
    if (tier->disk->Purge(key, until, now).lasting) bans().Deleted(key, until);
  }
  bans().Retry();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DiskStore>> OpenDisk(
    const TieredOptions& options, Clock* clock, Observer* observer) {
  DiskStoreOptions below;
  below.dir = *options.disk_dir;
  below.capacity = options.disk_bytes;
  below.functions = options.functions;
  below.lock_wait = options.lock_wait;
  below.cancelled = options.cancelled;
  below.env = options.env;
  below.bans = options.bans.get();
  return DiskStore::Open(std::move(below), clock, observer);
}

absl::StatusOr<std::unique_ptr<TieredStore>> OpenTiers(TieredOptions options,
                                                       Clock* clock,
                                                       Observer* observer,
                                                       DiskOpener open) {
  if (options.bans == nullptr) options.bans = std::make_shared<Bans>();
  const bool has_directory = options.disk_dir.has_value();
  auto tiers = std::make_unique<Tiers>(std::move(options), std::move(open),
                                       clock, observer);
  if (has_directory) {
    const absl::Status opened = tiers->Open();
    if (absl::IsUnavailable(opened)) {
      tiers->OpenLater(opened);
    } else if (!opened.ok()) {
      return opened;
    }
  }
  return tiers;
}

}  // namespace fncache::cache::store
