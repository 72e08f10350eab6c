// SPDX-License-Identifier: Apache-2.0
// The path of the admin socket if no setting or flag gives it: the daemon and
// its client try the same paths.
//
// Thread-safe.
#ifndef FNCACHE_PROXY_ADMIN_SOCKET_H_
#define FNCACHE_PROXY_ADMIN_SOCKET_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"

namespace fncache::proxy::admin {

// The value of a variable; absent if it is not set.
using Environment =
    std::function<absl::optional<std::string>(const std::string& name)>;

// OK, or InvalidArgument that says how long the path is and may be.
absl::Status CheckSocketPath(const std::string& path);

// The admin socket of a daemon with this cache directory.
std::string SocketBeside(const std::string& cache_dir);

// Returns the folder of this user's sockets on a machine without a better
// one: /tmp/fncache-UID, of the effective user. It does not depend on the
// environment, so that daemon and client agree.
std::string UserFolder();

// Returns OK if only this user can have put files there: `path` is a folder
// and no link, belongs to the effective user, has mode 0700, and lies in a
// folder where other users cannot replace it. NotFound if nothing is there.
// FailedPrecondition says why it is not safe.
absl::Status CheckUserFolder(const std::string& path);

// The default paths, in the order in which they are tried: CACHE_DIR/admin.sock
// (with a cache directory), $XDG_RUNTIME_DIR/fncache/admin.sock (if it is set),
// /run/fncache/admin.sock, USER_FOLDER/admin.sock. The last one is safe only if
// CheckUserFolder says so.
std::vector<std::string> DefaultSockets(
    const absl::optional<std::string>& cache_dir,
    const Environment& environment, const std::string& user_folder);

// Returns the folder of the socket.
std::string FolderOf(const std::string& socket);

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_SOCKET_H_
