// SPDX-License-Identifier: Apache-2.0
// `fncache admin stats`: one look at what a daemon counts, or one after the
// other.
#ifndef FNCACHE_PROXY_ADMIN_WATCH_H_
#define FNCACHE_PROXY_ADMIN_WATCH_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace fncache::proxy::admin {

struct WatchOptions {
  std::string socket;
  // How often; absent: once.
  absl::optional<absl::Duration> every;
  bool json = false;
};

// Prints to standard output until that fails, the daemon goes or the user ends
// it. On a terminal a live table takes the screen, and waits for a daemon that
// has gone to come back. Returns the exit code of an end that is no failure.
absl::StatusOr<int> WatchStats(const WatchOptions& options);

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_WATCH_H_
