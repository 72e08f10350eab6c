// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/start.h"

#include <sys/stat.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "common/status.h"

namespace fncache::proxy::admin {
namespace {

constexpr char kSetting[] = "admin_socket";

// In $XDG_RUNTIME_DIR the folder is ours to make; /run/fncache is the service
// manager's, and a cache directory has been made by the disk tier.
void MakeFolder(const std::string& socket, const Environment& environment) {
  const std::string runtime = environment("XDG_RUNTIME_DIR").value_or("");
  const std::string folder = socket.substr(0, socket.rfind('/'));
  if (!runtime.empty() && folder == absl::StrCat(runtime, "/fncache")) {
    mkdir(folder.c_str(), 0700);
  }
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
  std::string why;
  for (const std::string& path :
       DefaultSockets(options.cache_dir, options.environment)) {
    MakeFolder(path, options.environment);
    auto server = start(path);
    if (server.ok()) return server;
    // The first place is the one that people will ask for.
    if (why.empty()) why = std::string(server.status().message());
    // The next place would be found by a client that means the other daemon.
    if (absl::IsAlreadyExists(server.status())) break;
  }
  Log(LogLevel::kInfo,
      "fncache admin cannot reach this daemon: it has no admin socket; "
      "--admin-socket PATH gives it one",
      {{"why", why}});
  return nullptr;
}

}  // namespace fncache::proxy::admin
