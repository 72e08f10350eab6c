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
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/log.h"

namespace fncache::cache::store {
namespace {

namespace fs = std::filesystem;

// How often a lock that another process holds is tried again.
constexpr absl::Duration kLockRetry = absl::Milliseconds(20);

absl::Status Failure(absl::string_view dir, absl::string_view what,
                     const std::error_code& error) {
  return absl::FailedPreconditionError(
      absl::StrCat("cache directory ", dir, ": ", what, ": ", error.message()));
}

absl::Status Failure(absl::string_view dir, absl::string_view what, int error) {
  return Failure(dir, what, std::error_code(error, std::generic_category()));
}

// Closes what it holds.
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

// Like mkdir -p, with what is made private.
absl::Status MakeDirectories(const std::string& dir) {
  for (size_t at = 0; at != std::string::npos;) {
    at = dir.find('/', at + 1);
    const std::string part = dir.substr(0, at);
    if (mkdir(part.c_str(), 0700) == 0 || errno == EEXIST) continue;
    const int error = errno;
    // What exists may answer otherwise: on a read-only file system, say.
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

bool WriteAll(int fd, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t wrote = write(fd, at, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    at += wrote;
    size -= static_cast<size_t>(wrote);
  }
  return true;
}

}  // namespace

key::Seed RandomSeed() {
  key::Seed seed{};
  for (size_t at = 0; at < seed.size();) {
    const ssize_t got = getrandom(seed.data() + at, seed.size() - at, 0);
    if (got > 0) {
      at += static_cast<size_t>(got);
    } else if (got < 0 && errno != EINTR) {
      // There is no cache that is safe to run without a secret.
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
  // Absolute, so that it stays the same whatever becomes of the process's own.
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
  if (absl::Status loaded = directory->LoadSeed(); !loaded.ok()) return loaded;
  return directory;
}

DiskDirectory::~DiskDirectory() { close(lock_); }

absl::Status DiskDirectory::LoadSeed() {
  const std::string file = dir_ + "/seed";
  Fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0 && errno != ENOENT) {
    return Failure(dir_, "cannot read the seed", errno);
  }
  bool damaged = false;
  if (fd.get() >= 0) {
    // One byte more than there may be.
    uint8_t bytes[sizeof(key::Seed) + 1];
    const ssize_t got = read(fd.get(), bytes, sizeof(bytes));
    if (got < 0) return Failure(dir_, "cannot read the seed", errno);
    std::copy(bytes, bytes + seed_.size(), seed_.begin());
    // All zeroes is what a file system leaves after a crash.
    damaged = got != static_cast<ssize_t>(seed_.size()) || seed_ == key::Seed{};
    if (!damaged) {
      if (fchmod(fd.get(), 0600) != 0) {
        return Failure(dir_, "cannot make the seed private", errno);
      }
      return absl::OkStatus();
    }
  }
  // Without its seed, nothing in the database can be found any more. It goes
  // first: were this to end half-way, the next start does the same.
  std::error_code ignored;
  if (damaged || fs::exists(db(), ignored)) {
    Log(LogLevel::kError,
        damaged ? "the seed of the cache is damaged: starting with an empty one"
                : "the seed of the cache is gone: starting with an empty one",
        {{"dir", dir_}});
    if (absl::Status dropped = DropDatabase(); !dropped.ok()) return dropped;
  }
  seed_ = RandomSeed();
  return WriteSeed();
}

absl::Status DiskDirectory::WriteSeed() const {
  const std::string file = dir_ + "/seed";
  const std::string temporary = file + ".new";
  unlink(temporary.c_str());
  Fd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd.get() < 0 || !WriteAll(fd.get(), seed_.data(), seed_.size()) ||
      fsync(fd.get()) != 0 || rename(temporary.c_str(), file.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    return Failure(dir_, "cannot write the seed", error);
  }
  Fd parent(open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent.get() >= 0) fsync(parent.get());
  return absl::OkStatus();
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
  const std::string damaged = dir_ + "/damaged";
  std::error_code error;
  fs::remove_all(damaged, error);
  if (error) return Failure(dir_, "cannot remove damaged", error);
  fs::rename(db(), damaged, error);
  if (error) return Failure(dir_, "cannot set db aside", error);
  return EnsureDatabase();
}

absl::Status DiskDirectory::DropDatabase() const {
  std::error_code error;
  fs::remove_all(db(), error);
  if (error) return Failure(dir_, "cannot remove db", error);
  return absl::OkStatus();
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
  // Without CURRENT, RocksDB would begin a new database among the old files.
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
