// SPDX-License-Identifier: Apache-2.0
// Whether bytes are a google.protobuf.Struct, checked by hand and without
// tables. Most bytes of a request or response pass this stage of Validate
// (validate.h).
//
// Pure function; thread-safe.
#ifndef FNCACHE_CACHE_WIRE_STRUCT_CHECK_H_
#define FNCACHE_CACHE_WIRE_STRUCT_CHECK_H_

#include "absl/strings/string_view.h"

namespace fncache::cache::wire {

// The same as Validate(kStructType, bytes, depth): whether protobuf C++ would
// parse them with this recursion limit.
bool IsStruct(absl::string_view bytes, int depth);

}  // namespace fncache::cache::wire

#endif  // FNCACHE_CACHE_WIRE_STRUCT_CHECK_H_
