// SPDX-License-Identifier: Apache-2.0
// Ends connections of this process that gRPC's library owns and does not end.
//
// Thread-safe.
#ifndef FNCACHE_SDK_SERVE_CONNECTIONS_H_
#define FNCACHE_SDK_SERVE_CONNECTIONS_H_

#include <string>

namespace fncache::sdk::serve {

// Resets the TCP connection whose other end is `peer`, in gRPC's words:
// "ipv4:127.0.0.1:4711" or "ipv6:%5B::1%5D:4711". gRPC then finds it closed.
// False if there is none.
bool CloseConnection(const std::string& peer);

}  // namespace fncache::sdk::serve

#endif  // FNCACHE_SDK_SERVE_CONNECTIONS_H_
