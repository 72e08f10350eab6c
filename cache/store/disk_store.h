// SPDX-License-Identifier: Apache-2.0
// DiskStore: the tier that outlives the process, in its own directory.
//
// docs/storage-format.md describes the directory: a lock, the seed of the keys,
// a note of the functions whose connection details may be there, and the
// database.
//
// FIFO compaction keeps the bound: when a new file exceeds it, the oldest file
// is removed. When Put returns, the operating system has the accepted entry. So
// the entry survives the process, but not a loss of power. Deadlines are
// checked at read. An entry that does not read back whole is a miss that is
// counted and logged.
//
// Beside the entries the database keeps the highest time it saw (entries of a
// clock that has been set back are dropped at open), a fingerprint of the
// seed and the count of entries by function.
//
// When writing fails (disk full), reads go on; once a probe shows that writing
// is possible again, the database is resumed, or else reopened.
//
// It is one thing: reads, writes and repairs share one database, which a repair
// replaces under them, and one order of locks.
//
// Tick also saves the time on disk.
//
// Thread-safe; blocks on I/O. Put and Erase run one at a time.
#ifndef FNCACHE_CACHE_STORE_DISK_STORE_H_
#define FNCACHE_CACHE_STORE_DISK_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cache/key/key.h"
#include "cache/observer.h"
#include "cache/store/bans.h"
#include "cache/store/disk_directory.h"
#include "cache/store/lower_store.h"
#include "cache/store/stored_entry.h"
#include "common/clock.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace fncache::cache::store {

struct DiskStoreOptions {
  // The directory. A missing one is made, with its parents.
  std::string dir;
  // The bound of DIR/db in bytes, logs included. An entry over an eighth of it
  // is not accepted.
  uint64_t capacity = 4ull << 30;
  // The functions in the order of FunctionId.
  std::vector<StoredFunction> functions;
  // How long Open waits for a lock that another process has. It polls
  // `cancelled` (may be null) meanwhile; true ends the wait.
  absl::Duration lock_wait = absl::ZeroDuration();
  std::function<bool()> cancelled;
  // The pause between a failed write and the next attempt.
  absl::Duration retry = absl::Seconds(1);
  // RocksDB's environment; null is the default one. Not owned.
  rocksdb::Env* env = nullptr;
  // The bans: an entry that they cover is neither found nor stored. Null: none.
  const Bans* bans = nullptr;
};

class DiskStore : public LowerStore {
 public:
  // Fails with DeadlineExceeded where the directory stays locked, Cancelled
  // where `cancelled` returned true, Unavailable for lack of space or on a
  // read-only file system, FailedPrecondition where the directory cannot be
  // used at all; each names it. A damaged database is no failure: it is set
  // aside with an error in the log. `clock` and `observer` (null = none)
  // outlive the store.
  static absl::StatusOr<std::unique_ptr<DiskStore>> Open(
      DiskStoreOptions options, Clock* clock, Observer* observer);

  virtual const DiskDirectory& directory() const = 0;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_DISK_STORE_H_
