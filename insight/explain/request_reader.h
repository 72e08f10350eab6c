// SPDX-License-Identifier: Apache-2.0
// RequestReader: reads a request before any lock is taken, and keeps the memory
// for that.
//
// Used by one thread at a time; it may read one request after another.
#ifndef FNCACHE_INSIGHT_EXPLAIN_REQUEST_READER_H_
#define FNCACHE_INSIGHT_EXPLAIN_REQUEST_READER_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/key/mask.h"
#include "insight/request/node_drift.h"
#include "insight/request/nodes.h"

namespace fncache::insight::explain {

// The value of nodes that have none to compare.
inline constexpr uint64_t kNotCompared = 0;

uint64_t HashOfPaths(const std::vector<uint64_t>& paths);

struct RequestReader {
  explicit RequestReader(const request::FingerprintSecret& secret)
      : nodes(secret) {}

  // False if the bytes are no request. `tuned`: keys are without drift, so
  // drift has one value for each of its types, and nothing is below it.
  bool Read(const cache::key::MaskSet& masks,
            absl::Span<const absl::string_view> slices, bool tuned = false);

  request::RequestNodes nodes;
  // The nodes that no mask hides: their indices, paths and values.
  std::vector<uint32_t> at;
  std::vector<uint64_t> paths;
  std::vector<uint64_t> values;
  uint64_t shape = 0;  // hash of the paths
  // Equal for requests that differ in drift and in masked paths only. Never 0.
  uint64_t driftless = 0;

  // Whether the node with this index is drift, or is within drift.
  bool IsDrift(size_t node) const {
    return drifts_[node] != request::NodeDrift::kNone;
  }

 private:
  bool Hidden(const cache::key::MaskSet& masks, size_t i);

  request::NodeDrifts drifts_;

  // For each node: the state of the masks' walk, null where no mask goes; and
  // whether a mask hides it.
  std::vector<const cache::key::MaskNode*> walk_;
  std::vector<bool> hidden_;
};

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_REQUEST_READER_H_
