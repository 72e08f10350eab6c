// SPDX-License-Identifier: Apache-2.0
// Targets: what a client connects to, in the forms of gRPC's naming
// (doc/naming.md in gRPC's repository): dns:///HOST:PORT, HOST:PORT,
// ipv4:ADDRESS:PORT, ipv6:[ADDRESS]:PORT, unix:PATH, unix-abstract:NAME; lists
// of addresses with commas.
//
// Pure functions, thread-safe; Resolve asks the system's resolver.
#ifndef FNCACHE_HTTP2_TARGET_H_
#define FNCACHE_HTTP2_TARGET_H_

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fncache::http2 {

// A socket's address.
struct Endpoint {
  sockaddr_storage address = {};
  socklen_t size = 0;
  std::string text;  // for people

  bool operator==(const Endpoint& other) const { return text == other.text; }
};

struct Target {
  // Set if the name must be resolved.
  std::string host;
  std::string port;
  // Set if the target has addresses.
  std::vector<Endpoint> endpoints;
  // The name by which the peer is called: for certificates.
  std::string name;
};

// InvalidArgument says what is wrong.
absl::StatusOr<Target> ParseTarget(absl::string_view text);

// Resolves the addresses of a name. May take long. Unavailable says why there
// are none.
absl::StatusOr<std::vector<Endpoint>> Resolve(const std::string& host,
                                              const std::string& port);

// "HOST:PORT" of an address, the host in brackets where it is one of IPv6.
std::string AddressText(const sockaddr* address, socklen_t size);

// False where the text has no port. Brackets are taken off the host.
bool SplitHostPort(absl::string_view text, std::string* host,
                   std::string* port);
// The text is a unix socket's, by a path or an abstract name.
bool IsUnix(absl::string_view text);
// False where the path is empty or too long. A leading NUL is an abstract
// name's.
bool UnixEndpoint(absl::string_view path, Endpoint* out);

// Makes the kernel detect a TCP peer that vanished, within about 20 s.
void KeepAlive(int fd);

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_TARGET_H_
