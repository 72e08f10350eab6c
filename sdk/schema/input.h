// SPDX-License-Identifier: Apache-2.0
// CheckInput: compares the input of a composition function with the schema that
// the generator embeds in a model. The runner does not check inputs.
//
// Thread-safe. Schemas are read once and kept for the process.
#ifndef FNCACHE_SDK_SCHEMA_INPUT_H_
#define FNCACHE_SDK_SCHEMA_INPUT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "fncache/function/context.h"
#include "sdk/model/node.h"

namespace fncache::sdk::schema {

// Everything that validate.h finds, with paths below the input. `schema_json`
// is a schema as JSON; broken JSON is no schema, and allows all inputs.
std::vector<function::Problem> CheckInput(absl::string_view schema_json,
                                          Node* input);

// The message of such a problem: `input.spec.size: must be a number, is text`.
std::string InputMessage(const function::Problem& problem);

}  // namespace fncache::sdk::schema

#endif  // FNCACHE_SDK_SCHEMA_INPUT_H_
