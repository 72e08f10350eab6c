// SPDX-License-Identifier: Apache-2.0
// Makes a running daemon trace its calls for a given time.
#ifndef FNCACHE_PROXY_ADMIN_RECORD_H_
#define FNCACHE_PROXY_ADMIN_RECORD_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace fncache::proxy::admin {

struct RecordOptions {
  std::string socket;     // --socket; "" = not given
  std::string cache_dir;  // --cache-dir; "" = not given
  std::string dir;        // the trace's folder, absolute
  absl::Duration for_time = absl::Minutes(1);
};

// Blocks for `for_time`. The trace has the level full. Returns the address on
// which each of the daemon's functions listens. The error names the socket.
// Thread-safe.
absl::StatusOr<std::map<std::string, std::string>> RecordTrace(
    const RecordOptions& options);

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_RECORD_H_
