// SPDX-License-Identifier: Apache-2.0
// The mask to propose where a path of requests changed, for tools that do not
// ask the function whether it reads the path.
//
// Such a tool proposes leaves only: texts, numbers and booleans, since an
// object or a list may get something that the function reads. It proposes only
// leaves that had another value before, since functions wait for paths that
// come or go. managedFields are the one exception. A mask names only the
// resource whose path changed, since the function may read the path in others.
// Values that functions are known to compare are never proposed: generations
// (metadata.generation and observedGeneration), the words of conditions, and
// the composite's spec.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_INSIGHT_EXPLAIN_PROPOSED_MASK_H_
#define FNCACHE_INSIGHT_EXPLAIN_PROPOSED_MASK_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "insight/request/nodes.h"

namespace fncache::insight::explain {

// Whether a node of this kind is a text, a number or a boolean.
bool IsLeaf(request::NodeKind kind);

// The mask for `path`, which is written as RequestNodes::Spell or SpellMask
// writes it: `@times`, or a path of one resource. "" where none is proposed.
std::string ProposedMask(absl::string_view path, bool leaf);

// The masks that are proposed with `mask`, including it. Every write changes a
// resourceVersion, and most change managedFields, so one of the two alone saves
// little.
std::vector<std::string> ProposedTogether(const std::string& mask);

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_PROPOSED_MASK_H_
