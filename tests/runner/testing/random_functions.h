// SPDX-License-Identifier: Apache-2.0
// Functions that read and write at random, and requests that have what they
// read. All of it follows from the seed.
#ifndef FNCACHE_TESTS_RUNNER_TESTING_RANDOM_FUNCTIONS_H_
#define FNCACHE_TESTS_RUNNER_TESTING_RANDOM_FUNCTIONS_H_

#include <cstdint>
#include <string>

#include "fncache/function/context.h"
#include "fncache/function/testing.h"

namespace fncache::function::testing {

// 4 to 12 steps that read, decide, copy and refer. Which resources it desires
// does not depend on the request.
Function RandomFunction(uint64_t seed);

// A call of `function` on a random request, with up to four observed resources,
// two requirements and what earlier steps desire.
Call RandomCall(Function function, uint64_t seed);

}  // namespace fncache::function::testing

#endif  // FNCACHE_TESTS_RUNNER_TESTING_RANDOM_FUNCTIONS_H_
