// SPDX-License-Identifier: Apache-2.0
// The mask to propose where a path of requests changed.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_INSIGHT_EXPLAIN_PROPOSED_MASK_H_
#define FNCACHE_INSIGHT_EXPLAIN_PROPOSED_MASK_H_

#include <string>

#include "absl/strings/string_view.h"

namespace fncache::insight::explain {

// The named set (@versions...) that hides `path`, which is written as
// Explanation::detail is, with `*` for list elements; else the mask that hides
// it in all resources; "" where none may.
std::string ProposedMask(absl::string_view path);

// Whether the mask hides a whole status, its conditions, spec or metadata: a
// function mostly reads something of it.
bool HidesWholeSection(absl::string_view mask);

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_PROPOSED_MASK_H_
