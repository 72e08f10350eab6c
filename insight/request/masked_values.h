// SPDX-License-Identifier: Apache-2.0
// MaskedValues: a hash for each mask over the values that it hides in a
// request. It shows whether two requests of one key differ, and under which
// mask.
//
// A MaskedValues belongs to one thread and keeps its buffers from one Read to
// the next.
#ifndef FNCACHE_INSIGHT_REQUEST_MASKED_VALUES_H_
#define FNCACHE_INSIGHT_REQUEST_MASKED_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/key/mask.h"
#include "insight/request/nodes.h"

namespace fncache::insight::request {

class MaskedValues {
 public:
  // Hashes are under the secret of one process, and are written nowhere.
  explicit MaskedValues(const FingerprintSecret& secret) : nodes_(secret) {}

  // For each path of masks.canonical(), in that order, a hash of all that it
  // hides in the RunFunctionRequest, and of its location; 0 if it hides
  // nothing. A value that several paths hide counts for the first one. False:
  // the request cannot be keyed.
  bool Read(const cache::key::MaskSet& masks,
            absl::Span<const absl::string_view> slices,
            std::vector<uint64_t>* values);

 private:
  // The mask that hides this node itself, not one of its parents.
  size_t MaskOf(const cache::key::MaskSet& masks, size_t node) const;

  RequestNodes nodes_;
  // For each node: the state of the masks' walk, null where no mask goes; and
  // the mask that hides it.
  std::vector<const cache::key::MaskNode*> walk_;
  std::vector<size_t> hidden_by_;
};

}  // namespace fncache::insight::request

#endif  // FNCACHE_INSIGHT_REQUEST_MASKED_VALUES_H_
