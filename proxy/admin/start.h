// SPDX-License-Identifier: Apache-2.0
// Starts the admin service where the settings say, or where there is a place
// for it.
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
  // The setting: a path; "" = no socket; absent = the first of the default
  // places that can be used.
  absl::optional<std::string> path;
  absl::optional<std::string> cache_dir;
  size_t max_lookup_bytes = 256 << 20;
  // See ServerOptions.
  std::function<void()> connection_refused;
  Environment environment;
  // Made with mode 0700 where it is needed and not there.
  std::string user_folder = UserFolder();
};

// Null, with a line in the log that says why, where no default place can be
// used, or where another daemon has it already. Where the path was given, that
// is an error that names setting and path.
absl::StatusOr<std::unique_ptr<Server>> StartService(
    const StartOptions& options, Actions* actions);

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_START_H_
