// Addresses to listen on: HOST:PORT and [IPV6]:PORT.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_PROXY_SETTINGS_ADDRESS_H_
#define FNCACHE_PROXY_SETTINGS_ADDRESS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fncache::proxy::settings {

// OK, or InvalidArgument that says what is wrong. Hosts are names or literal
// addresses, not empty; IPv6 in brackets; ports 0 to 65535.
absl::Status CheckAddress(absl::string_view text);

// Whether listening on both cannot work: the same port, other than 0, on the
// same host or where one takes every host. Both passed CheckAddress.
bool AddressesCollide(absl::string_view a, absl::string_view b);

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_ADDRESS_H_
