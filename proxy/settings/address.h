// SPDX-License-Identifier: Apache-2.0
// Addresses as settings give them: those to listen on (HOST:PORT and
// [IPV6]:PORT, and for functions unix sockets), and the targets that calls go
// to.
//
// Thread-safe. Pure functions, but for the links that are followed where two
// paths of unix sockets are compared.
#ifndef FNCACHE_PROXY_SETTINGS_ADDRESS_H_
#define FNCACHE_PROXY_SETTINGS_ADDRESS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fncache::proxy::settings {

// The longest path that a unix socket may have (sockaddr_un, less its end).
inline constexpr size_t kMaxSocketPath = 107;

// OK, or InvalidArgument that says what is wrong. Hosts are names or literal
// addresses, or left out (common/listen_address.h); IPv6 in brackets; ports 0
// to 65535.
absl::Status CheckAddress(absl::string_view text);

// The same, but for unix:PATH, unix:///PATH and unix-abstract:NAME, which are
// fine as well and read as CheckTarget reads them.
absl::Status CheckListen(absl::string_view text);

// The forms of a target that CheckTarget accepts, for messages.
extern const char kTargetForms[];

// OK, or InvalidArgument that says why gRPC could not call this target, or what
// it would call instead: it takes a scheme that it does not know for a host's
// name, and a missing port for 443.
absl::Status CheckTarget(absl::string_view text);

// Whether listening on both cannot work: the same port, other than 0, on the
// same host or where one takes every host; or one unix socket. Both passed
// CheckListen.
bool AddressesCollide(absl::string_view a, absl::string_view b);

// Whether calls to this target come in at this address of the same machine.
// The one passed CheckTarget, the other CheckListen. Names other than localhost
// are not asked for.
bool LeadsTo(absl::string_view target, absl::string_view listen);

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_ADDRESS_H_
