// SPDX-License-Identifier: Apache-2.0
// CallCost: the time and the CPU time of every call of `fncache function`
// before its answer, whatever the answer.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_FUNCTION_CALL_COST_H_
#define FNCACHE_RUNNER_FUNCTION_CALL_COST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace fncache::runner::function {

struct CallCost {
  absl::Duration sleep = absl::ZeroDuration();  // uses no thread
  absl::Duration cpu = absl::ZeroDuration();    // of one core, after the sleep
};

// Adds up `sleep=DURATION` and `cpu=DURATION`. Each of `values` has one or
// several, separated by commas. InvalidArgument names the error and the
// accepted form.
absl::StatusOr<CallCost> ParseCallCost(const std::vector<std::string>& values);

// True if call number `call` (from 1) is one of those that shall fail. They are
// about `fail_rate` (0 to 1) of all, and always the same under the same `seed`.
bool CallFails(double fail_rate, uint64_t seed, uint64_t call);

}  // namespace fncache::runner::function

#endif  // FNCACHE_RUNNER_FUNCTION_CALL_COST_H_
