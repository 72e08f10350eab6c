// SPDX-License-Identifier: Apache-2.0
// DiskTally: the number of entries of each function in the disk tier.
//
// FIFO compaction drops whole files, so each file has the number of its entries
// by function as a table property. When a file is dropped, its entries are
// subtracted. An entry that was replaced or erased stays in its file as a dead
// version and must not be counted out again: dead versions are taken to be the
// oldest, since an entry is older than the one that replaced it. This is exact
// unless live entries go while dead ones of the same function are younger.
//
// The counts are kept in the database with every fill (see DiskState), so that
// a restart need not scan for them.
//
// Thread-safe: RocksDB's threads call it, too.
#ifndef FNCACHE_CACHE_STORE_DISK_TALLY_H_
#define FNCACHE_CACHE_STORE_DISK_TALLY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/observer.h"
#include "cache/store/stored_entry.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace rocksdb {
class DB;
struct Options;
}  // namespace rocksdb

namespace fncache::cache::store {

// The record that every write carries along. FIFO compaction does not lose it:
// its newest version is always in the newest file.
struct DiskState {
  struct Counts {
    uint64_t live = 0;
    uint64_t dead = 0;
  };
  // The highest time that was seen.
  absl::Time time;
  // A fingerprint of the seed under which the keys were made.
  uint64_t seed_fingerprint = 0;
  std::map<std::string, Counts> functions;

  std::string Encode() const;
  // Absent if the bytes are not an encoded state.
  static absl::optional<DiskState> Decode(absl::string_view bytes);
};

class DiskTally : public std::enable_shared_from_this<DiskTally> {
 public:
  using Counts = std::map<std::string, DiskState::Counts>;

  // `clock` and `observer` outlive it and every database that listens.
  DiskTally(const std::vector<StoredFunction>& functions, Clock* clock,
            Observer* observer);

  // Makes a database that is opened with these options report to this tally.
  void Listen(rocksdb::Options* options);
  // Replaces the counts by those of the database.
  void Load(rocksdb::DB* db, const Counts& counts);
  // Counts every entry as removed, and notifies the observer.
  void DropAll(const Counts& counts);

  // Count a new entry of the function, or one that was replaced or erased.
  void Added(absl::string_view function);
  void Died(absl::string_view function);
  // Take back such a count, for a write that failed.
  void NotAdded(absl::string_view function);
  void NotDied(absl::string_view function);

  Counts counts() const;
  uint64_t entries() const;

  // Waits until the database's files are at most `bytes` together, for at most
  // `patience`: RocksDB drops the oldest from a thread of its own. Returns how
  // many bytes they are then.
  uint64_t AwaitFileBytes(uint64_t bytes, absl::Duration patience);

  // Called by the listener for the database's files.
  void FileCreated(const std::string& path, uint64_t size,
                   const std::map<std::string, std::string>& properties);
  void FileDeleted(const std::string& path);

 private:
  struct InFile {
    uint64_t entries = 0;
    uint64_t bytes = 0;
    absl::Time kept_until = absl::InfinitePast();  // the latest
  };
  struct File {
    uint64_t size = 0;
    std::map<std::string, InFile> functions;
  };

  static std::map<std::string, InFile> Parse(
      const std::map<std::string, std::string>& properties);

  const std::map<std::string, FunctionId> ids_;
  Clock* const clock_;
  Observer* const observer_;

  mutable Mutex mutex_;
  Counts counts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, File> files_ ABSL_GUARDED_BY(mutex_);  // by base name
  uint64_t file_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  CondVar fewer_files_;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_DISK_TALLY_H_
