// SPDX-License-Identifier: Apache-2.0
// Base64 as Go reads it, and so as Kubernetes' own tools accept it.
//
// Pure function, thread-safe.
#ifndef FNCACHE_TEXT_BASE64_H_
#define FNCACHE_TEXT_BASE64_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fncache::text {

// Decodes standard base64 with its padding, line ends ignored; abseil's decoder
// takes more. InvalidArgument: `illegal base64 data at input byte N`.
absl::StatusOr<std::string> DecodeBase64(absl::string_view text);

}  // namespace fncache::text

#endif  // FNCACHE_TEXT_BASE64_H_
