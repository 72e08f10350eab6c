// SPDX-License-Identifier: Apache-2.0
// The options of the access log (access_log.h): the settings log.access and
// log.access_*. Plain data.
#ifndef FNCACHE_PROXY_TELEMETRY_ACCESS_LOG_OPTIONS_H_
#define FNCACHE_PROXY_TELEMETRY_ACCESS_LOG_OPTIONS_H_

#include <string>

#include "absl/time/time.h"
#include "common/log.h"

namespace fncache::proxy::telemetry {

// Which calls have a line.
enum class LoggedCalls {
  kNone,
  kMisses,  // calls that were not answered from the cache
  kSlow,    // calls that took at least AccessLogOptions::slow
  kAll,
};

struct AccessLogOptions {
  LoggedCalls calls = LoggedCalls::kNone;
  absl::Duration slow = absl::ZeroDuration();
  LogFormat format = LogFormat::kText;
  // The fraction of these calls, above 0 and up to 1, chosen at random.
  double sample = 1;
  // Empty = stderr.
  std::string file;
};

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_ACCESS_LOG_OPTIONS_H_
