// SPDX-License-Identifier: Apache-2.0
// Whether a request comes from a composite or from an Operation.
//
// Pure function; thread-safe.
#ifndef FNCACHE_CACHE_WIRE_ORIGIN_H_
#define FNCACHE_CACHE_WIRE_ORIGIN_H_

#include "absl/strings/string_view.h"

namespace fncache::cache::wire {

enum class Origin {
  kComposite,  // it has `observed.composite.resource`
  // It has none: an Operation's request has no observed state (Crossplane's
  // internal/controller/ops/operation).
  kOperation,
  kUnreadable,  // the bytes are no message, as far as they were read
};

// The origin of `request`, a serialized RunFunctionRequest of either version.
// Reads the top level, `observed` and `observed.composite` up to the resource,
// and skips everything else: a message that is broken elsewhere has an origin
// all the same.
Origin OriginOf(absl::string_view request);

}  // namespace fncache::cache::wire

#endif  // FNCACHE_CACHE_WIRE_ORIGIN_H_
