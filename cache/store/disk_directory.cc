// SPDX-License-Identifier: Apache-2.0
#include "cache/store/disk_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/file.h"
#include "common/log.h"

namespace fncache::cache::store {
namespace {

namespace fs = std::filesystem;

// The pause between attempts to lock a directory that another process has
// locked.
constexpr absl::Duration kLockRetry = absl::Milliseconds(20);

// Larger than the names of any realistic number of functions.
constexpr size_t kMaxOwnFile = 64 << 20;

// The first line of DIR/secrets, and the last, without which it is not whole.
constexpr absl::string_view kSecretsHead = "fncache secrets 1";
constexpr absl::string_view kSecretsEnd = "end";

absl::Status Failure(absl::string_view dir, absl::string_view what,
                     const std::error_code& error) {
  const bool lack = std::find(std::begin(kLackOfSpace), std::end(kLackOfSpace),
                              error.value()) != std::end(kLackOfSpace);
  return absl::Status(
      lack ? absl::StatusCode::kUnavailable
           : absl::StatusCode::kFailedPrecondition,
      absl::StrCat("cache directory ", dir, ": ", what, ": ", error.message()));
}

absl::Status Failure(absl::string_view dir, absl::string_view what, int error) {
  return Failure(dir, what, std::error_code(error, std::generic_category()));
}

// Owns a file descriptor and closes it.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Like mkdir -p; the directories that it makes are private.
absl::Status MakeDirectories(const std::string& dir) {
  for (size_t at = 0; at != std::string::npos;) {
    at = dir.find('/', at + 1);
    const std::string part = dir.substr(0, at);
    if (mkdir(part.c_str(), 0700) == 0 || errno == EEXIST) continue;
    const int error = errno;
    // Where the directory exists mkdir may still fail with another error, as on
    // a read-only file system.
    struct stat status;
    if (stat(part.c_str(), &status) == 0) continue;
    return Failure(dir, "cannot be made", error);
  }
  struct stat status;
  if (stat(dir.c_str(), &status) != 0) {
    return Failure(dir, "cannot be looked at", errno);
  }
  if (!S_ISDIR(status.st_mode)) return Failure(dir, "cannot be used", ENOTDIR);
  return absl::OkStatus();
}

}  // namespace

key::Seed RandomSeed() {
  key::Seed seed{};
  for (size_t at = 0; at < seed.size();) {
    const ssize_t got = getrandom(seed.data() + at, seed.size() - at, 0);
    if (got > 0) {
      at += static_cast<size_t>(got);
    } else if (got < 0 && errno != EINTR) {
      // No cache is safe to run without a secret.
      Log(LogLevel::kError, "the system gives no random numbers");
      abort();
    }
  }
  return seed;
}

absl::StatusOr<std::unique_ptr<DiskDirectory>> DiskDirectory::Open(
    const std::string& dir, absl::Duration lock_wait,
    const std::function<bool()>& cancelled) {
  if (dir.empty()) {
    return absl::InvalidArgumentError("cache directory: the name is empty");
  }
  // Absolute, so that a change of the process's working directory has no
  // effect.
  std::error_code error;
  std::string path = fs::absolute(dir, error).lexically_normal().string();
  if (error) return Failure(dir, "cannot be resolved", error);
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (absl::Status made = MakeDirectories(path); !made.ok()) return made;

  Fd lock(open((path + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.get() < 0) return Failure(path, "cannot open its lock", errno);
  const absl::Time give_up = absl::Now() + lock_wait;
  bool told = false;
  while (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return Failure(path, "cannot be locked", errno);
    if (cancelled && cancelled()) {
      return absl::CancelledError(absl::StrCat(
          "cache directory ", path, ": ended while waiting for its lock"));
    }
    const absl::Duration left = give_up - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat(
          "cache directory ", path, ": another process holds its lock"));
    }
    if (!told) {
      Log(LogLevel::kInfo, "waiting for another process to leave the cache",
          {{"dir", path}, {"wait", absl::FormatDuration(lock_wait)}});
      told = true;
    }
    absl::SleepFor(std::min(left, kLockRetry));
  }

  auto directory =
      std::unique_ptr<DiskDirectory>(new DiskDirectory(path, lock.Release()));
  if (absl::Status links = directory->RefuseLinks(); !links.ok()) return links;
  if (absl::Status loaded = directory->LoadSeed(); !loaded.ok()) return loaded;
  return directory;
}

DiskDirectory::~DiskDirectory() { close(lock_); }

absl::Status DiskDirectory::RefuseLinks() const {
  struct stat status;
  for (const char* const name : {"db", "damaged"}) {
    if (lstat(absl::StrCat(dir_, "/", name).c_str(), &status) == 0 &&
        S_ISLNK(status.st_mode)) {
      return absl::FailedPreconditionError(
          absl::StrCat("cache directory ", dir_, ": ", name,
                       " is a symbolic link, so its files could not be removed "
                       "with it; move them back, or remove it"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::optional<std::string>> DiskDirectory::ReadOwn(
    const std::string& name) const {
  auto content = ReadSmallFile(dir_ + "/" + name, kMaxOwnFile);
  if (content.ok()) return absl::make_optional(*std::move(content));
  if (absl::IsNotFound(content.status())) return absl::optional<std::string>();
  return absl::FailedPreconditionError(
      absl::StrCat("cache directory ", dir_, ": cannot read ", name, ": ",
                   content.status().message()));
}

absl::Status DiskDirectory::LoadSeed() {
  const std::string file = dir_ + "/seed";
  const auto content = ReadOwn("seed");
  if (!content.ok()) return content.status();
  const bool there = content->has_value();
  if (there && (*content)->size() == seed_.size()) {
    std::copy((*content)->begin(), (*content)->end(), seed_.begin());
    // A seed of zeroes is damaged: a file system may leave those after a crash.
    if (seed_ != key::Seed{}) {
      if (chmod(file.c_str(), 0600) != 0) {
        return Failure(dir_, "cannot make the seed private", errno);
      }
      return absl::OkStatus();
    }
  }
  // Without its seed no entry of the database can be found. So the database is
  // removed first: if this ends half-way, the next start does the same.
  std::error_code ignored;
  if (there || fs::exists(db(), ignored)) {
    Log(LogLevel::kError,
        there ? "the seed of the cache is damaged: starting with an empty one"
              : "the seed of the cache is gone: starting with an empty one",
        {{"dir", dir_}});
    if (absl::Status dropped = DropDatabase(); !dropped.ok()) return dropped;
    // The damaged seed is removed now, so that this is logged only once, even
    // if the next step must be retried.
    unlink(file.c_str());
  }
  seed_ = RandomSeed();
  return WriteWhole(
      "seed", "the seed",
      {reinterpret_cast<const char*>(seed_.data()), seed_.size()});
}

absl::Status DiskDirectory::WriteWhole(const std::string& name,
                                       absl::string_view what,
                                       absl::string_view content) const {
  const std::string file = dir_ + "/" + name;
  const std::string temporary = file + ".new";
  unlink(temporary.c_str());
  Fd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd.get() < 0 || !WriteAll(fd.get(), content) || fsync(fd.get()) != 0 ||
      rename(temporary.c_str(), file.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    return Failure(dir_, absl::StrCat("cannot write ", what), error);
  }
  Fd parent(open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent.get() >= 0) fsync(parent.get());
  return absl::OkStatus();
}

absl::StatusOr<absl::optional<std::set<std::string>>>
DiskDirectory::ReadSecretsMark() const {
  const auto content = ReadOwn("secrets");
  if (!content.ok()) return content.status();
  if (!content->has_value()) return absl::optional<std::set<std::string>>();
  const std::vector<std::string> lines = absl::StrSplit(**content, '\n');
  // The last line ends in a newline, too.
  if (lines.size() < 3 || lines.front() != kSecretsHead ||
      lines[lines.size() - 2] != kSecretsEnd || !lines.back().empty()) {
    return absl::optional<std::set<std::string>>();
  }
  std::set<std::string> functions;
  for (size_t i = 1; i + 2 < lines.size(); ++i) {
    std::string name;
    if (!absl::CUnescape(lines[i], &name)) {
      return absl::optional<std::set<std::string>>();
    }
    functions.insert(std::move(name));
  }
  return absl::make_optional(std::move(functions));
}

absl::Status DiskDirectory::EnforceSecrets(
    const std::vector<StoredFunction>& functions) {
  std::set<std::string> allowed;
  for (const StoredFunction& function : functions) {
    if (function.stores_secrets) allowed.insert(function.name);
  }
  const auto mark = ReadSecretsMark();
  if (!mark.ok()) return mark.status();
  const bool known = mark->has_value();
  if (known && **mark == allowed) return absl::OkStatus();
  // Without a note every function may have stored secrets, also one that is no
  // longer configured.
  const bool tightened =
      !known || !std::includes(allowed.begin(), allowed.end(), (*mark)->begin(),
                               (*mark)->end());
  if (tightened) {
    std::error_code error;
    if (fs::exists(db(), error) || fs::exists(damaged(), error)) {
      Log(LogLevel::kWarning,
          known ? "store_secrets was tightened: the cache on disk is dropped"
                : "the cache on disk does not say which secrets it may hold: "
                  "it is dropped",
          {{"dir", dir_}});
    }
    if (absl::Status dropped = DropDatabase(); !dropped.ok()) return dropped;
    fs::remove_all(damaged(), error);
    if (error) return Failure(dir_, "cannot remove damaged", error);
  }
  return WriteSecretsMark(allowed);
}

absl::Status DiskDirectory::WriteSecretsMark(
    const std::set<std::string>& functions) const {
  std::string content = absl::StrCat(kSecretsHead, "\n");
  for (const std::string& name : functions) {
    absl::StrAppend(&content, absl::CEscape(name), "\n");
  }
  absl::StrAppend(&content, kSecretsEnd, "\n");
  return WriteWhole("secrets", "secrets", content);
}

absl::StatusOr<absl::optional<std::string>> DiskDirectory::ReadBans() const {
  return ReadOwn("bans");
}

absl::Status DiskDirectory::WriteBans(absl::string_view content) const {
  return WriteWhole("bans", "bans", content);
}

absl::Status DiskDirectory::NoteSecrets(
    const std::vector<StoredFunction>& functions) {
  const auto mark = ReadSecretsMark();
  if (!mark.ok()) return mark.status();
  // Without a note the next start drops everything anyway.
  if (!mark->has_value()) return absl::OkStatus();
  std::set<std::string> noted = **mark;
  for (const StoredFunction& function : functions) {
    if (function.stores_secrets) noted.insert(function.name);
  }
  return noted == **mark ? absl::OkStatus() : WriteSecretsMark(noted);
}

absl::Status DiskDirectory::EnsureDatabase() const {
  if (mkdir(db().c_str(), 0700) != 0 && errno != EEXIST) {
    return Failure(dir_, "cannot make db", errno);
  }
  struct stat status;
  if (stat(db().c_str(), &status) != 0) {
    return Failure(dir_, "cannot look at db", errno);
  }
  if (!S_ISDIR(status.st_mode)) return Failure(dir_, "cannot use db", ENOTDIR);
  if ((status.st_mode & 07777) != 0700 && chmod(db().c_str(), 0700) != 0) {
    return Failure(dir_, "cannot make db private", errno);
  }
  return absl::OkStatus();
}

absl::Status DiskDirectory::SetDatabaseAside() const {
  std::error_code error;
  fs::remove_all(damaged(), error);
  if (error) return Failure(dir_, "cannot remove damaged", error);
  fs::rename(db(), damaged(), error);
  if (error) return Failure(dir_, "cannot set db aside", error);
  return EnsureDatabase();
}

absl::Status DiskDirectory::DropDatabase() const {
  std::error_code error;
  fs::remove_all(db(), error);
  if (error) return Failure(dir_, "cannot remove db", error);
  return absl::OkStatus();
}

bool DiskDirectory::DatabaseIsEmpty() const {
  std::error_code error;
  return fs::is_empty(db(), error) && !error;
}

bool DiskDirectory::DatabaseLacksItsHead() const {
  std::error_code error;
  if (fs::exists(db() + "/CURRENT", error)) {
    std::ifstream current(db() + "/CURRENT", std::ios::binary);
    if (!current) return false;  // for RocksDB to say why
    std::stringstream content;
    content << current.rdbuf();
    const std::string text = content.str();
    absl::string_view name = text;
    if (!absl::ConsumeSuffix(&name, "\n")) return true;
    absl::string_view number = name;
    return !absl::ConsumePrefix(&number, "MANIFEST-") || number.empty() ||
           !std::all_of(number.begin(), number.end(),
                        [](char c) { return c >= '0' && c <= '9'; }) ||
           !fs::is_regular_file(absl::StrCat(db(), "/", name), error);
  }
  // Without CURRENT RocksDB would start a new database among the old files.
  for (const auto& file : fs::directory_iterator(db(), error)) {
    const std::string extension = file.path().extension().string();
    const std::string name = file.path().filename().string();
    if (extension == ".sst" || extension == ".log" ||
        name.rfind("MANIFEST-", 0) == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace fncache::cache::store
