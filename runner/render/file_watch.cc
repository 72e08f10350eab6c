// SPDX-License-Identifier: Apache-2.0
#include "runner/render/file_watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace fncache::runner::render {
namespace {

namespace fs = std::filesystem;

// Links may lead in circles.
constexpr int kMaxDepth = 32;
constexpr int kMaxLinks = 8;

constexpr uint32_t kEvents = IN_CLOSE_WRITE | IN_MODIFY | IN_CREATE |
                             IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                             IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;

fs::path ParentOf(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

}  // namespace

FileWatch::FileWatch(int fd) : fd_(fd) {}

FileWatch::~FileWatch() { close(fd_); }

absl::StatusOr<std::unique_ptr<FileWatch>> FileWatch::Create(
    const std::vector<std::string>& paths) {
  const int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (fd < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot watch files: ", std::strerror(errno)));
  }
  std::unique_ptr<FileWatch> watch(new FileWatch(fd));
  for (const std::string& path : paths) {
    const absl::Status status = watch->AddPath(path);
    if (!status.ok()) return status;
  }
  return watch;
}

absl::StatusOr<FileWatch::Folder*> FileWatch::AddFolder(
    const std::string& path) {
  const int watch = inotify_add_watch(fd_, path.c_str(), kEvents | IN_ONLYDIR);
  if (watch < 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == EACCES) {
      return static_cast<Folder*>(nullptr);
    }
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot watch ", path, ": ", std::strerror(errno)));
  }
  Folder* const folder = &folders_[watch];
  if (folder->path.empty()) folder->path = path;
  return folder;
}

absl::Status FileWatch::AddPath(const std::string& path) {
  fs::path at = fs::path(path).lexically_normal();
  if (!at.has_filename()) at = at.parent_path();  // of `dir/`
  // The name itself, and what it links to, link by link.
  for (int links = 0; links < kMaxLinks; ++links) {
    // Up to a folder that is there.
    for (fs::path name = at; !name.empty(); name = ParentOf(name)) {
      const auto folder = AddFolder(ParentOf(name).string());
      if (!folder.ok()) return folder.status();
      if (*folder != nullptr) {
        (*folder)->names.insert(name.filename().string());
        break;
      }
      if (ParentOf(name) == name || ParentOf(name) == ".") break;
    }
    std::error_code error;
    const fs::path target = fs::read_symlink(at, error);
    if (error) break;
    at = target.is_absolute() ? target : ParentOf(at) / target;
  }
  std::error_code error;
  return fs::is_directory(path, error) ? AddTree(path, 0) : absl::OkStatus();
}

absl::Status FileWatch::AddTree(const std::string& path, int depth) {
  const auto folder = AddFolder(path);
  if (!folder.ok()) return folder.status();
  if (*folder == nullptr || depth >= kMaxDepth) return absl::OkStatus();
  // A folder that is reached twice is watched already, links in circles too.
  if ((*folder)->all) return absl::OkStatus();
  (*folder)->all = true;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (!it->is_directory(ignored)) continue;
    const absl::Status status = AddTree(it->path().string(), depth + 1);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

bool FileWatch::ReadEvents(absl::Duration timeout, std::string* changed) {
  pollfd waited = {fd_, POLLIN, 0};
  const int milliseconds =
      timeout == absl::InfiniteDuration()
          ? -1
          : static_cast<int>(absl::ToInt64Milliseconds(timeout)) + 1;
  if (poll(&waited, 1, milliseconds) <= 0) return false;
  alignas(inotify_event) char buffer[16 << 10];
  bool counts = false;
  ssize_t size = 0;
  while ((size = read(fd_, buffer, sizeof buffer)) > 0) {
    for (const char* at = buffer; at < buffer + size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof(inotify_event) + event->len;
      const std::string name = event->len > 0 ? event->name : "";
      const auto folder = folders_.find(event->wd);
      const bool lost =
          (event->mask & (IN_Q_OVERFLOW | IN_DELETE_SELF | IN_MOVE_SELF)) != 0;
      const bool known = folder != folders_.end();
      // For a folder itself only its removal counts, not its attributes.
      if (!lost &&
          !(known && !name.empty() &&
            (folder->second.all || folder->second.names.count(name) > 0))) {
        continue;
      }
      if (!counts && known && changed->empty()) {
        *changed = name.empty() ? folder->second.path
                                : (fs::path(folder->second.path) / name)
                                      .lexically_normal()
                                      .string();
      }
      counts = true;
    }
  }
  return counts;
}

std::string FileWatch::WaitForChange(absl::Duration quiet) {
  std::string changed;
  while (!ReadEvents(absl::InfiniteDuration(), &changed)) {
  }
  const absl::Time latest = absl::Now() + 10 * quiet;
  absl::Time until = absl::Now() + quiet;
  while (absl::Now() < until && until < latest) {
    if (ReadEvents(until - absl::Now(), &changed)) until = absl::Now() + quiet;
  }
  return changed;
}

}  // namespace fncache::runner::render
