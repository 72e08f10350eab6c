// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/connections.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fncache::sdk::serve {
namespace {

// The other end of a socket as gRPC spells it; empty if it is no TCP socket's.
// gRPC takes IPv4 in IPv6's form for IPv4.
std::string PeerOf(int fd) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof peer;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) {
    return "";
  }
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (peer.ss_family == AF_INET) {
    const auto* const v4 = reinterpret_cast<const sockaddr_in*>(&peer);
    inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
    return absl::StrCat("ipv4:", text.data(), ":", ntohs(v4->sin_port));
  }
  if (peer.ss_family != AF_INET6) return "";
  const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(&peer);
  if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
    constexpr int kPrefix = 12;
    inet_ntop(AF_INET, v6->sin6_addr.s6_addr + kPrefix, text.data(),
              text.size());
    return absl::StrCat("ipv4:", text.data(), ":", ntohs(v6->sin6_port));
  }
  inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
  return absl::StrCat("ipv6:%5B", text.data(), "%5D:", ntohs(v6->sin6_port));
}

}  // namespace

bool CloseConnection(const std::string& peer) {
  const std::unique_ptr<DIR, int (*)(DIR*)> all(opendir("/proc/self/fd"),
                                                &closedir);
  if (all == nullptr) return false;
  while (const dirent* const one = readdir(all.get())) {
    int fd = 0;
    if (!absl::SimpleAtoi(one->d_name, &fd) || PeerOf(fd) != peer) continue;
    // It drops what was received and is not read yet, as shutdown(2) does not
    // (connect(2): AF_UNSPEC dissolves an association).
    sockaddr none = {};
    none.sa_family = AF_UNSPEC;
    return connect(fd, &none, sizeof none) == 0;
  }
  return false;
}

}  // namespace fncache::sdk::serve
