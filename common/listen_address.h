// SPDX-License-Identifier: Apache-2.0
// Addresses to listen on, as people write them, and the port of a socket.
//
// Thread-safe.
#ifndef FNCACHE_COMMON_LISTEN_ADDRESS_H_
#define FNCACHE_COMMON_LISTEN_ADDRESS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace fncache {

// The address with a host: without one, as Go writes it, `:9443` is every
// address of IPv4, `0.0.0.0:9443`. Any other text is returned as it is.
std::string WithHost(absl::string_view address);

// The port that a TCP socket is bound to.
int PortOf(int fd);

}  // namespace fncache

#endif  // FNCACHE_COMMON_LISTEN_ADDRESS_H_
