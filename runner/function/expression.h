// SPDX-License-Identifier: Apache-2.0
// Expressions: `${...}` in the strings of a function's input, replaced by
// values of the request.
// docs/function.md describes the language. A path has the request's field names
// and map keys, written as in masks, and list indices. There are also
// `${index}`, defaults after `|`, and `$${` for a literal `${`. A string that
// is one expression becomes the value with its type. Elsewhere the value must
// be text, number or boolean.
//
// Thread-safe; a Context belongs to one thread.
#ifndef FNCACHE_RUNNER_FUNCTION_EXPRESSION_H_
#define FNCACHE_RUNNER_FUNCTION_EXPRESSION_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "fncache/function/context.h"

namespace fncache::runner::function {

// The values that an expression can name.
struct Scope {
  ::fncache::function::Context& ctx;
  // The number of this repetition of a resource, from 0.
  absl::optional<int> index;
};

// A copy of `value` with every string in it expanded, at any depth; keys stay
// as they are. InvalidArgument names the path of the string, which is below
// `where`, and the expression.
absl::StatusOr<::fncache::function::Value> Expand(
    const ::fncache::function::Value& value, const Scope& scope,
    absl::string_view where);

// Expands one string. The result need not be text.
absl::StatusOr<::fncache::function::Value> ExpandString(absl::string_view text,
                                                        const Scope& scope);

}  // namespace fncache::runner::function

#endif  // FNCACHE_RUNNER_FUNCTION_EXPRESSION_H_
