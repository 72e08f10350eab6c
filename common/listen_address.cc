// SPDX-License-Identifier: Apache-2.0
#include "common/listen_address.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace fncache {

std::string WithHost(absl::string_view address) {
  return absl::StrCat(absl::StartsWith(address, ":") ? "0.0.0.0" : "", address);
}

int PortOf(int fd) {
  sockaddr_storage bound = {};
  socklen_t size = sizeof bound;
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
  return ntohs(bound.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                   : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
}

}  // namespace fncache
