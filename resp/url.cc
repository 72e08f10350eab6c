// SPDX-License-Identifier: Apache-2.0
#include "resp/url.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace fncache::resp {
namespace {

absl::Status Bad(absl::string_view why) {
  return absl::InvalidArgumentError(why);
}

}  // namespace

absl::StatusOr<Endpoint> ParseUrl(absl::string_view url) {
  Endpoint endpoint;
  if (absl::ConsumePrefix(&url, "unix:")) {
    if (url.empty()) return Bad("has no path");
    endpoint.unix_path = std::string(url);
    return endpoint;
  }
  if (absl::ConsumePrefix(&url, "rediss://")) {
    endpoint.tls = true;
  } else if (!absl::ConsumePrefix(&url, "redis://")) {
    return Bad("has another scheme");
  }
  // The text is not repeated, because it may have a password.
  if (absl::StrContains(url, '@')) return Bad("has a user or password");
  if (absl::StrContains(url, '/') || absl::StrContains(url, '?') ||
      absl::StrContains(url, '#')) {
    return Bad("has a path after HOST:PORT");
  }
  const size_t colon = url.rfind(':');
  absl::string_view host = url.substr(0, colon);
  const bool bracketed = !host.empty() && host.front() == '[';
  if (colon == absl::string_view::npos || (bracketed && host.back() != ']')) {
    return Bad("has no port");
  }
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!bracketed && absl::StrContains(host, ':')) {
    return Bad("has an IPv6 address without brackets");
  }
  if (host.empty()) return Bad("has no host");
  if (!absl::SimpleAtoi(url.substr(colon + 1), &endpoint.port) ||
      endpoint.port < 1 || endpoint.port > 65535) {
    return Bad("has no port from 1 to 65535");
  }
  endpoint.host = std::string(host);
  return endpoint;
}

}  // namespace fncache::resp
