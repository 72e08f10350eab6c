// SPDX-License-Identifier: Apache-2.0
// TieredStore: memory before the disk or the shared tier. The proxy's hit path
// calls it.
//
// A look-up calls GetMemory on the serving thread and, after a miss there,
// GetLower, whose answer comes on another thread and whose entry is promoted to
// memory. A fill reaches memory at once, and the tier below after the response
// through a bounded queue.
//
// An older entry never comes back: look-ups below see the fills that still wait
// to be written, promotion never replaces a later start, and a fill that does
// not reach the tier below hides what is there under its key. There is one
// exception: when a disk that could not be opened at first can be, memory is
// emptied, and entries of before that start are served again while their time
// lasts.
//
// Keys are made under the store's seed. A disk tier that could not be opened at
// the start may open later: then the seed changes once, and memory is emptied.
// A call that made its key before may still fill under that key. No later call
// makes such a key, so the entry is never found and is evicted.
//
// Thread-safe. Flush and destruction wait for the write-behind queue.
#ifndef FNCACHE_CACHE_STORE_TIERED_STORE_H_
#define FNCACHE_CACHE_STORE_TIERED_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/key/key.h"
#include "cache/observer.h"
#include "cache/store/bans.h"
#include "cache/store/lower_store.h"
#include "cache/store/store.h"
#include "common/clock.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace fncache::cache::store {

struct TieredOptions : LowerChange {
  // The bound of the memory tier in bytes, every overhead counted.
  uint64_t memory_bytes = 256ull << 20;
  // The largest `max_entry_bytes` of all functions.
  uint64_t max_entry_bytes = 16ull << 20;
  // The disk tier's directory; absent = memory only.
  absl::optional<std::string> disk_dir;
  // Opens the shared tier; null = none. Not with disk_dir.
  std::function<std::unique_ptr<LowerStore>(Bans* bans, Clock* clock,
                                            Observer* observer)>
      open_shared;
  // How long OpenTiers waits for another process to release `disk_dir`.
  absl::Duration lock_wait = absl::ZeroDuration();
  // OpenTiers polls it during that wait; true ends it (it returns Cancelled).
  std::function<bool()> cancelled;
  // The bounds of the write-behind queue: a fill that finds either of them
  // reached is dropped.
  size_t write_queue_entries = 8192;
  uint64_t write_queue_bytes = 32ull << 20;
  // How many threads look up below, and how many look-ups may wait for them.
  int read_threads = 2;
  size_t read_queue_entries = 4096;
  // Limits how long the destructor writes queued fills. Those that remain are
  // dropped.
  absl::Duration drain = absl::Seconds(10);
  // How long after a failure to open the disk tier the next attempt follows.
  absl::Duration disk_retry = absl::Seconds(30);
  // RocksDB's environment; null is the default one. Not owned.
  rocksdb::Env* env = nullptr;
  // The bans; null makes new ones.
  std::shared_ptr<Bans> bans;
};

// The options that may change while a store is open; see TieredOptions.
struct TieredChange : LowerChange {
  uint64_t memory_bytes = 0;
};

class TieredStore : public Store {
 public:
  // Null: this store makes its own bans.
  explicit TieredStore(std::shared_ptr<Bans> bans = nullptr)
      : bans_(bans != nullptr ? std::move(bans) : std::make_shared<Bans>()) {}

  // The bans. The caller checks them for every entry that it serves, and for
  // every entry that it fills (bans.h).
  Bans& bans() const { return *bans_; }

  // The secret under which keys are made: the disk tier's, or a random one
  // while there is none. It changes at most once, and then the result is at
  // another address; both stay for as long as the store. Never log it.
  virtual const key::Seed& seed() const = 0;

  // Looks in memory, then in lower tiers, on the calling thread.
  Found Get(const key::Key& key, absl::Time now) override = 0;

  // Never blocks.
  virtual Found GetMemory(const key::Key& key, absl::Time now) = 0;

  // Once true, it stays true.
  virtual bool has_lower() const = 0;
  // Other processes fill the lower tier, too: it may have a younger entry than
  // memory.
  virtual bool MayBeYoungerBelow() const { return false; }
  // False: a look-up in the lower tiers would miss at once, and counts as one
  // that did. Precondition: has_lower().
  virtual bool MayFindBelow() { return true; }
  // Looks in the lower tiers on an I/O thread and calls `done` there, exactly
  // once; at once, with a miss, where the queue of look-ups is full. Only an
  // entry that started later than `than` counts: the start of the entry that
  // memory has, or InfinitePast. Failures are reported as those of `function`,
  // whose look-up it is. Precondition: has_lower().
  virtual void GetLower(const key::Key& key, FunctionId function,
                        absl::Time than, absl::Time now,
                        absl::AnyInvocable<void(Found)> done) = 0;

  // Fills memory now, and with `lower` the lower tiers behind. The result is
  // the memory tier's.
  virtual PutResult Fill(const key::Key& key, EntryRef entry, bool lower,
                         absl::Time now) = 0;
  PutResult Put(const key::Key& key, EntryRef entry, absl::Time now) override {
    return Fill(key, std::move(entry), /*lower=*/true, now);
  }

  // Reports that a call that started at `started` got a response that is not
  // stored. The entry of an earlier call is marked in memory
  // (Entry::Supersede). The write-behind queue removes it from lower tiers,
  // where it would be found without the mark. Never blocks.
  virtual void Supersede(const key::Key& key, absl::Time started,
                         FunctionId function, absl::Time now) {
    const Found found = GetMemory(key, now);
    if (found.entry && found.entry->started() <= started) {
      found.entry->Supersede();
    }
  }

  // The same for a call whose response is stored under another key: the entry
  // of an earlier call is removed from memory, too. Never blocks.
  virtual void Displace(const key::Key& key, absl::Time started,
                        FunctionId function, absl::Time now) = 0;

  // Removes the entries that a ban of a function (kNoFunction: of all) covers
  // from memory and from the queue. Returns how many it removed. Entries in
  // lower tiers stay, and the ban covers them.
  virtual uint64_t Sweep(FunctionId function, absl::Time until) { return 0; }
  // Removes the key's entry from memory and from the queue if its call started
  // at or before `until`. Another process has removed it below.
  virtual void Forget(const key::Key& key, absl::Time until, absl::Time now) {}
  // How many entries of a function lower tiers have, of all its generations.
  virtual uint64_t LowerEntriesOf(FunctionId function) const { return 0; }
  // No entry here started later than this, or than now.
  virtual absl::Time LatestTime() const { return absl::InfinitePast(); }

  // Stats are the memory tier's, LowerStats those of the tier below: its `up`
  // says whether there is one.
  StoreStats Stats() const override = 0;
  virtual StoreStats LowerStats() const = 0;
  // How many fills wait for the tier below.
  virtual size_t QueueDepth() const = 0;
  // How many look-ups wait for a thread.
  virtual size_t LookupQueueDepth() const = 0;

  // Takes other bounds and generations, and other rules for connection details.
  // A function whose details may go below memory is noted there first. If that
  // fails, nothing changes, and the error says why. Entries that no longer fit
  // are evicted. One call at a time.
  virtual absl::Status Change(const TieredChange& change, absl::Time now) = 0;
  // Removes the function's entries with connection details from memory.
  virtual void EraseSecrets(FunctionId function) = 0;

  // Returns once everything filled before the call is below or dropped.
  virtual void Flush() = 0;

 private:
  const std::shared_ptr<Bans> bans_;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_TIERED_STORE_H_
