// SPDX-License-Identifier: Apache-2.0
// The fuzzers of YAML share this.
//
// Pure functions.
#ifndef FNCACHE_TESTS_FUZZ_MERGE_KEY_H_
#define FNCACHE_TESTS_FUZZ_MERGE_KEY_H_

#include <cstdlib>

namespace fncache::testing {

inline void Check(bool holds) {
  if (!holds) std::abort();
}

// The reference prints such a key without quotes, and then reads a merge. A
// template, so that this header does not need all of nlohmann/json.
template <typename Json>
bool HasMergeKey(const Json& json) {
  if (json.is_object() && json.contains("<<")) return true;
  if (!json.is_structured()) return false;
  for (const Json& child : json) {
    if (HasMergeKey(child)) return true;
  }
  return false;
}

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_FUZZ_MERGE_KEY_H_
