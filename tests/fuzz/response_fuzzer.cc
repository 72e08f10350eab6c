// SPDX-License-Identifier: Apache-2.0
// Any bytes as a response: read as protobuf reads them, or refused as it
// refuses them; rewritten as protobuf would rewrite them.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/cache/response_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 64 * 1024) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const fncache::cache::ResponseOutcome outcome =
      fncache::cache::CheckResponse(bytes, /*duplicates=*/true);
  if (!outcome.wrong.empty()) {
    std::fprintf(stderr, "%s\n", outcome.wrong.c_str());
    std::abort();
  }
  return 0;
}
