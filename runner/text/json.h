// Json: a tree of values that keeps whole numbers of 64 bits exact, which a
// Struct does not, and whose maps are ordered by their keys' bytes.
//
// What the command line reads (YAML, JSON) and prints is Json; what functions
// get is Struct. Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_TEXT_JSON_H_
#define FNCACHE_RUNNER_TEXT_JSON_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"
#include "nlohmann/json_fwd.hpp"

namespace fncache::runner::text {

using Json = nlohmann::json;

// How deep maps and lists may be nested in anything that is read.
inline constexpr int kMaxJsonDepth = 1000;

// One JSON text. InvalidArgument says where it ends to be one. The last of two
// equal keys wins; a number beyond 64 bits becomes a double; one that no double
// holds is an error.
absl::StatusOr<Json> ParseJson(absl::string_view text);

// Whole numbers become doubles (9007199254740993 is ...992 then), -0.0 becomes
// 0, nulls and empty maps and lists stay. `json` must be an object.
google::protobuf::Struct ToStruct(const Json& json);
google::protobuf::Value ToValue(const Json& json);

// A double whose shortest digits, written without an exponent where it is in
// [1e-6, 1e21), are a whole number in the range of int64 or uint64 becomes that
// whole number; every other stays a double.
Json FromStruct(const google::protobuf::Struct& from);
Json FromValue(const google::protobuf::Value& from);

// Maps merge key by key, so an empty map changes nothing of a map; of anything
// else `from` wins, null and [] too.
void MergeInto(Json* into, const Json& from);

}  // namespace fncache::runner::text

#endif  // FNCACHE_RUNNER_TEXT_JSON_H_
