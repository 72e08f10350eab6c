// SPDX-License-Identifier: Apache-2.0
// Decompresses requests, up to the limit of their size.
//
// gRPC's library would do it, but it makes the whole message before it compares
// its size with the limit: 1 MB of a request can be 1 GB of zeros.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_SDK_SERVE_INFLATE_H_
#define FNCACHE_SDK_SERVE_INFLATE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fncache::sdk::serve {

// True if the bytes begin as gzip's format (RFC 1952) or zlib's (RFC 1950),
// which gRPC calls deflate. gRPC's library does not show the encoding that a
// message has. No RunFunctionRequest begins so: its fields are no varints.
bool MayBeCompressed(absl::string_view bytes);

// The text of `bytes` in either format. Internal if they are broken,
// ResourceExhausted if the text is longer than `limit`.
absl::StatusOr<std::string> Inflate(absl::string_view bytes, size_t limit);

}  // namespace fncache::sdk::serve

#endif  // FNCACHE_SDK_SERVE_INFLATE_H_
