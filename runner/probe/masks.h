// SPDX-License-Identifier: Apache-2.0
// The masks that a probe proposes. The key contract allows them, and every path
// that they hide was found unread.
//
// They hide leaves only: an object or a list may get something that the
// function reads. metadata.managedFields are the one exception.
//
// A mask names a single resource, since the probe did not ask about others. `*`
// stands for all resources only if the function desires none that was not
// observed, and all were found to have the path and not to be read there. The
// kind of an object, and the fields that users set in the composite's spec, are
// not proposed.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_RUNNER_PROBE_MASKS_H_
#define FNCACHE_RUNNER_PROBE_MASKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runner/probe/fields.h"
#include "runner/probe/search.h"
#include "runner/probe/variation.h"

namespace fncache::runner::probe {

struct ProposedMask {
  std::string mask;  // a path, or the name of a set
  // The number of the trace's calls at which a hidden path had changed, and no
  // path that is read; 0 without a trace.
  uint32_t varied = 0;
  uint64_t bytes = 0;  // of the request that it hides
  uint32_t fields = 0;
};

// In order of what they would save: by how often what they hide changed in the
// trace, and masks for what did change only; by bytes where there is none.
// `all_observed`: the function desires no resource that was not observed.
std::vector<ProposedMask> ProposeMasks(
    const std::vector<Field>& fields,
    const std::vector<Search::Result>& results, const Variation& variation,
    bool all_observed);

// The leaves that may be masked and were found unread, by what is in them: one
// mask for each, named as above.
std::vector<ProposedMask> UnreadLeaves(
    const std::vector<Field>& fields,
    const std::vector<Search::Result>& results, bool all_observed);

}  // namespace fncache::runner::probe

#endif  // FNCACHE_RUNNER_PROBE_MASKS_H_
