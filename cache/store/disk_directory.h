// SPDX-License-Identifier: Apache-2.0
// DiskDirectory: the disk tier's directory, locked by one process at a time.
//
// It makes a missing directory, locks DIR/lock for its lifetime, and keeps the
// seed. It also notes the functions whose connection details the database may
// contain. docs/storage-format.md has the whole layout.
//
// A failure for lack of space or on a read-only file system is Unavailable,
// since it may work later. Anything else that keeps the directory from being
// used is FailedPrecondition. Messages name the directory.
//
// Not thread-safe.
#ifndef FNCACHE_CACHE_STORE_DISK_DIRECTORY_H_
#define FNCACHE_CACHE_STORE_DISK_DIRECTORY_H_

#include <cerrno>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/key/key.h"
#include "cache/store/stored_entry.h"

namespace fncache::cache::store {

// Returns a random seed from a cryptographic source.
key::Seed RandomSeed();

// A call that fails with one of these may work later without any change of
// settings: there is no space (or quota) left, or the file system is read-only.
inline constexpr int kLackOfSpace[] = {ENOSPC, EDQUOT, EROFS};

class DiskDirectory {
 public:
  // Waits for up to `lock_wait` while another process has the lock, and polls
  // `cancelled` (may be null) meanwhile. Returns DeadlineExceeded if the
  // directory is still locked then, Cancelled if `cancelled` returned true,
  // else the errors above.
  static absl::StatusOr<std::unique_ptr<DiskDirectory>> Open(
      const std::string& dir, absl::Duration lock_wait,
      const std::function<bool()>& cancelled);
  // Releases the lock.
  ~DiskDirectory();

  DiskDirectory(const DiskDirectory&) = delete;
  DiskDirectory& operator=(const DiskDirectory&) = delete;

  const key::Seed& seed() const { return seed_; }
  const std::string& path() const { return dir_; }
  std::string db() const { return dir_ + "/db"; }

  // Removes secrets that the settings no longer allow. If a function that is
  // not among the secret-storing ones of `functions` may have left some, the
  // whole database is removed, and the damaged one too. Only then the functions
  // that may store secrets are noted, so that a process killed half-way leaves
  // the same work to the next one. Call it before the database is opened.
  absl::Status EnforceSecrets(const std::vector<StoredFunction>& functions);

  // Read and replace the file of bans (bans.h); absent if there is none. On any
  // thread, one call at a time.
  absl::StatusOr<absl::optional<std::string>> ReadBans() const;
  absl::Status WriteBans(absl::string_view content) const;
  // Notes those of `functions` that store secrets, before they store any.
  absl::Status NoteSecrets(const std::vector<StoredFunction>& functions);

  // Makes DIR/db where it is missing, and makes it private.
  absl::Status EnsureDatabase() const;
  // Renames DIR/db to DIR/damaged, replacing an older one, and makes an empty
  // DIR/db.
  absl::Status SetDatabaseAside() const;
  // Removes DIR/db and its content.
  absl::Status DropDatabase() const;
  // Whether DIR/db contains no file at all.
  bool DatabaseIsEmpty() const;
  // Whether DIR/db contains files, but not those that a database begins with.
  bool DatabaseLacksItsHead() const;

 private:
  DiskDirectory(std::string dir, int lock)
      : dir_(std::move(dir)), lock_(lock) {}

  std::string damaged() const { return dir_ + "/damaged"; }

  // FailedPrecondition where a folder is a link: removing it would leave the
  // files.
  absl::Status RefuseLinks() const;
  // The content of DIR/name; absent if there is no such file.
  absl::StatusOr<absl::optional<std::string>> ReadOwn(
      const std::string& name) const;
  absl::Status LoadSeed();
  // The functions whose secrets may be here; absent if that is not known.
  absl::StatusOr<absl::optional<std::set<std::string>>> ReadSecretsMark() const;
  absl::Status WriteSecretsMark(const std::set<std::string>& functions) const;
  // Writes a file as a whole, or not at all. `what` is for the message.
  absl::Status WriteWhole(const std::string& name, absl::string_view what,
                          absl::string_view content) const;

  const std::string dir_;
  const int lock_;
  key::Seed seed_{};
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_DISK_DIRECTORY_H_
