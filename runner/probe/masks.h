// SPDX-License-Identifier: Apache-2.0
// Which masks a probe proposes: those that the key contract allows, and of
// which every path that they hide was found unread.
//
// They hide leaves only: an object or a list may get something that the
// function reads. metadata.managedFields are the one exception. They name
// resources, for nobody asked about others: `*` stands for all of them only
// where the function desires none that was not observed, and all were found to
// have the path and not to be read there. Not proposed are the kind of an
// object and what users ask for in the composite's spec.
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
  // At so many calls of the trace something that it hides had changed, and
  // nothing that is read; 0 without a trace.
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
