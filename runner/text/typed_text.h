// SPDX-License-Identifier: Apache-2.0
// Text fields of objects that have a fixed form: Compositions, Functions and
// CompositeResourceDefinitions.
//
// The reference command line reads such files with a YAML reader that knows the
// form: where a field is text it takes a number or a boolean as well, and what
// it takes is their text. (`step: 1` is step "1", a label `yes` is "true".)
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_TEXT_TYPED_TEXT_H_
#define FNCACHE_RUNNER_TEXT_TYPED_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "proto/struct_fwd.h"
#include "runner/text/json.h"

namespace fncache::runner::text {

// The text of a text, a number or a boolean, and "" of null; nothing for a map
// or a list.
absl::optional<std::string> TypedText(const google::protobuf::Value& value);
absl::optional<std::string> TypedText(const Json& value);

// The typed text at `path` of an object that has a fixed form; "" where there
// is none, or a map or a list.
std::string FindTypedText(const Json& object, JsonPath path);

// The type of `value` in words for messages: "a number", "a list"...
absl::string_view TypeName(const google::protobuf::Value& value);
absl::string_view TypeName(const Json& value);

}  // namespace fncache::runner::text

#endif  // FNCACHE_RUNNER_TEXT_TYPED_TEXT_H_
