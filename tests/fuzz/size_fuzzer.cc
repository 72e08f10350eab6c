// SPDX-License-Identifier: Apache-2.0
// Any bytes parse as a size or are refused; what parses is printed in a form
// that parses to the same size.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "common/size.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto bytes = fncache::ParseSize(text);
  if (!bytes.ok()) {
    if (bytes.status().message().size() > 400) std::abort();
    return 0;
  }
  const std::string printed = fncache::FormatSize(*bytes);
  const auto back = fncache::ParseSize(printed);
  if (!back.ok() || *back != *bytes) std::abort();
  return 0;
}
