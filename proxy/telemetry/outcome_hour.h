// SPDX-License-Identifier: Apache-2.0
// OutcomeHour: what became of calls in each minute of the last hour, for the
// status page's charts.
//
// A ring of minutes, fed with readings of the counters, so that those who count
// pay nothing for it. What was counted between two readings is of the minute in
// the middle between them: with a reading every ten seconds it is at most five
// seconds off. Takes 60 numbers for each function and outcome, for ever.
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

  // Of one function: calls by minute, the oldest first, and by Outcome.
  using Minutes = std::array<std::array<uint64_t, kOutcomes>, kMinutes>;
  // What was counted up to a time.
  struct Hour {
    absl::Time last_minute;          // when the last of the minutes began
    std::vector<Minutes> functions;  // by FunctionId
  };

  // `counts`: of all functions at that time. So for all of these.
  OutcomeHour(absl::Time now, const DaemonCounts& counts);

  // Another reading of the same instruments.
  void Add(absl::Time now, const DaemonCounts& counts);

  // The hour that ends with the minute of `now`, what was counted since the
  // last reading included.
  Hour Read(absl::Time now, const DaemonCounts& counts) const;

 private:
  using Calls = std::vector<std::array<uint64_t, kOutcomes>>;  // by FunctionId
  struct Minute {
    int64_t number = -1;  // since the Unix epoch; -1: nothing was counted
    Calls calls;
  };

  Minute& At(int64_t number);
  // Adds what was counted since the last reading to its minute.
  void AddTo(Minute* minute, const DaemonCounts& counts) const;
  int64_t MiddleSince(absl::Time now) const;

  std::array<Minute, kMinutes> ring_;
  absl::Time last_;
  Calls counted_;  // at the last reading, since the start
};

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_OUTCOME_HOUR_H_
