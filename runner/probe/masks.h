// SPDX-License-Identifier: Apache-2.0
// Which masks a probe proposes: those that the key contract allows, and of
// which every path that they hide was found unread.
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
// trace, and masks for what did change only; by bytes where there is none. A
// mask that hides nothing that those before it do not is left out.
std::vector<ProposedMask> ProposeMasks(
    const std::vector<Field>& fields,
    const std::vector<Search::Result>& results, const Variation& variation);

}  // namespace fncache::runner::probe

#endif  // FNCACHE_RUNNER_PROBE_MASKS_H_
