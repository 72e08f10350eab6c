// SPDX-License-Identifier: Apache-2.0
// Outline: a request's identity and a rough summary, straight from its bytes,
// for a small fraction of the cost of its nodes (nodes.h).
//
// An outline finds the section of a request that changed, not the path. Equal
// sections have equal sums in whichever order an encoder writes maps. This does
// not hold between two encoders of which one leaves out empty fields, but a
// caller keeps its encoder. Unequal sections have equal sums if their bytes
// differ only in order (resourceVersion 12 and 21), so equal sums prove
// nothing.
//
// Pure functions; thread-safe. Bytes are not trusted.
#ifndef FNCACHE_INSIGHT_REQUEST_OUTLINE_H_
#define FNCACHE_INSIGHT_REQUEST_OUTLINE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "insight/request/identity.h"

namespace fncache::insight::request {

// The composite's name, reading no more than it needs: for callers that sample
// by composite. If the bytes that it reads are not well-formed, the name is
// empty. The second function reuses the memory of *name.
CompositeName ReadComposite(absl::Span<const absl::string_view> slices);
void ReadComposite(absl::Span<const absl::string_view> slices,
                   CompositeName* name);

enum class Section : uint8_t {
  kComposite,
  kObservedResource,
  kDesired,
  kContext,
  kCredentials,
  kRequiredResource,
  kSchema,
  kOther,
};
inline constexpr size_t kSections = 8;
// The name that SectionOf returns.
const char* SectionName(Section section);

struct Outline {
  CompositeName composite;
  // Two requests to one function share it if one could be the other's
  // predecessor. It covers the composite (kind, namespace, name, uid), the
  // input, and the names of required resources and schemas.
  uint64_t identity = 0;
  std::array<uint64_t, kSections> sums{};
};

// False: the bytes that it reads are no RunFunctionRequest. `slices` in order
// are the request; a section that is in several of them is copied.
bool ReadOutline(absl::Span<const absl::string_view> slices, Outline* outline);

}  // namespace fncache::insight::request

#endif  // FNCACHE_INSIGHT_REQUEST_OUTLINE_H_
