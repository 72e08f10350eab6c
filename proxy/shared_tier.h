// SPDX-License-Identifier: Apache-2.0
// The files of the shared tier: the secret, the password and the certificates.
// They make the secret and the options of the client (resp/client.h), for the
// daemon and for `serve --check-shared`.
//
// No message has a file's content. Thread-safe.
#ifndef FNCACHE_PROXY_SHARED_TIER_H_
#define FNCACHE_PROXY_SHARED_TIER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proxy/settings/options.h"
#include "resp/client.h"

namespace fncache::proxy {

struct SharedTier {
  std::string secret;  // never log it
  // Its login reads the password's file each time. If that fails, the last
  // password that was read stays.
  resp::ClientOptions client;
  // About certificates, a line each.
  std::vector<std::string> warnings;
};

// Precondition: MakeServeOptions accepted `options`, and there is a URL.
// OutOfRange: the secret is too short; the message is for SettingError. Other
// errors name the setting and the file that is missing or cannot be used.
absl::StatusOr<SharedTier> ReadSharedTier(
    const settings::SharedOptions& options);

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_SHARED_TIER_H_
