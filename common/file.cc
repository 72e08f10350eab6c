// SPDX-License-Identifier: Apache-2.0
#include "common/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace fncache {
namespace {

absl::Status FileError(int error, const std::string& path) {
  const std::string message = absl::StrCat(path, ": ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) {
    return absl::NotFoundError(message);
  }
  return absl::PermissionDeniedError(message);
}

// Says what a file is that is not a regular one; returns "" for a regular file.
absl::string_view OtherKind(mode_t mode) {
  if (S_ISREG(mode)) return "";
  if (S_ISDIR(mode)) return "is a folder, not a regular file";
  if (S_ISFIFO(mode)) return "is a named pipe, not a regular file";
  return "is not a regular file";
}

absl::Status TooLarge(const std::string& path, size_t max_bytes) {
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": is over ", max_bytes, " bytes"));
}

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::UnknownError(
      absl::StrCat("cannot write ", path, ": ", std::strerror(error)));
}

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          size_t max_bytes) {
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return FileError(errno, path);
  auto closer = absl::MakeCleanup([file] { close(file); });
  struct stat info;
  if (fstat(file, &info) != 0) return FileError(errno, path);
  if (const auto kind = OtherKind(info.st_mode); !kind.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": ", kind));
  }
  // Before a byte of it is in memory; it may grow all the same.
  if (static_cast<uint64_t>(info.st_size) > max_bytes) {
    return TooLarge(path, max_bytes);
  }
  std::string content;
  char buffer[16384];
  while (true) {
    const ssize_t got = read(file, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, path);
    if (got == 0) return content;
    content.append(buffer, got);
    if (content.size() > max_bytes) return TooLarge(path, max_bytes);
  }
}

bool WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

absl::Status WriteTextFile(const std::string& path, absl::string_view text) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return CannotWrite(path, errno);
  const bool written = WriteAll(fd, text);
  const int error = errno;
  if (close(fd) != 0 || !written) return CannotWrite(path, error);
  return absl::OkStatus();
}

absl::Status CheckWritable(const std::string& path) {
  struct stat info = {};
  std::string asked = path;
  if (stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) return CannotWrite(path, errno);
    // A file that is yet to be made is its folder's matter.
    asked = std::filesystem::path(path).parent_path().string();
    if (asked.empty()) asked = ".";
  } else if (S_ISDIR(info.st_mode)) {
    return CannotWrite(path, EISDIR);
  }
  if (access(asked.c_str(), W_OK) != 0) return CannotWrite(path, errno);
  return absl::OkStatus();
}

std::string FollowedPath(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path whole = fs::absolute(path, error);
  if (error) whole = path;
  fs::path followed = fs::weakly_canonical(whole, error);
  if (error) followed = whole.lexically_normal();
  // A slash at the end would be a last part without a name.
  if (!followed.has_filename()) followed = followed.parent_path();
  return followed.string();
}

}  // namespace fncache
