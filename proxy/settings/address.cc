// SPDX-License-Identifier: Apache-2.0
#include "proxy/settings/address.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/file.h"
#include "common/listen_address.h"
#include "common/utf8.h"

namespace fncache::proxy::settings {
namespace {

struct Address {
  // Lower case, without brackets; IPv6 in its shortest form (it is unique).
  std::string host;
  bool bracketed = false;
  int port = -1;
};

// The port stays -1 if the text is no address.
Address Split(absl::string_view text) {
  Address address;
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return address;
  absl::string_view host = text.substr(0, colon);
  const absl::string_view port = text.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    address.bracketed = true;
    host = host.substr(1, host.size() - 2);
  }
  address.host = absl::AsciiStrToLower(host);
  in6_addr parsed;
  char shortest[INET6_ADDRSTRLEN];
  if (address.bracketed &&
      inet_pton(AF_INET6, address.host.c_str(), &parsed) == 1 &&
      inet_ntop(AF_INET6, &parsed, shortest, sizeof shortest) != nullptr) {
    address.host = shortest;
  }
  for (const char c : port) {
    if (!absl::ascii_isdigit(c)) return address;
  }
  int number = 0;
  if (port.size() > 5 || !absl::SimpleAtoi(port, &number)) return address;
  if (number <= 65535) address.port = number;
  return address;
}

bool IsIpv4(const std::string& host) {
  in_addr ignored;
  return inet_pton(AF_INET, host.c_str(), &ignored) == 1;
}

bool IsHost(const Address& address) {
  if (address.bracketed) {
    in6_addr ignored;
    return inet_pton(AF_INET6, address.host.c_str(), &ignored) == 1;
  }
  if (address.host.empty() || address.host.size() > 253) return false;
  for (const char c : address.host) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '-' && c != '_') {
      return false;
    }
  }
  // A host that looks like an IPv4 address must be one.
  if (address.host.find_first_not_of("0123456789.") == std::string::npos) {
    return IsIpv4(address.host);
  }
  return true;
}

// Calls can go to a host with a port other than 0.
absl::Status CheckEndpoint(absl::string_view text, bool (*fits)(const Address&),
                           absl::string_view unfit) {
  Address address = Split(text);
  // A link-local address may name its interface: [fe80::1%eth0].
  if (address.bracketed) {
    address.host = address.host.substr(0, address.host.find('%'));
  }
  if (address.port <= 0) {
    return absl::InvalidArgumentError("has no port from 1 to 65535");
  }
  return fits(address) ? absl::OkStatus() : absl::InvalidArgumentError(unfit);
}

absl::Status CheckEndpoints(absl::string_view list,
                            bool (*fits)(const Address&),
                            absl::string_view unfit) {
  for (const absl::string_view one : absl::StrSplit(list, ',')) {
    absl::Status status = CheckEndpoint(one, fits, unfit);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

constexpr absl::string_view kUnix = "unix:";
constexpr absl::string_view kAbstract = "unix-abstract:";

bool IsUnix(absl::string_view text) {
  return absl::StartsWith(text, kUnix) || absl::StartsWith(text, kAbstract);
}

// A unix socket's path.
absl::Status CheckSocketPath(absl::string_view path) {
  // unix://PATH would be a host; unix:///PATH is an absolute path.
  if (absl::StartsWith(path, "///")) {
    path.remove_prefix(2);
  } else if (absl::StartsWith(path, "//")) {
    return absl::InvalidArgumentError("has a host before the path");
  }
  if (path.empty() || path == "/") {
    return absl::InvalidArgumentError("has no path");
  }
  static_assert(sizeof(sockaddr_un::sun_path) == kMaxSocketPath + 1, "");
  if (path.size() > kMaxSocketPath) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has a path that is too long: ", path.size(),
        " bytes, where a unix socket's has at most ", kMaxSocketPath));
  }
  if (absl::StrContains(path, '\0')) {
    return absl::InvalidArgumentError("has a path with a NUL");
  }
  if (path.find_first_of("?#") != absl::string_view::npos) {
    // gRPC reads a URI, and its path ends at these characters.
    return absl::InvalidArgumentError("has a path with ? or #");
  }
  return absl::OkStatus();
}

// `text` must be IsUnix.
absl::Status CheckUnix(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, kAbstract)) text.remove_prefix(kUnix.size());
  return CheckSocketPath(text);
}

// A name that is the same for all spellings of one socket. `text` must be
// IsUnix.
std::string SocketOf(absl::string_view text) {
  if (absl::StartsWith(text, kAbstract)) return std::string(text);
  text.remove_prefix(kUnix.size());
  return FollowedPath(std::string(text));
}

