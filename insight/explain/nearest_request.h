// SPDX-License-Identifier: Apache-2.0
// Explains a miss by the nearest of the last misses of its identity: the
// changes since, the masks that would hide them, and their writer.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_INSIGHT_EXPLAIN_NEAREST_REQUEST_H_
#define FNCACHE_INSIGHT_EXPLAIN_NEAREST_REQUEST_H_

#include <list>

#include "absl/strings/string_view.h"
#include "cache/key/mask.h"
#include "insight/explain/explanation.h"
#include "insight/explain/kept_requests.h"
#include "insight/explain/request_reader.h"
#include "insight/request/outline.h"

namespace fncache::insight::explain {

// `all`: the kept requests of the identity, not empty. `reader`: null where
// only the outline was read. Sets what `said` says.
void ExplainByNearest(const std::list<KeptRequest>& all,
                      absl::string_view generation,
                      const request::Outline& outline,
                      const cache::key::MaskSet& masks,
                      const RequestReader* reader, Explanation* said);

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_NEAREST_REQUEST_H_
