// SPDX-License-Identifier: Apache-2.0
// Has a running daemon trace its calls for a while.
#ifndef FNCACHE_PROXY_ADMIN_RECORD_H_
#define FNCACHE_PROXY_ADMIN_RECORD_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace fncache::proxy::admin {

struct RecordOptions {
  std::string socket;     // --socket; "" = not given
  std::string cache_dir;  // --cache-dir, as that
  std::string dir;        // where it writes, absolute
  absl::Duration for_time = absl::Minutes(1);
};

// Blocks for that time; the trace is of level full. Returns where each of the
// daemon's functions listens. The error names the socket. Thread-safe.
absl::StatusOr<std::map<std::string, std::string>> RecordTrace(
    const RecordOptions& options);

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_RECORD_H_
