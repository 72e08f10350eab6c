// SPDX-License-Identifier: Apache-2.0
// Where the admin socket is, if nobody says so: the daemon and its client look
// in the same places.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_PROXY_ADMIN_SOCKET_H_
#define FNCACHE_PROXY_ADMIN_SOCKET_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"

namespace fncache::proxy::admin {

// A variable's value, or nothing if it is not set.
using Environment =
    std::function<absl::optional<std::string>(const std::string& name)>;

// OK, or InvalidArgument that says how long the path is and may be.
absl::Status CheckSocketPath(const std::string& path);

// That of a daemon with this cache directory.
std::string SocketBeside(const std::string& cache_dir);

// In the order in which they are tried: CACHE_DIR/admin.sock where there is
// such a directory, $XDG_RUNTIME_DIR/fncache/admin.sock where that is set,
// /run/fncache/admin.sock.
std::vector<std::string> DefaultSockets(
    const absl::optional<std::string>& cache_dir,
    const Environment& environment);

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_SOCKET_H_
