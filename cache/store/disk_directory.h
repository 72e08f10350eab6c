// SPDX-License-Identifier: Apache-2.0
// DiskDirectory: the disk tier's directory, held by one process at a time.
//
// It makes the directory where it is missing, holds DIR/lock for as long as it
// lives, keeps the seed, and remembers whose connection details the database
// may hold. docs/storage-format.md has the whole layout.
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

// Draws a seed that nobody can guess.
key::Seed RandomSeed();

// A call that fails with one of these may work later without any change of
// settings: there is no space (or quota) left, or the file system is read-only.
inline constexpr int kLackOfSpace[] = {ENOSPC, EDQUOT, EROFS};

class DiskDirectory {
 public:
  // Waits for up to `lock_wait` while another process holds the directory, and
  // asks `cancelled` (may be null) meanwhile. DeadlineExceeded if the lock is
  // still held then, Cancelled if `cancelled` said so, else see above.
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

  // Makes sure that nothing is kept here which the settings do not allow any
  // more. If another function than those of `functions` that store secrets may
  // have left some, the database is removed whole, and the damaged one too;
  // only then is it noted who may store some from now on, so that a process
  // killed half-way leaves the next one the same to do. To be called before the
  // database is opened.
  absl::Status EnforceSecrets(const std::vector<StoredFunction>& functions);

  // What was purged (bans.h): the file's content, absent if there is none, and
  // another one in its place. On any thread, one at a time.
  absl::StatusOr<absl::optional<std::string>> ReadBans() const;
  absl::Status WriteBans(absl::string_view content) const;
  // Adds those of `functions` that store secrets to the note of who may have
  // some here, before they do.
  absl::Status NoteSecrets(const std::vector<StoredFunction>& functions);

  // Makes DIR/db where it is missing, and makes it private.
  absl::Status EnsureDatabase() const;
  // Renames DIR/db to DIR/damaged, in place of what was there, and makes an
  // empty one.
  absl::Status SetDatabaseAside() const;
  // Removes DIR/db and what is in it.
  absl::Status DropDatabase() const;
  // Whether DIR/db holds no file at all.
  bool DatabaseIsEmpty() const;
  // Whether DIR/db holds files, but not those that a database begins with.
  bool DatabaseLacksItsHead() const;

 private:
  DiskDirectory(std::string dir, int lock)
      : dir_(std::move(dir)), lock_(lock) {}

  std::string damaged() const { return dir_ + "/damaged"; }

  // FailedPrecondition where a link is in a folder's place: removing it would
  // leave the files.
  absl::Status RefuseLinks() const;
  // The content of DIR/name; absent if there is no such file.
  absl::StatusOr<absl::optional<std::string>> ReadOwn(
      const std::string& name) const;
  absl::Status LoadSeed();
  // The functions whose secrets may be here; absent if that is not known.
  absl::StatusOr<absl::optional<std::set<std::string>>> ReadSecretsMark() const;
  absl::Status WriteSecretsMark(const std::set<std::string>& functions) const;
  // Puts a file in place as a whole, or not at all. `what` is for the message.
  absl::Status WriteWhole(const std::string& name, absl::string_view what,
                          absl::string_view content) const;

  const std::string dir_;
  const int lock_;
  key::Seed seed_{};
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_DISK_DIRECTORY_H_
