// SPDX-License-Identifier: Apache-2.0
// The address of a server as users write it.
//
// Pure; thread-safe.
#ifndef FNCACHE_RESP_URL_H_
#define FNCACHE_RESP_URL_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "resp/client_options.h"

namespace fncache::resp {

// Reads `redis://HOST:PORT`, `rediss://HOST:PORT` (TLS) or `unix:PATH`, with
// IPv6 in brackets. InvalidArgument with a reason, which never repeats a user
// or a password: another scheme, no port, a path after HOST:PORT, a user or
// password.
absl::StatusOr<Endpoint> ParseUrl(absl::string_view url);

}  // namespace fncache::resp

#endif  // FNCACHE_RESP_URL_H_
