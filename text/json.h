// SPDX-License-Identifier: Apache-2.0
// Json: a tree of values that keeps whole numbers of 64 bits exact, which a
// Struct does not, and whose maps are ordered by their keys' bytes.
//
// The command line reads (YAML, JSON) and prints Json; functions get Structs,
// because their protocol has nothing else. Pure functions, thread-safe.
#ifndef FNCACHE_TEXT_JSON_H_
#define FNCACHE_TEXT_JSON_H_

#include <initializer_list>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"
#include "proto/struct_fwd.h"

namespace fncache::text {

using Json = nlohmann::json;

// The deepest nesting of maps and lists that is accepted in anything read.
inline constexpr int kMaxJsonDepth = 1000;

// Reads one JSON text. InvalidArgument says where it stops being JSON. The last
// of two equal keys wins. A number beyond 64 bits becomes a double, and one
// that no double holds is an error.
absl::StatusOr<Json> ParseJson(absl::string_view text);
// The same, as ToStruct makes it, for files that do not need a Json.
absl::StatusOr<google::protobuf::Struct> ParseJsonStruct(
    absl::string_view text);

// Converts to what functions get. Whole numbers become doubles (so that
// 9007199254740993 becomes ...992), -0.0 becomes 0, and nulls, empty maps and
// empty lists stay. ToStruct takes an object, and makes an empty Struct of
// anything else.
google::protobuf::Struct ToStruct(const Json& json);
google::protobuf::Value ToValue(const Json& json);

// Converts back. A double whose shortest digits, written without an exponent
// where it is in [1e-6, 1e21), are a whole number in the range of int64 or
// uint64 becomes that whole number; every other stays a double.
Json FromStruct(const google::protobuf::Struct& from);
Json FromValue(const google::protobuf::Value& from);

// What FromValue gives, as one line of JSON. Bytes that are not UTF-8 become
// U+FFFD.
std::string ToJsonText(const google::protobuf::Value& value);

// A field name for each level.
using JsonPath = std::initializer_list<absl::string_view>;

// The value at `path`; null where there is none. (object.h has the same for a
// Struct.)
const Json* Find(const Json& json, JsonPath path);
// The value at `path` if it is text, else "".
const std::string& FindText(const Json& json, JsonPath path);

// Maps merge key by key, so an empty map changes nothing of a map; of anything
// else `from` wins, null and [] too.
void MergeInto(Json* into, const Json& from);

}  // namespace fncache::text

#endif  // FNCACHE_TEXT_JSON_H_
