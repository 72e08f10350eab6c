// SPDX-License-Identifier: Apache-2.0
// The wire format of protobuf, for messages of which the process needs a field
// or two: health, reflection, the tag of a request.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_SDK_SERVE_WIRE_H_
#define FNCACHE_SDK_SERVE_WIRE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace fncache::sdk::serve {

// Calls `take` for each length-delimited field at the top level of a message,
// in their order, and skips all others. False if the bytes are no message.
bool ForEachText(
    absl::string_view message,
    const std::function<void(uint32_t number, absl::string_view text)>& take);

// The last such field of this number, empty if there is none.
absl::string_view LastText(absl::string_view message, uint32_t number);

void AppendVarint(uint32_t number, uint64_t value, std::string* message);
void AppendText(uint32_t number, absl::string_view text, std::string* message);

}  // namespace fncache::sdk::serve

#endif  // FNCACHE_SDK_SERVE_WIRE_H_
