// SPDX-License-Identifier: Apache-2.0
// MemoryAndLower: memory, and the tier below it: the disk, the shared tier, or
// none. A disk tier that has no space at first opens later.
//
// Look-ups below run on a few threads, and fills wait in the write-behind queue
// until after the answer. tiered_store.h has the contract, lower_store.h what
// it asks of the tier below.
//
// Thread-safe.
#ifndef FNCACHE_CACHE_STORE_MEMORY_AND_LOWER_H_
#define FNCACHE_CACHE_STORE_MEMORY_AND_LOWER_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cache/key/key.h"
#include "cache/observer.h"
#include "cache/store/disk_directory.h"
#include "cache/store/highest_time.h"
#include "cache/store/lower_store.h"
#include "cache/store/memory_store.h"
#include "cache/store/tiered_store.h"
#include "cache/store/write_behind.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/thread_pool.h"

namespace fncache::cache::store {

// Opens the lower tier of these options.
using LowerOpener = std::function<absl::StatusOr<std::unique_ptr<LowerStore>>(
    const TieredOptions& options, Clock* clock, Observer* observer)>;

class MemoryAndLower final : public TieredStore {
 public:
  // Without a tier below. `open` opens it: Open.
  MemoryAndLower(TieredOptions options, LowerOpener open, Clock* clock,
                 Observer* observer);
  ~MemoryAndLower() override;

  // Opens the lower tier. A disk tier that is Unavailable is opened later:
  // OpenLater.
  absl::Status Open();
  // Runs without the disk tier, which could not be opened for this reason, and
  // retries every `disk_retry` on a thread.
  void OpenLater(const absl::Status& reason);

  // The address changes when the disk tier opens.
  const key::Seed& seed() const override {
    const LowerTier* const tier = lower_tier();
    return tier == nullptr ? seed_ : tier->lower->seed();
  }
  bool has_lower() const override { return lower_tier() != nullptr; }
  bool MayBeYoungerBelow() const override {
    const LowerTier* const tier = lower_tier();
    return tier != nullptr && tier->lower->is_shared();
  }
  bool MayFindBelow() override {
    const LowerTier* const tier = lower_tier();
    return tier != nullptr && tier->lower->MayFind();
  }

  Found GetMemory(const key::Key& key, absl::Time now) override {
    return ReadMemory(key, now);
  }
  Found Get(const key::Key& key, absl::Time now) override;
  void GetLower(const key::Key& key, FunctionId function, absl::Time than,
                absl::Time now, absl::AnyInvocable<void(Found)> done) override;
  PutResult Fill(const key::Key& key, EntryRef entry, bool lower,
                 absl::Time now) override;
  void Supersede(const key::Key& key, absl::Time started, FunctionId function,
                 absl::Time now) override;
  void Displace(const key::Key& key, absl::Time started, FunctionId function,
                absl::Time now) override;
  bool Erase(const key::Key& key) override;
  PurgedKey Purge(const key::Key& key, absl::Time until,
                  absl::Time now) override;
  std::vector<Inspection> Inspect(const key::Key& key) const override;
  uint64_t Sweep(FunctionId function, absl::Time until) override;
  void Forget(const key::Key& key, absl::Time until, absl::Time now) override;
  uint64_t LowerEntriesOf(FunctionId function) const override {
    const LowerTier* const tier = lower_tier();
    return tier == nullptr ? 0 : tier->lower->EntriesOf(function);
  }
  absl::Time LatestTime() const override {
    const LowerTier* const tier = lower_tier();
    return tier == nullptr ? absl::InfinitePast() : tier->lower->LatestTime();
  }

  StoreStats Stats() const override { return memory_.Stats(); }
  StoreStats LowerStats() const override;
  size_t QueueDepth() const override {
    const LowerTier* const tier = lower_tier();
    return tier == nullptr ? 0 : tier->queue->depth();
  }
  size_t LookupQueueDepth() const override {
    const LowerTier* const tier = lower_tier();
    return tier == nullptr ? 0 : tier->readers->waiting();
  }
  absl::Status Change(const TieredChange& change, absl::Time now) override;
  void EraseSecrets(FunctionId function) override {
    memory_.EraseSecrets(function);
  }
  void Flush() override {
    if (LowerTier* const tier = lower_tier()) tier->queue->Flush();
  }

 private:
  using SteadyTime = LowerStore::SteadyTime;

  // The tier below memory, with its queue and readers.
  struct LowerTier {
    std::unique_ptr<LowerStore> lower;
    std::unique_ptr<WriteBehind> queue;
    std::unique_ptr<ThreadPool> readers;
  };
  // Orders the fills of a key with its promotions: a promotion takes note of
  // `fills`, looks below without the lock, and continues only if there was no
  // fill meanwhile.
  struct Stripe {
    Mutex mutex;
    std::atomic<uint64_t> fills{0};
  };

  Stripe& StripeOf(const key::Key& key) {
    return stripes_[key.high % kStripes];
  }
  LowerTier* lower_tier() const {
    return lower_tier_.load(std::memory_order_acquire);
  }
  // The entry in memory, unless it may be purged without this process's
  // knowledge.
  Found ReadMemory(const key::Key& key, absl::Time now) {
    const LowerTier* const tier = lower_tier();
    if (tier != nullptr && !tier->lower->KnowsPurges(now)) return {};
    return memory_.Get(key, now);
  }
  // Tries to open the tier every `disk_retry` until that succeeds. On a
  // separate thread.
  void KeepOpening();
  void LogFailure(const absl::Status& status);
  // Precondition: has_lower(). As GetLower; the look-up began at `began`.
  Found LookBelow(const key::Key& key, FunctionId function, absl::Time than,
                  absl::Time now, SteadyTime began);
  void WriteBelow(LowerTier* tier, const WriteBehind::Operation& operation);
  void Tick(LowerTier* tier);
  // Deletes the entries that an earlier purge could not delete, and saves the
  // result; at most once every kCatchUp. On the queue's thread.
  void CatchUp(LowerTier* tier, absl::Time now);

  static constexpr size_t kStripes = 64;
  static constexpr std::chrono::seconds kCatchUp{1};

  Clock* const clock_;
  const std::unique_ptr<Observer> no_observer_;
  Observer* const observer_;
  const LowerOpener open_;
  const bool has_directory_;
  const absl::Duration retry_;
  const key::Seed seed_ = RandomSeed();  // without a lower tier
  MemoryStore memory_;
  HighestTime latest_;
  std::array<Stripe, kStripes> stripes_;
  std::chrono::steady_clock::time_point caught_up_;  // on the queue's thread
  std::string logged_;  // the last failure; on the opening thread

  mutable Mutex mutex_;
  CondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  // The options for the next attempt to open the disk tier.
  TieredOptions options_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<LowerTier> opened_;
  std::atomic<LowerTier*> lower_tier_{
      nullptr};  // `opened_`, once it is complete
  std::thread opener_;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_MEMORY_AND_LOWER_H_
