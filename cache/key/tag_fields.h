// SPDX-License-Identifier: Apache-2.0
// The fields of a request that `key: tag` reads. Crossplane changes some of
// them after it has computed meta.tag; the others are unknown to fncache. The
// remaining fields (observed, desired, input, credentials) are nearly all of
// the bytes. The tag covers them, so they are skipped by their length.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_CACHE_KEY_TAG_FIELDS_H_
#define FNCACHE_CACHE_KEY_TAG_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace fncache::cache::key {

// Whether a top-level field with this tag (number and wire type) is skipped.
bool IsSkippedByTag(uint32_t tag);

// Appends the fields of the RunFunctionRequest `slices` that are not skipped to
// `part`, in their order and as they are: that is a RunFunctionRequest without
// the skipped fields, which is still to be validated. False if the request's
// top level is not what protobuf takes, or has more than kMaxDepth groups in
// one another.
//
// Touches the skipped fields' bytes nowhere, and joins nothing of them.
bool AppendTagFields(absl::Span<const absl::string_view> slices,
                     std::string* part);

// Whether meta.tag is one that stands for what is skipped: 64 hexadecimal
// digits, as the SHA-256 that Crossplane writes.
inline constexpr size_t kHexTagSize = 64;
bool IsHexTag(absl::string_view tag);

}  // namespace fncache::cache::key

#endif  // FNCACHE_CACHE_KEY_TAG_FIELDS_H_
