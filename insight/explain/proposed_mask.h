// SPDX-License-Identifier: Apache-2.0
// The mask to propose where a path of requests changed.
//
// Pure function, thread-safe.
#ifndef FNCACHE_INSIGHT_EXPLAIN_PROPOSED_MASK_H_
#define FNCACHE_INSIGHT_EXPLAIN_PROPOSED_MASK_H_

#include <string>

#include "absl/strings/string_view.h"

namespace fncache::insight::explain {

// The named set (@versions...) that hides `path`, which is written as
// Explanation::detail is, with `*` for list elements; else the mask that hides
// it in all resources; "" where none may.
std::string ProposedMask(absl::string_view path);

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_PROPOSED_MASK_H_
