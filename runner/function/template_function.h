// SPDX-License-Identifier: Apache-2.0
// The function that renders resources from the request's input, by the schema
// that docs/function.md describes. A request without an input is answered with
// what passes through.
#ifndef FNCACHE_RUNNER_FUNCTION_TEMPLATE_FUNCTION_H_
#define FNCACHE_RUNNER_FUNCTION_TEMPLATE_FUNCTION_H_

#include <string>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "fncache/function/context.h"

namespace fncache::runner::function {

struct TemplateOptions {
  // The TTL of the responses. Zero, which forbids caching, is written out; with
  // none the field is left out.
  absl::optional<absl::Duration> ttl = absl::Seconds(60);
  // If present, every response has this FATAL result, and nothing is rendered.
  absl::optional<std::string> fatal;
};

// Thread-safe. It needs the options of FunctionOptions.
::fncache::function::Function TemplateFunction(TemplateOptions options);

// The options that functions of this module need: a FATAL response has a TTL.
::fncache::function::Options FunctionOptions();

}  // namespace fncache::runner::function

#endif  // FNCACHE_RUNNER_FUNCTION_TEMPLATE_FUNCTION_H_
