// SPDX-License-Identifier: Apache-2.0
// Starts the admin service on the path of the settings, or on a default path.
#ifndef FNCACHE_PROXY_ADMIN_START_H_
#define FNCACHE_PROXY_ADMIN_START_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proxy/admin/server.h"
#include "proxy/admin/socket.h"

namespace fncache::proxy::admin {

struct StartOptions {
  // The setting's path. Empty: no socket. Absent: the first default path that
  // can be used.
  absl::optional<std::string> path;
  absl::optional<std::string> cache_dir;
  size_t max_lookup_bytes = 256 << 20;
  // See ServerOptions.
  std::function<void()> connection_refused;
  Environment environment;
  // Made with mode 0700 if it is needed and missing.
  std::string user_folder = UserFolder();
};

// Returns null, and logs why, if no default path can be used, or if another
// daemon uses it. If the path was given, that is an error; it names the setting
// and the path.
absl::StatusOr<std::unique_ptr<Server>> StartService(
    const StartOptions& options, Actions* actions);

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_START_H_
