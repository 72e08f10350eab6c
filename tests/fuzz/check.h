// SPDX-License-Identifier: Apache-2.0
// What a fuzzer says of what must hold, in every build.
#ifndef FNCACHE_TESTS_FUZZ_CHECK_H_
#define FNCACHE_TESTS_FUZZ_CHECK_H_

#include <cstdlib>

namespace fncache::fuzz {

inline void Check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace fncache::fuzz

#endif  // FNCACHE_TESTS_FUZZ_CHECK_H_
