// SPDX-License-Identifier: Apache-2.0
#include "cache/store/memory_and_lower.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "common/threads.h"

namespace fncache::cache::store {
namespace {

// RocksDB and the queues of the disk tier start fewer threads than this.
constexpr int kOpeningThreads = 32;

}  // namespace

MemoryAndLower::MemoryAndLower(TieredOptions options, LowerOpener open,
                               Clock* clock, Observer* observer)
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

MemoryAndLower::~MemoryAndLower() {
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
  if (!opened_->lower->is_shared()) bans().Retry();
  bans().Detach();
}

absl::Status MemoryAndLower::Open() {
  TieredOptions options;
  {
    MutexLock lock(&mutex_);
    options = options_;
  }
  auto disk = open_(options, clock_, observer_);
  if (!disk.ok()) return disk.status();
  auto opened = std::make_unique<LowerTier>();
  LowerTier* const tier = opened.get();
  tier->lower = *std::move(disk);
  WriteBehind::Options queue;
  queue.max_entries = options.write_queue_entries;
  queue.max_bytes = options.write_queue_bytes;
  queue.drain = options.drain;
  tier->readers = std::make_unique<ThreadPool>(options.read_threads,
                                               options.read_queue_entries);
  MutexLock lock(&mutex_);
  // Settings may have changed since `options` was read.
  const absl::Status changed = tier->lower->Change(options_);
  if (!changed.ok()) return changed;
  // The bans come before the first entry is served.
  tier->lower->Attach(&bans(), clock_->Now());
  tier->queue = std::make_unique<WriteBehind>(
      queue,
      [this, tier](const WriteBehind::Operation& op) { WriteBelow(tier, op); },
      [this, tier] { Tick(tier); },
      [tier](const WriteBehind::Operation& op) {
        if (!op.write) return;
        tier->lower->OnNotWritten(Dropped::kShutdown, op.entry->function());
      });
  opened_ = std::move(opened);
  lower_tier_.store(tier, std::memory_order_release);
  return absl::OkStatus();
}

void MemoryAndLower::OpenLater(const absl::Status& reason) {
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

void MemoryAndLower::KeepOpening() {
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

void MemoryAndLower::LogFailure(const absl::Status& status) {
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

Found MemoryAndLower::Get(const key::Key& key, absl::Time now) {
  Found found = ReadMemory(key, now);
  if (found.entry || !has_lower()) return found;
  Found below = LookBelow(key, kNoFunction, absl::InfinitePast(), now,
                          std::chrono::steady_clock::now());
  below.expired = !below.entry && (below.expired || found.expired);
  return below;
}

void MemoryAndLower::GetLower(const key::Key& key, FunctionId function,
                              absl::Time than, absl::Time now,
                              absl::AnyInvocable<void(Found)> done) {
  LowerTier* const tier = lower_tier();
  // Shared, so that a pool that does not take the work leaves it callable.
  auto call =
      std::make_shared<absl::AnyInvocable<void(Found)>>(std::move(done));
  const SteadyTime began = std::chrono::steady_clock::now();
  ThreadPool::Work work = [this, key, function, than, now, began,
                           call](bool run) {
    (*call)(run ? LookBelow(key, function, than, now, began) : Found{});
  };
  if (tier->readers->Submit(&work)) return;
  observer_->OnError(tier->lower->tier(), TierError::kOther, function);
  (*call)(Found{});
}

Found MemoryAndLower::LookBelow(const key::Key& key, FunctionId function,
                                absl::Time than, absl::Time now,
                                SteadyTime began) {
  LowerTier* const tier = lower_tier();
  Stripe& stripe = StripeOf(key);
  const absl::Time latest = latest_.See(now);
  bool expired = false;
  // A fill in between starts it over, because the entry found may be older.
  for (int attempt = 0; attempt < 4; ++attempt) {
    const uint64_t fills = stripe.fills.load(std::memory_order_acquire);
    // Filled, perhaps, while the look-up waited for a thread.
    Found found = ReadMemory(key, now);
    if (found.entry && found.entry->started() > than) return found;
    expired |= found.expired;
    found = {};
    // Only what started later than the fill that waits is newer than it.
    absl::Time floor = than;
    if (auto pending = tier->queue->Pending(key); pending.has_value()) {
      const Entry& entry = *pending->entry;
      const bool alive =
          latest < entry.kept_until() && !IsFromTheFuture(entry, now);
      floor = std::max(floor, entry.started());
      expired |= !alive;
      // An entry that no lower tier keeps is lost when it leaves memory.
      if (pending->write && alive && entry.started() > than &&
          tier->lower->MayKeep(entry) && !tier->lower->IsPurged(key, entry)) {
        found.entry = std::move(pending->entry);
      } else if (!tier->lower->is_shared()) {
        return {nullptr, expired};
      }
    }
    if (!found.entry) {
      found = tier->lower->Find(key, function, now, began);
      expired |= found.expired;
      if (!found.entry || found.entry->started() <= floor) {
        return {nullptr, expired};
      }
      // The tier below was not told of a time at which the entry still waited.
      if (latest >= found.entry->kept_until()) {
        return {nullptr, /*expired=*/true};
      }
    }
    MutexLock lock(&stripe.mutex);
    if (stripe.fills.load(std::memory_order_relaxed) != fills) continue;
    if (memory_.Promote(key, found.entry, now) == PutResult::kOlder) {
      found = ReadMemory(key, now);
      if (found.entry && found.entry->started() <= than) found.entry = nullptr;
    }
    return found;
  }
  return {nullptr, expired};
}

PutResult MemoryAndLower::Fill(const key::Key& key, EntryRef entry, bool lower,
                               absl::Time now) {
  Stripe& stripe = StripeOf(key);
  MutexLock lock(&stripe.mutex);
  stripe.fills.fetch_add(1, std::memory_order_release);
  LowerTier* const tier = lower_tier();
  const PutResult result =
      memory_.Put(key, entry, now, /*kept_below=*/lower && tier != nullptr);
  if (result != PutResult::kStored) return result;
  if (tier == nullptr) {
    if (lower && has_directory_) {
      observer_->OnDropped(Tier::kDisk, Dropped::kError, entry->function());
    }
    return result;
  }
  // The queue's thread would only find that the tier is down. But a fill
  // replaces one of its key that waits.
  const bool down = !tier->lower->MayStore() && tier->queue->depth() == 0;
  if (down || !tier->queue->Enqueue({key, entry, lower})) {
    // The entry below under this key is older and must not come back.
    tier->lower->Hide(key, entry->started());
    if (lower) {
      tier->lower->OnNotWritten(down ? Dropped::kError : Dropped::kQueueFull,
                                entry->function());
    }
  }
  return result;
}

void MemoryAndLower::Supersede(const key::Key& key, absl::Time started,
                               FunctionId function, absl::Time now) {
  LowerTier* const tier = lower_tier();
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
    tier->lower->Hide(key, started);
  }
}

void MemoryAndLower::WriteBelow(LowerTier* tier,
                                const WriteBehind::Operation& operation) {
  const key::Key& key = operation.key;
  const EntryRef& entry = operation.entry;
  const absl::Time now = clock_->Now();
  CatchUp(tier, now);
  EntryRef later;
  const PutResult result =
      operation.write ? tier->lower->PutOrGet(key, entry, now, &later)
                      : tier->lower->EraseUpTo(key, entry->started(),
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

void MemoryAndLower::Displace(const key::Key& key, absl::Time started,
                              FunctionId function, absl::Time now) {
  Supersede(key, started, function, now);
  Stripe& stripe = StripeOf(key);
  MutexLock lock(&stripe.mutex);
  stripe.fills.fetch_add(1, std::memory_order_release);
  memory_.Purge(key, started, now);
}

bool MemoryAndLower::Erase(const key::Key& key) {
  Stripe& stripe = StripeOf(key);
  bool found = false;
  {
    MutexLock lock(&stripe.mutex);
    stripe.fills.fetch_add(1, std::memory_order_release);
    found = memory_.Erase(key);
  }
  // The mutex is not locked here, because the queue's thread may need it.
  LowerTier* const tier = lower_tier();
  if (tier == nullptr) return found;
  found |= tier->queue->Remove(key);
  found |= tier->lower->Erase(key);
  // A look-up may have promoted the entry in between.
  MutexLock lock(&stripe.mutex);
  stripe.fills.fetch_add(1, std::memory_order_release);
  memory_.Erase(key);
  return found;
}

PurgedKey MemoryAndLower::Purge(const key::Key& key, absl::Time until,
                                absl::Time now) {
  Stripe& stripe = StripeOf(key);
  PurgedKey purged;
  {
    MutexLock lock(&stripe.mutex);
    stripe.fills.fetch_add(1, std::memory_order_release);
    purged = memory_.Purge(key, until, now);
  }
  LowerTier* const tier = lower_tier();
  if (tier == nullptr) {
    // The directory may have the entry.
    purged.lasting = !has_directory_;
    return purged;
  }
  const bool queued = tier->queue->Remove(key, until, now);
  const PurgedKey below = tier->lower->Purge(key, until, now);
  purged.lasting = below.lasting;
  if (queued || below.removed > 0) ++purged.removed;
  // A look-up may have promoted the entry in between.
  MutexLock lock(&stripe.mutex);
  stripe.fills.fetch_add(1, std::memory_order_release);
  memory_.Purge(key, until, now);
  return purged;
}

std::vector<Inspection> MemoryAndLower::Inspect(const key::Key& key) const {
  std::vector<Inspection> there = memory_.Inspect(key);
  const LowerTier* const tier = lower_tier();
  if (tier == nullptr) return there;
  const auto pending = tier->queue->Pending(key);
  if (!pending.has_value()) {
    for (Inspection& below : tier->lower->Inspect(key)) {
      there.push_back(std::move(below));
    }
  } else if (pending->write) {
    // The entry counts as present.
    Inspection below;
    below.tier = tier->lower->tier();
    below.entry = pending->entry;
    below.bytes = below.entry->charge();
    there.push_back(std::move(below));
  }
  return there;
}

uint64_t MemoryAndLower::Sweep(FunctionId function, absl::Time until) {
  // Waiting entries are also in memory, or were evicted from it.
  LowerTier* const tier = lower_tier();
  const uint64_t waiting =
      tier == nullptr ? 0 : tier->queue->Sweep(function, until);
  return std::max(memory_.Sweep(function, until), waiting);
}

void MemoryAndLower::Forget(const key::Key& key, absl::Time until,
                            absl::Time now) {
  // A look-up that promotes the entry later finds the ban.
  if (LowerTier* const tier = lower_tier())
    tier->queue->Remove(key, until, now);
  Stripe& stripe = StripeOf(key);
  MutexLock lock(&stripe.mutex);
  stripe.fills.fetch_add(1, std::memory_order_release);
  memory_.Purge(key, until, now);
}

StoreStats MemoryAndLower::LowerStats() const {
  if (const LowerTier* const tier = lower_tier()) return tier->lower->Stats();
  StoreStats none;
  none.up = false;
  MutexLock lock(&mutex_);
  if (has_directory_) none.capacity = options_.disk_bytes;
  return none;
}

absl::Status MemoryAndLower::Change(const TieredChange& change,
                                    absl::Time now) {
  MutexLock lock(&mutex_);
  if (LowerTier* const tier = lower_tier()) {
    const absl::Status changed = tier->lower->Change(change);
    if (!changed.ok()) return changed;
  }
  memory_.SetCapacity(change.memory_bytes, now);
  static_cast<LowerChange&>(options_) = change;
  return absl::OkStatus();
}

void MemoryAndLower::Tick(LowerTier* tier) {
  const absl::Time now = clock_->Now();
  tier->lower->Tick(now);
  CatchUp(tier, now);
}

void MemoryAndLower::CatchUp(LowerTier* tier, absl::Time now) {
  const auto steady = std::chrono::steady_clock::now();
  if (steady - caught_up_ < kCatchUp) return;
  caught_up_ = steady;
  for (const auto& [key, until] : bans().Kept()) {
    if (tier->lower->Purge(key, until, now).lasting) bans().Deleted(key, until);
  }
  // The shared tier writes its record itself.
  if (!tier->lower->is_shared()) bans().Retry();
}

}  // namespace fncache::cache::store
