// DiskDirectory: the disk tier's directory, held by one process at a time.
//
// Makes it where it is missing, holds DIR/lock for as long as it lives, and
// keeps the seed; see disk_store.h for the whole layout.
//
// Not thread-safe.
#ifndef FNCACHE_CACHE_STORE_DISK_DIRECTORY_H_
#define FNCACHE_CACHE_STORE_DISK_DIRECTORY_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cache/key/digest.h"

namespace fncache::cache::store {

// A seed that nobody can guess.
key::Seed RandomSeed();

class DiskDirectory {
 public:
  // Waits for up to `lock_wait` while another process holds the directory, and
  // asks `cancelled` (may be null) meanwhile. DeadlineExceeded, Cancelled, or
  // what keeps the directory from being used; each names it.
  static absl::StatusOr<std::unique_ptr<DiskDirectory>> Open(
      const std::string& dir, absl::Duration lock_wait,
      const std::function<bool()>& cancelled);
  // Lets go of the lock.
  ~DiskDirectory();

  DiskDirectory(const DiskDirectory&) = delete;
  DiskDirectory& operator=(const DiskDirectory&) = delete;

  const key::Seed& seed() const { return seed_; }
  const std::string& path() const { return dir_; }
  std::string db() const { return dir_ + "/db"; }

  // Makes DIR/db where it is missing, and it private.
  absl::Status EnsureDatabase() const;
  // What is in DIR/db becomes DIR/damaged, in place of what was there.
  absl::Status SetDatabaseAside() const;
  // Removes DIR/db and what is in it.
  absl::Status DropDatabase() const;
  // Whether DIR/db holds files, but not those that a database begins with.
  bool DatabaseLacksItsHead() const;

 private:
  DiskDirectory(std::string dir, int lock)
      : dir_(std::move(dir)), lock_(lock) {}

  absl::Status LoadSeed();
  absl::Status WriteSeed() const;

  const std::string dir_;
  const int lock_;
  key::Seed seed_{};
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_DISK_DIRECTORY_H_
