// SPDX-License-Identifier: Apache-2.0
// Checks the addresses in settings: those to listen on (HOST:PORT, [IPV6]:PORT,
// and for functions unix sockets), and the targets of calls.
//
// Thread-safe. Pure functions, except that links are followed to compare two
// paths of unix sockets.
#ifndef FNCACHE_PROXY_SETTINGS_ADDRESS_H_
#define FNCACHE_PROXY_SETTINGS_ADDRESS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fncache::proxy::settings {

// Bytes of the longest path of a unix socket (sockaddr_un, without its end).
inline constexpr size_t kMaxSocketPath = 107;

// OK, or InvalidArgument that says what is wrong. A host is a name, a literal
// address (IPv6 in brackets), or left out (common/listen_address.h). A port is
// 0 to 65535.
absl::Status CheckAddress(absl::string_view text);

// The same, but it also accepts unix:PATH, unix:///PATH and unix-abstract:NAME.
// It reads them as CheckTarget does.
absl::Status CheckListen(absl::string_view text);

// The forms of a target that CheckTarget accepts, for messages.
extern const char kTargetForms[];

// OK, or InvalidArgument. The error says why gRPC cannot call this target, or
// which other target it would call: it reads an unknown scheme as the name of a
// host, and a missing port as 443.
absl::Status CheckTarget(absl::string_view text);

// Whether a process cannot listen on both addresses. They have the same port,
// other than 0, and the same host, or one of them takes every host. Or both are
// one unix socket. Both must have passed CheckListen.
bool AddressesCollide(absl::string_view a, absl::string_view b);

// Whether calls to this target arrive at this address of the same machine.
// `target` must have passed CheckTarget, and `listen` CheckListen. Names other
// than localhost are not resolved.
bool LeadsTo(absl::string_view target, absl::string_view listen);

// Whether HOST:PORT is on this machine for certain: localhost, 127.0.0.0/8 or
// [::1].
bool IsLoopback(absl::string_view text);

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_ADDRESS_H_
