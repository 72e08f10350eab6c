// SPDX-License-Identifier: Apache-2.0
// Questions: a request with every drift altered (DESIGN, "Questions"). An
// answer that stays the same shows that the function does not read drift.
//
// An altered request has the key of the request itself, but another tag. Times
// keep their zone and the number of digits of their fraction. Versions keep
// their number of digits. Drift that is masked stays as it is.
//
// The functions parse the whole request, and take a hundred times as long as a
// key. Pure but for the tags, which are random; thread-safe.
#ifndef FNCACHE_CACHE_KEY_ALTERATION_H_
#define FNCACHE_CACHE_KEY_ALTERATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/key/drift.h"
#include "cache/key/mask.h"

namespace apiextensions::fn::proto::v1 {
class RunFunctionRequest;
}  // namespace apiextensions::fn::proto::v1
namespace google::protobuf {
class Value;
}  // namespace google::protobuf

namespace fncache::cache::key {

// The four questions of a proof.
enum class Question {
  kLongAgo = 1,   // all times are equal, and versions the lowest
  kFarAhead = 2,  // all times are equal, and versions the highest
  kShuffled = 3,  // in random order, from long ago to far ahead
  kReverse = 4,   // in the reverse order of kShuffled
};

// Which drift a question alters.
enum class Altered {
  kAll,
  kVersions,  // resourceVersion, and managedFields but for the times in them
};

// Long ago and far ahead are this far from now.
inline constexpr absl::Duration kFarTime = absl::Hours(24 * 3652);

// The request `bytes` with a tag of its own, and altered. kShuffled and
// kReverse need the same `seed`. Absent: protobuf does not parse it.
absl::optional<std::string> Alter(absl::string_view bytes, const MaskSet& masks,
                                  Question question, Altered altered,
                                  uint64_t seed, absl::Time now);

// The request `bytes` as it came, with a tag of its own.
absl::optional<std::string> WithOwnTag(absl::string_view bytes);

// 64 random hexadecimal digits.
std::string RandomTag();

// Calls `visit` for each drift of a message that `masks` does not mask, by the
// rules of drift.h: the message's view of drift.
void VisitDrift(const MaskSet& masks,
                apiextensions::fn::proto::v1::RunFunctionRequest* request,
                absl::FunctionRef<void(DriftSection section, DriftType type,
                                       absl::string_view key,
                                       google::protobuf::Value* value)>
                    visit);

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_ALTERATION_H_
