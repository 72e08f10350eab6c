// SPDX-License-Identifier: Apache-2.0
// Random templates with requests for them: what the property tests of `fncache
// function` render. Most of them render resources; about a third has a fault.
//
// The same seed gives the same request on every machine, because
// tests/data/templates has digests of the responses by seed.
#ifndef FNCACHE_TESTS_RUNNER_FUNCTION_RANDOM_TEMPLATE_H_
#define FNCACHE_TESTS_RUNNER_FUNCTION_RANDOM_TEMPLATE_H_

#include <cstdint>

#include "proto/function_v1_fwd.h"

namespace fncache::runner::function {

// A request with a template as its input, whose expressions name values of the
// request, and some that it does not have.
apiextensions::fn::proto::v1::RunFunctionRequest RandomTemplate(uint64_t seed);

}  // namespace fncache::runner::function

#endif  // FNCACHE_TESTS_RUNNER_FUNCTION_RANDOM_TEMPLATE_H_
