// SPDX-License-Identifier: Apache-2.0
// Any bytes parse as a duration or are refused; what parses is printed in a
// form that parses to the same duration and prints the same again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "common/duration.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto duration = fncache::ParseGoDuration(text);
  if (!duration.ok()) {
    if (duration.status().message().size() > 400) std::abort();
    return 0;
  }
  const std::string printed = fncache::FormatGoDuration(*duration);
  const auto back = fncache::ParseGoDuration(printed);
  if (!back.ok() || *back != *duration) std::abort();
  if (fncache::FormatGoDuration(*back) != printed) std::abort();
  return 0;
}
