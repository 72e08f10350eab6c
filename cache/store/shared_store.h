// SPDX-License-Identifier: Apache-2.0
// SharedStore: the tier that a fleet has in common, on a Redis or Valkey
// server.
//
// Entries are sealed (seal.h, shared_value.h). Nothing from the server is
// believed until it has opened. A fill is one script, which replaces only what
// started earlier. The bans of the fleet are one sealed record there, changed
// by compare-and-set.
//
// Once a second Sync asks for the beginning of the record and for the server's
// time. It reads the record if its beginning changed, learns what it says, and
// writes it again if it lacks a ban that this process knows. The tier is used
// only while that succeeded within the last kRecordLimit, and while the clocks
// differ by at most kClockLimit. Meanwhile a look-up is a miss at once, and a
// fill is dropped.
//
// A value that does not open is a miss. It is counted as rejected, and Sync
// deletes it.
//
// Thread-safe. Find blocks for `timeout` at most, everything else for
// kWriteLimit on each command.
#ifndef FNCACHE_CACHE_STORE_SHARED_STORE_H_
#define FNCACHE_CACHE_STORE_SHARED_STORE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cache/key/key.h"
#include "cache/observer.h"
#include "cache/store/bans.h"
#include "cache/store/lower_store.h"
#include "cache/store/seal.h"
#include "cache/store/shared_record.h"
#include "cache/store/shared_scripts.h"
#include "cache/store/stored_entry.h"
#include "common/clock.h"
#include "resp/server.h"

namespace fncache::cache::store {

struct SharedStoreOptions {
  // The server; see resp/client.h.
  std::unique_ptr<resp::Server> server;
  // At least Seal::kMinSecret bytes.
  std::string secret;
  std::string prefix = "fncache";
  // The functions in the order of FunctionId.
  std::vector<StoredFunction> functions;
  // The time of a look-up, waiting for a thread included.
  absl::Duration timeout = absl::Milliseconds(50);
  // The largest value that is stored, in bytes.
  uint64_t max_entry_bytes = 1 << 20;
  // Called with what the record says and this process did not know, after the
  // bans have it. On the thread that called Sync, and without a lock of this
  // store; it may not call Sync, nor Save or lasting of the bans. May be null.
  //
  // A record that could not be read for longer than kKeyLasts may have lost
  // bans of keys meanwhile. The next reading is reported with `all`, `hard` and
  // the present time as `before`, and adds no ban: memory is to be emptied.
  std::function<void(const Bans::Learned&)> learned;
  // A clock that counts suspension; null is CLOCK_BOOTTIME.
  std::function<absl::Duration()> boottime;
  // False: Sync is called by the owner alone (tests).
  bool sync_by_itself = true;
};

// The state of the tier, for metrics and pages.
struct SharedFigures : SharedRecord::State {
  resp::ServerFigures server;

  enum Lookup { kHit, kMiss, kTimeout, kDown, kRejected, kLookupPurged };
  std::array<uint64_t, 6> lookups = {};
  enum Write { kStored, kOlder, kRefused, kDropped };
  std::array<uint64_t, 4> writes = {};
};

class SharedStore : public LowerStore {
 public:
  static constexpr absl::Duration kRecordLimit = SharedRecord::kRecordLimit;
  static constexpr absl::Duration kClockLimit = SharedRecord::kClockLimit;
  // The time of every command but look-ups.
  static constexpr absl::Duration kWriteLimit = kCommandLimit;
  // How long the mark and the ban of a purged key last.
  static constexpr absl::Duration kKeyLasts = SharedRecord::kKeyLasts;
  static constexpr absl::Duration kPurgeAhead = SharedRecord::kPurgeAhead;

  // `clock`, `observer` (null = none) and `bans` outlive the store.
  static std::unique_ptr<SharedStore> Create(SharedStoreOptions options,
                                             Bans* bans, Clock* clock,
                                             Observer* observer);

  // The time up to which a purge reaches now: kPurgeAhead past the later one of
  // this process's time and the server's.
  absl::Time LatestTime() const override = 0;

  // One round with the record, as above. OK if the record has every ban of this
  // process. Unavailable with the reason otherwise. One round at a time.
  virtual absl::Status Sync() = 0;

  virtual SharedFigures figures() const = 0;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_SHARED_STORE_H_
