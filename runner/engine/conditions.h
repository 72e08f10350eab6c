// SPDX-License-Identifier: Apache-2.0
// The conditions of a composite's status, decoded, set and encoded as the
// reference runner does: only the fields below survive, times are RFC 3339 in
// UTC with whole seconds, a missing time is null.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_ENGINE_CONDITIONS_H_
#define FNCACHE_RUNNER_ENGINE_CONDITIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proto/function_v1_fwd.h"
#include "proto/struct_fwd.h"
#include "text/object.h"

namespace fncache::runner::engine {

using google::protobuf::Struct;

struct Condition {
  std::string type;
  std::string status;  // True, False or Unknown
  absl::optional<absl::Time> last_transition_time;
  std::string reason;
  std::string message;
  int64_t observed_generation = 0;  // 0 = none
};

// Ready, Synced, Healthy, UpToDate and Responsive: the runner's own, which no
// function can set.
bool IsSystemCondition(absl::string_view type);

// status.conditions of `object`. A field of the wrong type is empty. An invalid
// time ends the list there, and its own condition is empty.
std::vector<Condition> ConditionsOf(const Struct& object);

// Sets status.conditions to the existing ones, decoded, with `conditions` set
// in their order. A condition replaces one of the same type, at its index. That
// one is left as it is if status, reason and message are equal, and
// observedGeneration where both have one. Without one of its type, the
// condition is appended. Does nothing if there is a status that is no map.
void SetConditions(const std::vector<Condition>& conditions, Struct* object);

// The condition that a function set, as of `now`.
Condition FromFunction(const apiextensions::fn::proto::v1::Condition& condition,
                       absl::Time now);

// metadata.generation, 0 if it is no whole number.
int64_t GenerationOf(const Struct& object);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_CONDITIONS_H_
