// SPDX-License-Identifier: Apache-2.0
// Store: the contract of everything that keeps entries (memory, disk, both).
//
// A store never fails a call. It reports an error to its Observer; the caller
// sees a miss, or a fill that did not happen.
//
// Every method is thread-safe. Time comes in as an argument, from one Clock.
// tests/cache/store/store_conformance_test.cc is this contract, executable.
#ifndef FNCACHE_CACHE_STORE_STORE_H_
#define FNCACHE_CACHE_STORE_STORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cache/key/key.h"
#include "cache/observer.h"
#include "cache/store/entry.h"

namespace fncache::cache::store {

// By how much an entry may have arrived after `now` and still be found: threads
// read the clock one after another. Beyond it an entry is from the future (of a
// clock that was set back), and a miss.
constexpr absl::Duration kClockTolerance = absl::Seconds(5);

inline bool IsFromTheFuture(const Entry& entry, absl::Time now) {
  return entry.arrived() > now + kClockTolerance;
}

// The result of a look-up.
struct Found {
  // The entry, if there is one and `now` is before Entry::kept_until. (Whether
  // it is still served in the last part of its lifetime, or past it, is for
  // Policy to say.)
  EntryRef entry;
  // There was an entry, but its time has passed, or it comes from the future.
  bool expired = false;
};

enum class PutResult {
  kStored,    // it was accepted; from then on it may be evicted at any time
  kOlder,     // an entry of a later start is there, and stays
  kTooLarge,  // larger than the store accepts
  kExpired,   // it would not be kept any more
  kFailed,    // an error, counted
  kPurged,    // a purge covers it
};

struct StoreStats {
  uint64_t entries = 0;
  uint64_t bytes = 0;     // in use, every overhead counted
  uint64_t capacity = 0;  // the bound on `bytes`
  bool up = true;         // look-ups and fills have somewhere to go
  uint64_t largest = 0;   // of an entry, where that follows from the bound
};

// The result of a purge of a key.
struct PurgedKey {
  int removed = 0;  // entries: one for each tier that had it
  // False: a tier that outlives the process may still have the entry. It is
  // hidden in this process and must be purged again.
  bool lasting = true;
};

// The entry of a tier under a key.
struct Inspection {
  Tier tier = Tier::kMemory;
  EntryRef entry;
  // The names of the function and generation. Only the disk tier knows them.
  std::string function;
  std::string generation;
  // The bytes that the entry takes in the tier, overhead counted.
  uint64_t bytes = 0;
  // How often it was read lately, as the tier counts that to choose what it
  // evicts: the memory tier up to 3, and it forgets.
  int reads = 0;
};

class Store {
 public:
  virtual ~Store() = default;

  virtual Found Get(const key::Key& key, absl::Time now) = 0;

  // Stores `entry` unless one of a later `started` is there (one from the
  // future does not count). Other entries are evicted to free capacity. A null
  // `entry` stands for one that could not be made, and is kTooLarge.
  virtual PutResult Put(const key::Key& key, EntryRef entry,
                        absl::Time now) = 0;

  // Removes an entry; false if there was none.
  virtual bool Erase(const key::Key& key) = 0;

  // Removes the key's entry if its call started at or before `until` (or it
  // comes from the future), and what waits to be written of it. After this has
  // returned, no entry as old is found, unless it is put.
  virtual PurgedKey Purge(const key::Key& key, absl::Time until,
                          absl::Time now) = 0;

  // The entries under the key, whether or not they may be served, the top tier
  // first. Changes nothing: no eviction order and no count.
  virtual std::vector<Inspection> Inspect(const key::Key& key) const = 0;

  virtual StoreStats Stats() const = 0;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_STORE_H_
