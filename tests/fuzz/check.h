// SPDX-License-Identifier: Apache-2.0
// A fuzzer's assertion, which is active in every build.
#ifndef FNCACHE_TESTS_FUZZ_CHECK_H_
#define FNCACHE_TESTS_FUZZ_CHECK_H_

#include <cstdlib>

namespace fncache::fuzz {

inline void Check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace fncache::fuzz

#endif  // FNCACHE_TESTS_FUZZ_CHECK_H_
