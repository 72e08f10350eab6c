// SPDX-License-Identifier: Apache-2.0
#include "insight/request/node_drift.h"

#include "cache/key/plain_wire.h"

namespace fncache::insight::request {
namespace {

using cache::key::DriftSection;
using cache::key::DriftType;

// The contents of a Secret's managedFields are one secret node, below a node
// that looks like a Struct. Its bytes show that it is a list (nodes.cc).
bool IsSecretList(const Node& node) {
  return node.kind == NodeKind::kSecret && node.bytes.size() == 1 &&
         static_cast<uint8_t>(node.bytes[0]) == cache::key::kListValue;
}

}  // namespace

NodeDrift NodeDrifts::DriftOf(const Node& node, const State& parent) {
  // An element has no key of its own.
  const absl::string_view key = node.index >= 0 ? "" : node.name;
  if (parent.role == Role::kMetadata || parent.role == Role::kStatus) {
    if (node.kind == NodeKind::kList && key == cache::key::kManagedFieldsKey) {
      return NodeDrift::kManagedFields;
    }
  }
  if (node.kind != NodeKind::kString) return NodeDrift::kNone;
  if (parent.role == Role::kMetadata) {
    return key == cache::key::kVersionKey && cache::key::IsVersion(node.bytes)
               ? NodeDrift::kVersion
               : NodeDrift::kNone;
  }
  const bool is_status = parent.role == Role::kStatus ||
                         (parent.role == Role::kObject &&
                          parent.section != DriftSection::kComposite &&
                          key == cache::key::kStatusKey);
  DriftType type;
  if (!is_status || !cache::key::IsStatusDrift(key, node.bytes, &type)) {
    return NodeDrift::kNone;
  }
  return type == DriftType::kTime ? NodeDrift::kTime : NodeDrift::kVersion;
}

NodeDrifts::State NodeDrifts::StateOf(const Node& node, const State& parent,
                                      bool odd) {
  if (parent.drift != NodeDrift::kNone) {
    return {Role::kOther, DriftSection::kNone, NodeDrift::kInside};
  }
  const auto with = [](Role role, DriftSection section) {
    return State{role, section, NodeDrift::kNone};
  };
  switch (parent.role) {
    case Role::kRequest:
      if (node.name == "observed") {
        return with(Role::kObserved, DriftSection::kNone);
      }
      if (node.name == "required_resources" || node.name == "extra_resources") {
        return with(Role::kRequiredMap, DriftSection::kNone);
      }
      return {};
    case Role::kObserved:
      if (node.name == "composite") {
        return with(Role::kResource, DriftSection::kComposite);
      }
      if (node.name == "resources") {
        return with(Role::kComposedMap, DriftSection::kNone);
      }
      return {};
    case Role::kComposedMap:
      return with(Role::kResource, DriftSection::kComposed);
    case Role::kRequiredMap:
      return with(Role::kRequired, DriftSection::kNone);
    case Role::kRequired:
      return node.name == "items" ? with(Role::kItems, DriftSection::kNone)
                                  : State();
    case Role::kItems:
      return with(Role::kResource, DriftSection::kRequired);
    case Role::kResource:
      return node.kind == NodeKind::kStruct && node.name == "resource"
                 ? with(Role::kObject, parent.section)
                 : State();
    case Role::kObject:
    case Role::kMetadata:
    case Role::kStatus:
      break;
    case Role::kOther:
      return {};
  }
  // A Value with unknown fields is no drift.
  if (!odd) {
    const NodeDrift drift = DriftOf(node, parent);
    if (drift != NodeDrift::kNone) {
      return {Role::kOther, parent.section, drift};
    }
  }
  const bool holds =
      node.kind == NodeKind::kStruct || node.kind == NodeKind::kList;
  if (!holds) return {};
  if (parent.role == Role::kStatus) return with(Role::kStatus, parent.section);
  if (parent.role == Role::kMetadata) return {};
  if (node.name == cache::key::kMetadataKey) {
    return node.kind == NodeKind::kStruct
               ? with(Role::kMetadata, parent.section)
               : State();
  }
  return node.name == cache::key::kStatusKey &&
                 parent.section != DriftSection::kComposite
             ? with(Role::kStatus, parent.section)
             : State();
}

void NodeDrifts::Read(absl::Span<const Node> nodes) {
  states_.clear();
  states_.reserve(nodes.size());
  State top;
  top.role = Role::kRequest;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    const State& parent = node.parent == kNoParent ? top : states_[node.parent];
    // Most nodes are below spec, desired or the like.
    if (parent.role == Role::kOther && parent.drift == NodeDrift::kNone &&
        node.kind != NodeKind::kSecret) {
      states_.emplace_back();
      continue;
    }
    const bool odd = i + 1 < nodes.size() && nodes[i + 1].parent == i &&
                     nodes[i + 1].kind == NodeKind::kUnknown;
    State state = StateOf(node, parent, odd);
    if (IsSecretList(node)) {
      const Node& holder = nodes[node.parent];
      const bool is_drift = holder.name == cache::key::kManagedFieldsKey &&
                            holder.parent != kNoParent &&
                            states_[holder.parent].role == Role::kMetadata;
      if (is_drift) state.drift = NodeDrift::kManagedFields;
    }
    states_.push_back(state);
  }
}

}  // namespace fncache::insight::request
