// SPDX-License-Identifier: Apache-2.0
// Whether bytes are a message of the function protocol, as protobuf C++ would
// decide by parsing them, without parsing them.
//
// Pure function; thread-safe.
#ifndef FNCACHE_CACHE_WIRE_VALIDATE_H_
#define FNCACHE_CACHE_WIRE_VALIDATE_H_

#include "absl/strings/string_view.h"
#include "cache/wire/schema.h"

namespace fncache::cache::wire {

// Whether protobuf C++ would parse `bytes` as a `type` with this recursion
// limit. Not stricter and not laxer: it refuses malformed bytes, strings and
// map keys that are not UTF-8, and what is nested too deep; a known field of
// the wrong wire type is an unknown field.
bool Validate(const MessageType& type, absl::string_view bytes,
              int depth = kMaxDepth);

}  // namespace fncache::cache::wire

#endif  // FNCACHE_CACHE_WIRE_VALIDATE_H_
