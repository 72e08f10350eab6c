// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/origin.h"

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "cache/wire/schema.h"
#include "cache/wire/wire.h"

namespace fncache::cache::wire {
namespace {

// From a request to its composite's resource: `observed`, `composite`,
// `resource`. The same in v1 and v1beta1.
constexpr uint32_t kPath[] = {MakeTag(2, WireType::kBytes),
                              MakeTag(1, WireType::kBytes),
                              MakeTag(1, WireType::kBytes)};

// Whether `message` has the fields of kPath from `depth` on. A message may come
// in several pieces, which count as one.
Origin Find(absl::string_view message, size_t depth) {
  if (depth == std::size(kPath)) return Origin::kComposite;
  Cursor cursor(message);
  while (!cursor.done()) {
    uint32_t tag;
    if (!cursor.ReadTag(&tag)) return Origin::kUnreadable;
    if (tag != kPath[depth]) {
      if (!cursor.Skip(tag, kMaxDepth)) return Origin::kUnreadable;
      continue;
    }
    absl::string_view piece;
    if (!cursor.ReadBytes(&piece)) return Origin::kUnreadable;
    const Origin origin = Find(piece, depth + 1);
    if (origin != Origin::kOperation) return origin;
  }
  return Origin::kOperation;
}

}  // namespace

Origin OriginOf(absl::string_view request) { return Find(request, 0); }

}  // namespace fncache::cache::wire
