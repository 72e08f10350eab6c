// SPDX-License-Identifier: Apache-2.0
#include "insight/trace/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/file.h"
#include "insight/trace/block.h"

namespace fncache::insight::trace {
namespace {

constexpr absl::string_view kBefore = "fncache-";
constexpr absl::string_view kBehind = ".trace";

// The number in a file's name; 0 if it is no trace's.
uint64_t NumberOf(absl::string_view name) {
  uint64_t number = 0;
  if (!absl::ConsumePrefix(&name, kBefore) ||
      !absl::ConsumeSuffix(&name, kBehind) ||
      !absl::SimpleAtoi(name, &number)) {
    return 0;
  }
  return number;
}

absl::Status ErrnoStatus(const std::string& path, absl::string_view what) {
  return absl::UnavailableError(
      absl::StrCat(path, ": ", what, ": ", std::strerror(errno)));
}

// The files of `dir` by their numbers.
absl::StatusOr<std::vector<std::pair<uint64_t, std::string>>> Numbered(
    const std::string& dir) {
  std::vector<std::pair<uint64_t, std::string>> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(dir, error), end;
       !error && at != end; at.increment(error)) {
    const uint64_t number = NumberOf(at->path().filename().string());
    if (number > 0) files.emplace_back(number, at->path().string());
  }
  if (error) {
    return absl::UnavailableError(absl::StrCat(dir, ": ", error.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> TraceFiles(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return absl::NotFoundError(absl::StrCat(path, ": no such file or folder"));
  }
  if (!std::filesystem::is_directory(status)) {
    return std::vector<std::string>{path};
  }
  const auto numbered = Numbered(path);
  if (!numbered.ok()) return numbered.status();
  std::vector<std::string> files;
  for (const auto& one : *numbered) files.push_back(one.second);
  if (files.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": holds no trace (files named fncache-NUMBER.trace)"));
  }
  return files;
}

absl::StatusOr<std::unique_ptr<TraceRing>> TraceRing::Open(
    const std::string& dir, int files) {
  if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
    return ErrnoStatus(dir, "cannot be made");
  }
  struct stat info = {};
  if (stat(dir.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    errno = ENOTDIR;
    return ErrnoStatus(dir, "cannot be used");
  }
  const std::string lock = absl::StrCat(dir, "/lock");
  const int fd =
      open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return ErrnoStatus(lock, "cannot be opened");
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    close(fd);
    return absl::UnavailableError(
        absl::StrCat(dir, ": another process writes its trace there"));
  }
  return std::unique_ptr<TraceRing>(new TraceRing(dir, files, fd));
}

TraceRing::~TraceRing() {
  Close();
  close(lock_fd_);
}

void TraceRing::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  size_ = 0;
}

absl::Status TraceRing::Next() {
  Close();
  auto files = Numbered(dir_);
  if (!files.ok()) return files.status();
  const uint64_t number = files->empty() ? 1 : files->back().first + 1;
  const size_t keep = static_cast<size_t>(files_) - 1;
  for (size_t i = 0; i + keep < files->size(); ++i) {
    if (unlink((*files)[i].second.c_str()) != 0 && errno != ENOENT) {
      return ErrnoStatus((*files)[i].second, "cannot be removed");
    }
  }
  path_ = absl::StrCat(dir_, "/", kBefore, absl::StrFormat("%06d", number),
                       kBehind);
  fd_ = open(path_.c_str(),
             O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd_ < 0) return ErrnoStatus(path_, "cannot be made");
  return Append(kFileMagic);
}

absl::Status TraceRing::Append(absl::string_view bytes) {
  if (WriteAll(fd_, bytes)) {
    size_ += bytes.size();
    return absl::OkStatus();
  }
  const absl::Status status = ErrnoStatus(dir_, "cannot be written");
  // A reader skips half a block, so nothing is lost if this fails too.
  if (ftruncate(fd_, static_cast<off_t>(size_)) != 0) errno = 0;
  // An empty file would only remove an old one from the ring.
  if (size_ <= kFileMagic.size()) unlink(path_.c_str());
  Close();
  return status;
}

}  // namespace fncache::insight::trace
