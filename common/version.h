// SPDX-License-Identifier: Apache-2.0
// The version of this build, as CMakeLists.txt gives it.
#ifndef FNCACHE_COMMON_VERSION_H_
#define FNCACHE_COMMON_VERSION_H_

namespace fncache {

const char* Version();  // "0.1.0"

}  // namespace fncache

#endif  // FNCACHE_COMMON_VERSION_H_
