// SPDX-License-Identifier: Apache-2.0
// The check of `fncache serve --check-shared`: does with a server what the
// daemon will do, and describes the server.
//
// It blocks for some seconds at most. Thread-safe.
#ifndef FNCACHE_PROXY_SHARED_CHECK_H_
#define FNCACHE_PROXY_SHARED_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "resp/server.h"

namespace fncache::proxy {

struct SharedReport {
  // Lines of YAML comments: version, role, nodes, round trip, clock, memory.
  std::string text;
  // One line for each warning to the operator.
  std::vector<std::string> warnings;
};

// Waits until the server is up, and asks the node that has the name `record`
// for its time. Then it stores, reads and deletes a value under a random name
// that starts with `prefix`. Unavailable says what failed, in the server's or
// libcurl's words.
absl::StatusOr<SharedReport> CheckShared(absl::string_view prefix,
                                         std::string record,
                                         resp::Server* server);

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_SHARED_CHECK_H_