bool SameSocket(absl::string_view a, absl::string_view b) {
  return IsUnix(a) && IsUnix(b) && SocketOf(a) == SocketOf(b);
}

absl::Status CheckTargetFields(absl::string_view text) {
  absl::string_view rest = text;
  if (IsUnix(text)) return CheckUnix(text);
  if (absl::ConsumePrefix(&rest, "ipv4:")) {
    return CheckEndpoints(
        rest, [](const Address& a) { return !a.bracketed && IsIpv4(a.host); },
        "has a host that is no IPv4 address");
  }
  if (absl::ConsumePrefix(&rest, "ipv6:")) {
    return CheckEndpoints(
        rest, [](const Address& a) { return a.bracketed && IsHost(a); },
        "has a host that is no IPv6 address in brackets");
  }
  if (absl::ConsumePrefix(&rest, "dns:")) {
    if (absl::ConsumePrefix(&rest, "//")) {
      // The text up to the next slash is the name server; it is mostly empty.
      const size_t slash = rest.find('/');
      if (slash == absl::string_view::npos) {
        return absl::InvalidArgumentError(
            "has two slashes after dns:, where three are meant");
      }
      rest.remove_prefix(slash + 1);
    }
  } else if (const size_t scheme = rest.find("://");
             scheme != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("has a scheme, ", Printable(rest.substr(0, scheme)),
                     "://, that gRPC does not take"));
  }
  return CheckEndpoint(rest, &IsHost, "has no host to call");
}

std::string Shown(absl::string_view text) {
  return absl::StrCat("\"", Printable(text.substr(0, 100)), "\" ");
}

bool TakesEveryHost(const Address& address) {
  return address.host == (address.bracketed ? "::" : "0.0.0.0");
}

}  // namespace

absl::Status CheckAddress(absl::string_view text) {
  const Address address = Split(WithHost(text));
  if (address.port < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Shown(text), "has no port from 0 to 65535"));
  }
  if (!IsHost(address)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Shown(text), "has no host to listen on"));
  }
  return absl::OkStatus();
}

absl::Status CheckListen(absl::string_view text) {
  if (!IsUnix(text)) return CheckAddress(text);
  const absl::Status status = CheckUnix(text);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat(Shown(text), status.message()));
}

const char kTargetForms[] =
    "HOST:PORT, dns:///HOST:PORT, unix:PATH, ipv4:ADDRESS:PORT or "
    "ipv6:[ADDRESS]:PORT";

absl::Status CheckTarget(absl::string_view text) {
  const absl::Status status = CheckTargetFields(text);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat(Shown(text), status.message()));
}

bool AddressesCollide(absl::string_view a, absl::string_view b) {
  if (IsUnix(a) || IsUnix(b)) return SameSocket(a, b);
  const Address first = Split(WithHost(a));
  const Address second = Split(WithHost(b));
  if (first.port != second.port || first.port == 0) return false;
  return first.host == second.host || TakesEveryHost(first) ||
         TakesEveryHost(second);
}

// An IPv4 address may be written as one of IPv6 (RFC 4291, 2.5.5.2).
std::string HostOf(const Address& address) {
  std::string host = address.host;
  if (absl::StartsWith(host, "::ffff:")) host.erase(0, 7);
  return IsIpv4(host) ? host : address.host;
}

bool IsLoopback(absl::string_view text) {
  const std::string host = HostOf(Split(text));
  return host == "localhost" || host == "::1" ||
         (IsIpv4(host) && absl::StartsWith(host, "127."));
}

bool LeadsTo(absl::string_view target, absl::string_view listen) {
  if (IsUnix(target) || IsUnix(listen)) return SameSocket(target, listen);
  if (!absl::ConsumePrefix(&target, "ipv4:") &&
      !absl::ConsumePrefix(&target, "ipv6:") &&
      absl::ConsumePrefix(&target, "dns:")) {
    target.remove_prefix(target.rfind('/') + 1);
  }
  const Address at = Split(WithHost(listen));
  for (const absl::string_view one : absl::StrSplit(target, ',')) {
    const Address to = Split(one);
    if (to.port != at.port || at.port == 0) continue;
    const std::string host = HostOf(to);
    const std::string own = HostOf(at);
    // A connection to 0.0.0.0 or [::] reaches this machine.
    const bool here = host == "localhost" || TakesEveryHost(to);
    if (host == own || (here && (own == "127.0.0.1" || own == "::1")) ||
        ((here || IsLoopback(one)) &&
         (TakesEveryHost(at) || own == "localhost"))) {
      return true;
    }
  }
  return false;
}

}  // namespace fncache::proxy::settings
