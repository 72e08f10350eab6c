// SPDX-License-Identifier: Apache-2.0
// The hint: what a response depends on, as the value of the trailing metadata
// `fncache-depends`, a dictionary of RFC 9651.
//
//   reads=("observed.composite.resource.spec.region"), pure
//
// Pure functions, thread-safe.
#ifndef FNCACHE_SDK_COMPOSE_HINT_H_
#define FNCACHE_SDK_COMPOSE_HINT_H_

#include <cstddef>
#include <set>
#include <string>

namespace fncache::sdk {

// Above this, paths are widened: metadata has limits of some KiB.
inline constexpr size_t kMaxHintBytes = 2048;

// The hint of these paths, which are spelled as in masks. It may say too much,
// never too little.
std::string Hint(const std::set<std::string>& reads, bool pure);

}  // namespace fncache::sdk

#endif  // FNCACHE_SDK_COMPOSE_HINT_H_
