// SPDX-License-Identifier: Apache-2.0
// Explains a miss by the nearest of the last misses of its identity: the
// changes since, the masks that would hide them, and their writer.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_INSIGHT_EXPLAIN_NEAREST_REQUEST_H_
#define FNCACHE_INSIGHT_EXPLAIN_NEAREST_REQUEST_H_

#include <list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cache/key/hint.h"
#include "cache/key/key.h"
#include "cache/key/mask.h"
#include "insight/explain/explanation.h"
#include "insight/explain/kept_requests.h"
#include "insight/explain/request_reader.h"
#include "insight/request/outline.h"

namespace fncache::insight::explain {

// `all`: the kept requests of the identity, not empty. `reader`: null where
// only the outline was read. Sets what `said` says. Returns the request that
// was the nearest; with `unread`, that gets the paths of AnswerBefore. With
// `hint`, only what it says that counts is compared.
const KeptRequest* ExplainByNearest(
    const std::list<KeptRequest>& all, absl::string_view generation,
    const request::Outline& outline, const cache::key::MaskSet& masks,
    const cache::key::Hint* hint, const RequestReader* reader,
    Explanation* said, std::vector<std::string>* unread);

// The newest answer to a request that differed from this one in drift at most.
// `expired`: the look-up found the key's entry past its time.
AnswerBefore NewestAnswer(const std::list<KeptRequest>& all,
                          const cache::key::Key& key,
                          absl::string_view generation,
                          const RequestReader& reader, bool expired,
                          absl::Time now);

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_NEAREST_REQUEST_H_
