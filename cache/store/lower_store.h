// SPDX-License-Identifier: Apache-2.0
// LowerStore: what memory needs of the tier below it (disk_store.h,
// shared_store.h).
//
// MemoryAndLower calls it: look-ups on a few threads, fills on the thread of
// the write-behind queue.
//
// Thread-safe; blocks on I/O.
#ifndef FNCACHE_CACHE_STORE_LOWER_STORE_H_
#define FNCACHE_CACHE_STORE_LOWER_STORE_H_

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cache/key/key.h"
#include "cache/observer.h"
#include "cache/store/bans.h"
#include "cache/store/store.h"
#include "cache/store/stored_entry.h"

namespace fncache::cache::store {

// The options of lower tiers that may change while one is open.
struct LowerChange {
  // The bound of the disk tier's files in bytes.
  uint64_t disk_bytes = 4ull << 30;
  // How long a look-up in the shared tier may take, waiting included.
  absl::Duration shared_timeout = absl::Milliseconds(50);
  // The largest value that the shared tier takes, in bytes.
  uint64_t shared_max_entry_bytes = 1 << 20;
  // The functions in the order of FunctionId; always the same ones.
  std::vector<StoredFunction> functions;
};

class LowerStore : public Store {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;

  virtual Tier tier() const = 0;
  // True: other processes fill it, too. So it may have a younger entry than
  // memory, and it does not know its entries and bytes.
  virtual bool is_shared() const = 0;

  // The secret under which keys are made. Never log it.
  virtual const key::Seed& seed() const = 0;
  // Reads the bans of earlier processes or other replicas into `bans`, and
  // keeps them from then on. Called once, before anything is served.
  virtual void Attach(Bans* bans, absl::Time now) = 0;

  // No entry here started later; not before what any call gave as its time.
  virtual absl::Time LatestTime() const = 0;
  // How many entries of a function there are, of all its generations.
  virtual uint64_t EntriesOf(FunctionId function) const = 0;

  // False: this process was stopped, and others may have purged meanwhile. Then
  // memory does not answer, either.
  virtual bool KnowsPurges(absl::Time now) const { return true; }
  // False: a look-up now would be a miss at once. It counts as one.
  virtual bool MayFind() { return true; }
  // False: a fill now would be dropped at once.
  virtual bool MayStore() const { return true; }

  // Looks up like Get, on behalf of `function`: failures are reported as its
  // own. The look-up began at `began`.
  virtual Found Find(const key::Key& key, FunctionId function, absl::Time now,
                     SteadyTime began) = 0;
  Found Get(const key::Key& key, absl::Time now) override {
    return Find(key, kNoFunction, now, std::chrono::steady_clock::now());
  }

  // Stores like Put. Where it answers kOlder, it sets `*later` (unless `later`
  // is null) to the entry that stays, if its time has not passed.
  virtual PutResult PutOrGet(const key::Key& key, EntryRef entry,
                             absl::Time now, EntryRef* later) = 0;
  PutResult Put(const key::Key& key, EntryRef entry, absl::Time now) override {
    return PutOrGet(key, std::move(entry), now, nullptr);
  }

  // Removes the key's entry unless its call started after `started`. Returns
  // kOlder, and `*later` as above, if one of a later start stays; kStored
  // otherwise, whether or not there was one.
  virtual PutResult EraseUpTo(const key::Key& key, absl::Time started,
                              FunctionId function, absl::Time now,
                              EntryRef* later) = 0;

  // From now on, in this process, look-ups do not find the key's entry unless
  // its call started after `started`. This is for fills that could not be
  // written, so that an older entry does not come back. No I/O.
  virtual void Hide(const key::Key& key, absl::Time started) = 0;

  // Takes other bounds, and other generations and rules for connection details
  // of the same functions. Entries of a function's earlier generations in this
  // process stay readable under their keys. A function whose connection details
  // may come to the disk is noted there first; where that fails, nothing
  // changes, and the error says why. From now on, connection details that are
  // no longer allowed are not found. The note stays, so that the next start
  // drops them.
  virtual absl::Status Change(const LowerChange& change) = 0;
  // Whether the entry may be here, as far as connection details go.
  virtual bool MayKeep(const Entry& entry) const = 0;
  // Whether a ban covers an entry of this process that waits to be written.
  virtual bool IsPurged(const key::Key& key, const Entry& entry) const = 0;

  // Reports that a fill never came to Put: the queue was full, the tier is
  // down, or the process ends.
  virtual void OnNotWritten(Dropped why, FunctionId function) = 0;

  // Saves the time, and tries to recover if that is due. The owner calls it
  // every few seconds.
  virtual void Tick(absl::Time now) = 0;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_LOWER_STORE_H_
