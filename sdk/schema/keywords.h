// SPDX-License-Identifier: Apache-2.0
// Reads the keywords of a schema. Schemas come from outside: each keyword may
// have any type. Nothing here changes the schema or notes a read, so that
// threads may share one.
//
// Pure functions but for CompiledPattern, thread-safe.
#ifndef FNCACHE_SDK_SCHEMA_KEYWORDS_H_
#define FNCACHE_SDK_SCHEMA_KEYWORDS_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "re2/re2.h"
#include "sdk/model/node.h"

namespace fncache::sdk::schema {

// The value of `keyword`; null where `schema` is no object or lacks it.
const Node* Keyword(const Node* schema, absl::string_view keyword);
// The same if it has this type, else null.
const Node* Keyword(const Node* schema, absl::string_view keyword, Kind kind);
// Whether the keyword is `true`.
bool IsSet(const Node* schema, absl::string_view keyword);

// A value of a schema for a message: a text in quotes, a number as JSON has it.
std::string Spelled(const Node* value);

// The regular expression; null where RE2 does not take it. The last ones are
// kept for all threads.
std::shared_ptr<const re2::RE2> CompiledPattern(absl::string_view pattern);

}  // namespace fncache::sdk::schema

#endif  // FNCACHE_SDK_SCHEMA_KEYWORDS_H_
