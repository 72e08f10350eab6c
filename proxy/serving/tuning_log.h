// SPDX-License-Identifier: Apache-2.0
// TuningLog: the log lines about one function's questions: a step that was
// found to read drift or to vary, and hits that were revoked for that. The
// lines have names, paths and counts, and never values.
//
// Thread-safe.
#ifndef FNCACHE_PROXY_SERVING_TUNING_LOG_H_
#define FNCACHE_PROXY_SERVING_TUNING_LOG_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/log_limiter.h"
#include "proxy/serving/evidence.h"
#include "proxy/telemetry/labels.h"

namespace fncache::proxy::serving {

// The first paths at which two answers without meta differ: "desired.a, b".
// If both together have more than 256 KiB, the top-level fields that differ.
// Empty if they have more than 1 MiB, or one of them cannot be read. It takes
// up to 10 ms.
std::string PathsDiffering(absl::Span<const absl::string_view> first,
                           absl::Span<const absl::string_view> second);

// The name of what a step reads: "times", "versions", "drift" if it is not
// known yet which, and "" for nothing.
const char* ReadsName(Reads reads);

class TuningLog {
 public:
  explicit TuningLog(const std::string& function) : function_(function) {}

  // A proof is over that found this. `reads` is what it says that the step
  // reads. `paths` may be empty.
  void Found(const Finding& finding, Reads reads, const StepNames& step,
             absl::string_view paths, absl::Time now);

 private:
  const std::string function_;
  LogLimiter steps_{absl::Minutes(1)};
  LogLimiter revoked_{absl::Minutes(1)};
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_TUNING_LOG_H_
