// SPDX-License-Identifier: Apache-2.0
// Any text is a target or is refused with a reason that names it; an address of
// a target is itself a target with that address.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "http2/target.h"
#include "tests/fuzz/check.h"

namespace {

using fncache::fuzz::Check;
using fncache::http2::Endpoint;
using fncache::http2::ParseTarget;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto target = ParseTarget(text);
  if (!target.ok()) {
    Check(!target.status().message().empty());
    return 0;
  }
  // A name to be asked for, or addresses.
  Check(target->host.empty() != target->endpoints.empty());
  Check(target->host.empty() || !target->port.empty());
  for (const Endpoint& endpoint : target->endpoints) {
    Check(endpoint.size > 0 && endpoint.size <= sizeof endpoint.address);
    // Addresses with a scope are those of one machine.
    if (absl::StrContains(endpoint.text, '%')) continue;
    const auto again = ParseTarget(endpoint.text);
    Check(again.ok() && again->endpoints.size() == 1);
    Check(again->endpoints[0] == endpoint);
  }
  return 0;
}
