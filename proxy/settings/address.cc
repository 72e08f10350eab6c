#include "proxy/settings/address.h"

#include <arpa/inet.h>

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/utf8.h"

namespace fncache::proxy::settings {
namespace {

struct Address {
  // Lower case, without brackets; IPv6 in its one shortest form.
  std::string host;
  bool bracketed = false;
  int port = -1;
};

// port stays -1 where the text is no address.
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
  // What looks like an IPv4 address must be one.
  if (address.host.find_first_not_of("0123456789.") == std::string::npos) {
    in_addr ignored;
    return inet_pton(AF_INET, address.host.c_str(), &ignored) == 1;
  }
  return true;
}

bool TakesEveryHost(const Address& address) {
  return address.host == (address.bracketed ? "::" : "0.0.0.0");
}

}  // namespace

absl::Status CheckAddress(absl::string_view text) {
  const Address address = Split(text);
  const std::string shown =
      absl::StrCat("\"", Printable(text.substr(0, 100)), "\" ");
  if (address.port < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, "has no port from 0 to 65535"));
  }
  if (!IsHost(address)) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, "has no host to listen on"));
  }
  return absl::OkStatus();
}

bool AddressesCollide(absl::string_view a, absl::string_view b) {
  const Address first = Split(a);
  const Address second = Split(b);
  if (first.port != second.port || first.port == 0) return false;
  return first.host == second.host || TakesEveryHost(first) ||
         TakesEveryHost(second);
}

}  // namespace fncache::proxy::settings
