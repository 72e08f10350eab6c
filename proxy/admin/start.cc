// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/start.h"

#include <sys/stat.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/log.h"
#include "common/status.h"

namespace fncache::proxy::admin {
namespace {

constexpr char kSetting[] = "admin_socket";

// Makes the folder of a default socket, if that is the daemon's to make: the
// service manager makes /run/fncache, and the disk tier has made the cache
// directory. An error says that the folder is not safe. The listener reports
// all other errors of the folder.
absl::Status MakeFolder(const std::string& socket,
                        const StartOptions& options) {
  const std::string runtime =
      options.environment("XDG_RUNTIME_DIR").value_or("");
  const std::string folder = FolderOf(socket);
  if (folder == options.user_folder) {
    // mkdir follows no link, and fails if a file exists there.
    mkdir(folder.c_str(), 0700);
    return CheckUserFolder(folder);
  }
  if (!runtime.empty() && folder == absl::StrCat(runtime, "/fncache")) {
    mkdir(folder.c_str(), 0700);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> StartService(
    const StartOptions& options, Actions* actions) {
  const auto start = [&](const std::string& path) {
    ServerOptions server;
    server.path = path;
    server.max_lookup_bytes = options.max_lookup_bytes;
    server.connection_refused = options.connection_refused;
    return Server::Start(std::move(server), actions);
  };
  if (options.path.has_value()) {
    if (options.path->empty()) return nullptr;
    auto server = start(*options.path);
    if (!server.ok()) return Prefixed(kSetting, server.status());
    return server;
  }
  std::vector<std::string> why;
  for (const std::string& path : DefaultSockets(
           options.cache_dir, options.environment, options.user_folder)) {
    absl::Status status = MakeFolder(path, options);
    if (status.ok()) {
      auto server = start(path);
      if (server.ok()) return server;
      status = server.status();
    }
    why.emplace_back(status.message());
    // A client that means the other daemon would find the next path.
    if (absl::IsAlreadyExists(status)) break;
  }
  Log(LogLevel::kInfo,
      "no admin socket: fncache admin cannot reach this daemon; admin_socket "
      "gives it one",
      {{"why", absl::StrJoin(why, "; ")}});
  return nullptr;
}

}  // namespace fncache::proxy::admin
