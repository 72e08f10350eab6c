// SPDX-License-Identifier: Apache-2.0
// Sizes in bytes with binary or decimal units: 256MiB, 256Mi, 4GiB, 64MB, 1024.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_COMMON_SIZE_H_
#define FNCACHE_COMMON_SIZE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fncache {

// The forms that ParseSize accepts, for messages: "a size such as ...".
extern const char kSizeForm[];

// Parses a number of bytes (1024, 1024B) or a decimal number with a unit of
// 1024 (KiB, MiB, GiB, TiB, PiB, EiB, each also without the B, as Kubernetes
// writes them) or of 1000 (kB or KB, MB, GB, TB, PB, EB). A part of a byte is
// cut off (1.1KiB is 1126). InvalidArgument says what is wrong and what is
// accepted, also from 16EiB on.
absl::StatusOr<uint64_t> ParseSize(absl::string_view text);

// The exact size, in the unit that gives the smallest whole number: 256MiB,
// 64MB, 1025. ParseSize reads it back exactly.
std::string FormatSize(uint64_t bytes);

}  // namespace fncache

#endif  // FNCACHE_COMMON_SIZE_H_
