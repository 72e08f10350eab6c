// SPDX-License-Identifier: Apache-2.0
// The value of a field as a connection hands it to its user.
//
// Pure function, thread-safe.
#ifndef FNCACHE_HTTP2_FIELD_VALUE_H_
#define FNCACHE_HTTP2_FIELD_VALUE_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace fncache::http2 {

// The value without spaces and tabs at its ends. Some peers send them, as
// HTTP/1 has them around values, but a field must not have them (RFC 9113,
// 8.2.1): sent on, they would make the next peer reset the call.
inline absl::string_view WithoutBlanks(absl::string_view value) {
  constexpr absl::string_view kBlanks = " \t";
  const size_t first = value.find_first_not_of(kBlanks);
  if (first == absl::string_view::npos) return {};
  return value.substr(first, value.find_last_not_of(kBlanks) + 1 - first);
}

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_FIELD_VALUE_H_
