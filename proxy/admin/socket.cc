// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/socket.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proxy/settings/address.h"

namespace fncache::proxy::admin {

absl::Status CheckSocketPath(const std::string& path) {
  if (path.size() <= settings::kMaxSocketPath) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " has ", path.size(),
                   " bytes; the path of a unix socket has at most ",
                   settings::kMaxSocketPath));
}

std::string SocketBeside(const std::string& cache_dir) {
  return absl::StrCat(cache_dir, "/admin.sock");
}

std::string UserFolder() { return absl::StrCat("/tmp/fncache-", geteuid()); }

std::string FolderOf(const std::string& socket) {
  return socket.substr(0, socket.rfind('/'));
}

absl::Status CheckUserFolder(const std::string& path) {
  const uid_t user = geteuid();
  const auto unsafe = [&](const std::string& why) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " ", why, "; accepted: a folder of user ", user,
                     " with mode 0700"));
  };
  struct stat folder = {};
  if (lstat(path.c_str(), &folder) != 0) {
    if (errno == ENOENT) {
      return absl::NotFoundError(
          absl::StrCat(path, ": ", std::strerror(ENOENT)));
    }
    return unsafe(absl::StrCat("cannot be checked: ", std::strerror(errno)));
  }
  if (S_ISLNK(folder.st_mode)) return unsafe("is a link");
  if (!S_ISDIR(folder.st_mode)) return unsafe("is no folder");
  if (folder.st_uid != user) {
    return unsafe(absl::StrCat("belongs to user ", folder.st_uid));
  }
  const unsigned mode = folder.st_mode & 0777;
  if (mode != 0700) return unsafe(absl::StrFormat("has mode %04o", mode));
  // A user who may write to the parent may rename any folder in it. With the
  // sticky bit only the folder's owner may.
  struct stat parent = {};
  if (stat(absl::StrCat(FolderOf(path), "/").c_str(), &parent) != 0) {
    return unsafe(absl::StrCat("cannot be checked: ", std::strerror(errno)));
  }
  if ((parent.st_mode & 0022) != 0 && (parent.st_mode & S_ISVTX) == 0) {
    return unsafe("can be replaced by other users");
  }
  return absl::OkStatus();
}

std::vector<std::string> DefaultSockets(
    const absl::optional<std::string>& cache_dir,
    const Environment& environment, const std::string& user_folder) {
  std::vector<std::string> places;
  if (cache_dir.has_value() && !cache_dir->empty()) {
    places.push_back(SocketBeside(*cache_dir));
  }
  const std::string runtime = environment("XDG_RUNTIME_DIR").value_or("");
  // The XDG specification says to ignore a relative path.
  if (absl::StartsWith(runtime, "/")) {
    places.push_back(absl::StrCat(runtime, "/fncache/admin.sock"));
  }
  places.emplace_back("/run/fncache/admin.sock");
  places.push_back(absl::StrCat(user_folder, "/admin.sock"));
  return places;
}

}  // namespace fncache::proxy::admin
