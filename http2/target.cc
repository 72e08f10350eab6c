// SPDX-License-Identifier: Apache-2.0
#include "http2/target.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace fncache::http2 {
namespace {

absl::StatusOr<std::vector<Endpoint>> Ask(const std::string& host,
                                          const std::string& port, int flags) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("no address for ", host, ": ", gai_strerror(error)));
  }
  std::vector<Endpoint> out;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    Endpoint endpoint;
    std::memcpy(&endpoint.address, one->ai_addr, one->ai_addrlen);
    endpoint.size = one->ai_addrlen;
    endpoint.text = AddressText(one->ai_addr, one->ai_addrlen);
    bool known = false;
    for (const Endpoint& other : out) known = known || other == endpoint;
    if (!known) out.push_back(std::move(endpoint));
  }
  freeaddrinfo(found);
  return out;
}

absl::Status Unfit(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" ", why));
}

}  // namespace

std::string AddressText(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> host;
  std::array<char, NI_MAXSERV> port;
  if (getnameinfo(address, size, host.data(), host.size(), port.data(),
                  port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "?";
  }
  return address->sa_family == AF_INET6
             ? absl::StrCat("[", host.data(), "]:", port.data())
             : absl::StrCat(host.data(), ":", port.data());
}

bool SplitHostPort(absl::string_view text, std::string* host,
                   std::string* port) {
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos || colon + 1 == text.size()) {
    return false;
  }
  absl::string_view name = text.substr(0, colon);
  if (name.size() >= 2 && name.front() == '[' && name.back() == ']') {
    name = name.substr(1, name.size() - 2);
  }
  *host = std::string(name);
  *port = std::string(text.substr(colon + 1));
  return true;
}

bool IsUnix(absl::string_view text) {
  return absl::StartsWith(text, "unix:") ||
         absl::StartsWith(text, "unix-abstract:");
}

bool UnixEndpoint(absl::string_view path, Endpoint* out) {
  auto* const address = reinterpret_cast<sockaddr_un*>(&out->address);
  if (path.empty()) return false;
  const bool abstract = path[0] == '\0';
  // A path ends with a NUL, an abstract name begins with one.
  if (path.size() + (abstract ? 0 : 1) > sizeof address->sun_path) return false;
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path, path.data(), path.size());
  out->size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) +
                                     path.size() + (abstract ? 0 : 1));
  out->text = abstract ? absl::StrCat("unix-abstract:", path.substr(1))
                       : absl::StrCat("unix:", path);
  return true;
}

void KeepAlive(int fd) {
  const int on = 1;
  const int idle = 10;
  const int every = 5;
  const int times = 2;
  const unsigned unacknowledged = 20'000;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged,
             sizeof unacknowledged);
}

absl::StatusOr<Target> ParseTarget(absl::string_view text) {
  Target target;
  absl::string_view rest = text;
  if (absl::StrContains(text, '\0')) return Unfit(text, "has a NUL");
  const bool abstract = absl::ConsumePrefix(&rest, "unix-abstract:");
  if (abstract || absl::ConsumePrefix(&rest, "unix:")) {
    // unix:///path is an absolute path, too.
    while (!abstract && absl::StartsWith(rest, "//")) rest.remove_prefix(1);
    Endpoint endpoint;
    if (!UnixEndpoint(abstract ? absl::StrCat(std::string(1, '\0'), rest)
                               : std::string(rest),
                      &endpoint)) {
      return Unfit(text, "has a path that is empty or too long");
    }
    target.name = "localhost";
    target.endpoints.push_back(std::move(endpoint));
    return target;
  }
  if (absl::ConsumePrefix(&rest, "ipv4:") ||
      absl::ConsumePrefix(&rest, "ipv6:")) {
    for (const absl::string_view one : absl::StrSplit(rest, ',')) {
      std::string host;
      std::string port;
      if (!SplitHostPort(one, &host, &port)) return Unfit(text, "has no port");
      auto found = Ask(host, port, AI_NUMERICHOST | AI_NUMERICSERV);
      if (!found.ok() || found->empty()) {
        return Unfit(text, "has a host that is no address");
      }
      target.endpoints.push_back(std::move(found->front()));
      if (target.name.empty()) target.name = host;
    }
    return target;
  }
  if (absl::ConsumePrefix(&rest, "dns:") && absl::ConsumePrefix(&rest, "//")) {
    // A name server in the target is ignored: the system chooses its own.
    const size_t slash = rest.find('/');
    if (slash == absl::string_view::npos) {
      return Unfit(text, "has two slashes after dns:, where three are meant");
    }
    rest.remove_prefix(slash + 1);
  }
  if (!SplitHostPort(rest, &target.host, &target.port) || target.host.empty()) {
    return Unfit(text, "has no host and port");
  }
  target.name = target.host;
  // An address needs no resolution.
  auto found = Ask(target.host, target.port, AI_NUMERICHOST | AI_NUMERICSERV);
  if (found.ok()) {
    target.endpoints = *std::move(found);
    target.host.clear();
  }
  return target;
}

absl::StatusOr<std::vector<Endpoint>> Resolve(const std::string& host,
                                              const std::string& port) {
  return Ask(host, port, AI_ADDRCONFIG);
}

}  // namespace fncache::http2
