// SPDX-License-Identifier: Apache-2.0
// Validations for tests, of texts and of documents with layers.
#ifndef FNCACHE_TESTS_SDK_SCHEMA_SCHEMA_TESTING_H_
#define FNCACHE_TESTS_SDK_SCHEMA_SCHEMA_TESTING_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "fncache/function/context.h"
#include "fncache/function/value.h"
#include "sdk/model/node.h"
#include "sdk/schema/validate.h"

namespace fncache::sdk::schema {

// One line for each problem: `PATH: TEXT`.
inline std::string Lines(const std::vector<function::Problem>& problems) {
  std::string lines;
  for (const function::Problem& problem : problems) {
    absl::StrAppend(&lines, lines.empty() ? "" : "\n", problem.path, ": ",
                    problem.text);
  }
  return lines;
}

inline std::string Found(const function::Value& schema,
                         const function::Value& object) {
  return Lines(Validate(schema.ref().get(), object.ref().get()));
}

// The problems of an object that has `value` (YAML) as its field `a`, whose
// schema is `schema` (YAML).
inline std::string ProblemsOf(absl::string_view schema,
                              absl::string_view value) {
  return Found(function::Yaml(absl::StrCat("{properties: {a: ", schema, "}}")),
               function::Yaml(absl::StrCat("{a: ", value, "}")));
}

}  // namespace fncache::sdk::schema

#endif  // FNCACHE_TESTS_SDK_SCHEMA_SCHEMA_TESTING_H_
