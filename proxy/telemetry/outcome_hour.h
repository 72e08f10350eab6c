// SPDX-License-Identifier: Apache-2.0
// OutcomeHour: the outcomes of calls in each minute of the last hour, for the
// status page's charts.
//
// A ring of minutes, fed with readings of the counters, so calls pay nothing
// for it. Counts between two readings belong to the minute of the time halfway
// between them. With a reading every ten seconds that is at most five seconds
// off. It keeps 60 numbers for each function and outcome, for ever.
//
// Not thread-safe.
#ifndef FNCACHE_PROXY_TELEMETRY_OUTCOME_HOUR_H_
#define FNCACHE_PROXY_TELEMETRY_OUTCOME_HOUR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/telemetry/labels.h"

namespace fncache::proxy::telemetry {

class OutcomeHour {
 public:
  static constexpr size_t kMinutes = 60;

  // One function's calls by minute, the oldest first, and by Outcome.
  using Minutes = std::array<std::array<uint64_t, kOutcomes>, kMinutes>;
  // The counts of the hour up to a time.
  struct Hour {
    absl::Time last_minute;          // when the last of the minutes began
    std::vector<Minutes> functions;  // by FunctionId
  };

  // `counts` has all functions, as of `now`; here and below.
  OutcomeHour(absl::Time now, const DaemonCounts& counts);

  // Another reading of the same instruments.
  void Add(absl::Time now, const DaemonCounts& counts);

  // The hour that ends with the minute of `now`. It includes the counts since
  // the last reading.
  Hour Read(absl::Time now, const DaemonCounts& counts) const;

 private:
  using Calls = std::vector<std::array<uint64_t, kOutcomes>>;  // by FunctionId
  struct Minute {
    int64_t number = -1;  // since the Unix epoch; -1: nothing was counted
    Calls calls;
  };

  Minute& At(int64_t number);
  // Adds the counts since the last reading to `minute`.
  void AddTo(Minute* minute, const DaemonCounts& counts) const;
  int64_t MiddleSince(absl::Time now) const;

  std::array<Minute, kMinutes> ring_;
  absl::Time last_;
  Calls counted_;  // at the last reading, since the start
};

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_OUTCOME_HOUR_H_
