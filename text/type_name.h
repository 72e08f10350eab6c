// SPDX-License-Identifier: Apache-2.0
// The type of a value in words, for messages.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_TEXT_TYPE_NAME_H_
#define FNCACHE_TEXT_TYPE_NAME_H_

#include "absl/strings/string_view.h"
#include "proto/struct_fwd.h"
#include "text/json.h"

namespace fncache::text {

// "text", "a number", "a boolean", "a map", "a list" or "null".
absl::string_view TypeName(const google::protobuf::Value& value);
absl::string_view TypeName(const Json& value);

}  // namespace fncache::text

#endif  // FNCACHE_TEXT_TYPE_NAME_H_
