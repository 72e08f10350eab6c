// SPDX-License-Identifier: Apache-2.0
#include "common/listen_failure.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/utf8.h"

namespace fncache {
namespace {

// Returns the error of binding a socket to the address, or of making one; 0 if
// the address is free.
int BindError(const addrinfo& address) {
  const int fd =
      socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  // As gRPC does, so that connections which linger from an earlier process do
  // not count as users of the address.
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const int error =
      bind(fd, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  close(fd);
  return error;
}

std::string Words(int error) {
  switch (error) {
    case EADDRINUSE:
      return "the address is in use, by another process or another listener";
    case EADDRNOTAVAIL:
      return "this machine does not have the address";
    case EACCES:
      return "permission denied: low ports are for privileged processes";
    default:
      return std::strerror(error);
  }
}

std::string Reason(absl::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) return "it has no port";
  absl::string_view host = address.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int unknown = getaddrinfo(
      std::string(host).c_str(), std::string(address.substr(colon + 1)).c_str(),
      &hints, &found);
  if (unknown != 0) {
    return absl::StrCat("its host has no address: ", gai_strerror(unknown));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, freeaddrinfo);
  for (const addrinfo* one = all.get(); one != nullptr; one = one->ai_next) {
    const int error = BindError(*one);
    if (error != 0) return Words(error);
  }
  return "the address was in use a moment ago";
}

}  // namespace

absl::Status ListenFailure(absl::string_view address) {
  return absl::UnavailableError(absl::StrCat(
      "cannot listen on ", Printable(address), ": ", Reason(address)));
}

}  // namespace fncache
