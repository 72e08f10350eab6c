// DiskStore: the tier that outlives the process, in a directory of its own.
//
//   DIR/lock     held while a process uses the directory
//   DIR/seed     the secret under which keys are made (32 bytes, mode 0600)
//   DIR/db       RocksDB, directory 0700, files 0600
//   DIR/damaged  the last database that could not be read (one is kept)
//
// FIFO compaction holds the bound: the oldest file goes when a new one exceeds
// it. What Put took is in the operating system's hands when it returns, so it
// survives the process, though not the loss of power. Deadlines are checked at
// read. An entry that does not read back whole is a counted miss.
//
// Beside the entries the database keeps the highest time it saw (entries of a
// clock that has been turned back are dropped at open), a fingerprint of the
// seed and the count of entries by function.
//
// When writing fails (disk full), reads go on; once a probe shows that writing
// is possible again, the database is resumed, or else reopened.
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
#include "cache/key/digest.h"
#include "cache/observer.h"
#include "cache/store/store.h"
#include "cache/store/tiered_store.h"
#include "common/clock.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace fncache::cache::store {

struct DiskStoreOptions {
  // Made, with its parents, where it is missing.
  std::string dir;
  // Bound of DIR/db in bytes, logs included. An entry over an eighth of it is
  // not accepted.
  uint64_t capacity = 4ull << 30;
  // In the order of FunctionId.
  std::vector<StoredFunction> functions;
  // How long Open waits for a lock that another process holds, and what it asks
  // meanwhile; true ends the wait.
  absl::Duration lock_wait = absl::ZeroDuration();
  std::function<bool()> cancelled;
  // After a failed write, how long until writing is tried again.
  absl::Duration retry = absl::Seconds(1);
  // Null is the default one. Not owned.
  rocksdb::Env* env = nullptr;
};

class DiskStore : public Store {
 public:
  // See TieredStore::Open for what it returns. `clock` and `observer` (null =
  // none) outlive the store.
  static absl::StatusOr<std::unique_ptr<DiskStore>> Open(
      DiskStoreOptions options, Clock* clock, Observer* observer);

  virtual const key::Seed& seed() const = 0;

  // Get for a look-up of `function`, whose failures are reported as its own.
  virtual Found Find(const key::Key& key, FunctionId function,
                     absl::Time now) = 0;
  Found Get(const key::Key& key, absl::Time now) override {
    return Find(key, kNoFunction, now);
  }

  // Like Put; where it answers kOlder, `*later` is the entry that stays, unless
  // that one's deadline has passed.
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

  // From now on, in this process, Get hides the key's entry unless its call
  // started after `started`. For fills that could not be written. No I/O.
  virtual void Hide(const key::Key& key, absl::Time started) = 0;

  // Keeps the time on disk, and tries to recover where that is due. To be
  // called every few seconds.
  virtual void Tick(absl::Time now) = 0;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_DISK_STORE_H_
