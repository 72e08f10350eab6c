// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/address.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/listen_failure.h"
#include "common/utf8.h"

namespace fncache::sdk::serve {
namespace {

constexpr absl::string_view kUnix = "unix:";

absl::Status UnixFailure(const std::string& address, absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", Printable(address), ": ", why));
}

// Connects to, or binds, a socket of the path; 0 or the error.
template <typename Call>
int Try(const std::string& address, Call call) {
  sockaddr_un to = {};
  to.sun_family = AF_UNIX;
  const absl::string_view path = absl::StripPrefix(address, kUnix);
  if (path.size() >= sizeof to.sun_path) return ENAMETOOLONG;
  std::memcpy(to.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const int error =
      call(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 ? 0
                                                                       : errno;
  close(fd);
  return error;
}

// gRPC and getaddrinfo would take a port beyond 65535 as another one.
bool HasPort(absl::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) return false;
  const absl::string_view host = address.substr(0, colon);
  const absl::string_view digits = address.substr(colon + 1);
  uint32_t port = 0;
  return absl::StartsWith(host, "[") == absl::EndsWith(host, "]") &&
         std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(digits, &port) && port <= 65535;
}

std::string NotAccepted(const std::string& address, absl::string_view forms) {
  return absl::StrCat("\"", Printable(address),
                      "\" is not accepted; accepted: ", forms,
                      ", the port from 0 to 65535");
}

}  // namespace

std::string WhyNoAddress(const std::string& address) {
  if (absl::StartsWith(address, kUnix)) {
    return address.size() > kUnix.size() ? "" : "unix: needs a path";
  }
  if (HasPort(address)) return "";
  return NotAccepted(address, "HOST:PORT, :PORT or unix:PATH");
}

std::string WhyNoMetricsAddress(const std::string& address) {
  if (address.empty() || HasPort(address)) return "";
  return NotAccepted(address, "HOST:PORT or :PORT");
}

absl::Status CheckFree(const std::string& address) {
  if (!absl::StartsWith(address, kUnix) || Try(address, &connect) != 0) {
    return absl::OkStatus();
  }
  return UnixFailure(address, "another process listens there");
}

absl::Status CannotListen(const std::string& address) {
  if (!absl::StartsWith(address, kUnix)) return ListenFailure(address);
  const int error = Try(address, &bind);
  if (error == 0) unlink(address.c_str() + kUnix.size());
  return UnixFailure(address, error == 0 ? "it was in use a moment ago"
                                         : std::strerror(error));
}

std::string WithPort(const std::string& address, int port) {
  if (absl::StartsWith(address, kUnix)) return address;
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

}  // namespace fncache::sdk::serve
