// SPDX-License-Identifier: Apache-2.0
// `fncache admin stats`: reads a daemon's counts, once or repeatedly.
#ifndef FNCACHE_PROXY_ADMIN_WATCH_H_
#define FNCACHE_PROXY_ADMIN_WATCH_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace fncache::proxy::admin {

struct WatchOptions {
  std::string socket;
  // The interval; absent: once.
  absl::optional<absl::Duration> every;
  bool json = false;
};

// Prints to standard output until that fails, the daemon ends or the user ends
// it. On a terminal a live table takes the screen, and waits for a daemon that
// has ended to return. Returns the exit code of an end that is no failure.
absl::StatusOr<int> WatchStats(const WatchOptions& options);

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_WATCH_H_
