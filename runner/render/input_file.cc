// SPDX-License-Identifier: Apache-2.0
#include "runner/render/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace fncache::runner::render {
namespace {

absl::Status Failure(int error) {
  const char* const text = std::strerror(error);
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(text);
  return absl::PermissionDeniedError(text);
}

absl::StatusOr<std::string> ReadToEnd(int file) {
  std::string content;
  char buffer[65536];
  while (true) {
    const ssize_t got = read(file, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failure(errno);
    if (got == 0) return content;
    if (content.size() + got > kMaxLoadedBytes) {
      return absl::FailedPreconditionError(
          absl::StrCat("is over ", kMaxLoadedBytes >> 20, " MiB"));
    }
    content.append(buffer, got);
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path, bool regular) {
  // A pipe is opened without waiting where it is going to be refused.
  const int file =
      open(path.c_str(), O_RDONLY | O_CLOEXEC | (regular ? O_NONBLOCK : 0));
  if (file < 0) return Failure(errno);
  const auto closer = absl::MakeCleanup([file] { close(file); });
  struct stat info;
  if (fstat(file, &info) != 0) return Failure(errno);
  if (S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError("is a directory, not a file");
  }
  if (regular && !S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError("is not a regular file");
  }
  return ReadToEnd(file);
}

}  // namespace

std::string NamedFile(const std::string& argument) {
  return argument == "-" ? kStandardInput : argument;
}

absl::StatusOr<std::string> ReadNamedFile(const std::string& path) {
  if (path == kStandardInput) return ReadToEnd(STDIN_FILENO);
  return ReadFile(path, /*regular=*/false);
}

absl::StatusOr<std::string> ReadFoundFile(const std::string& path) {
  return ReadFile(path, /*regular=*/true);
}

absl::StatusOr<bool> IsFolder(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return Failure(errno);
  return S_ISDIR(info.st_mode);
}

absl::StatusOr<std::vector<FolderEntry>> ListFolder(const std::string& path) {
  std::error_code error;
  std::vector<FolderEntry> entries;
  std::filesystem::directory_iterator entry(path, error);
  for (; !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    std::error_code gone;
    entries.push_back(
        {entry->path().string(),
         std::filesystem::is_directory(entry->symlink_status(gone))});
  }
  if (error) return Failure(error.value());
  std::sort(entries.begin(), entries.end(),
            [](const FolderEntry& a, const FolderEntry& b) {
              return a.path < b.path;
            });
  return entries;
}

}  // namespace fncache::runner::render
