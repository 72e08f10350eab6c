// SPDX-License-Identifier: Apache-2.0
// NodeDrifts: which nodes of a request are drift (cache/key/drift.h). Requests
// that differ in no other node differ in drift only: a cache with `tune: on`
// has one key for them.
//
// It belongs to one thread and keeps its memory from one Read to the next.
#ifndef FNCACHE_INSIGHT_REQUEST_NODE_DRIFT_H_
#define FNCACHE_INSIGHT_REQUEST_NODE_DRIFT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "cache/key/drift.h"
#include "insight/request/nodes.h"

namespace fncache::insight::request {

enum class NodeDrift : uint8_t {
  kNone,
  kVersion,
  kManagedFields,  // the list
  kTime,
  kInside,  // below a list of managedFields
};

class NodeDrifts {
 public:
  // `nodes` are those of a RunFunctionRequest.
  void Read(absl::Span<const Node> nodes);

  NodeDrift operator[](size_t node) const { return states_[node].drift; }

 private:
  // The role of a node in a request, as far as drift may be below it.
  enum class Role : uint8_t {
    kOther,
    kRequest,  // the parent of nodes at the top
    kObserved,
    kComposedMap,
    kRequiredMap,
    kRequired,  // one name of required resources
    kItems,
    kResource,
    kObject,
    kMetadata,
    kStatus,  // or anything below it
  };
  struct State {
    Role role = Role::kOther;
    cache::key::DriftSection section = cache::key::DriftSection::kNone;
    NodeDrift drift = NodeDrift::kNone;
  };

  static State StateOf(const Node& node, const State& parent, bool odd);
  static NodeDrift DriftOf(const Node& node, const State& parent);

  std::vector<State> states_;
};

}  // namespace fncache::insight::request

#endif  // FNCACHE_INSIGHT_REQUEST_NODE_DRIFT_H_
