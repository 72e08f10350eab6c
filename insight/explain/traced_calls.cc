// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/traced_calls.h"

#include "absl/strings/str_cat.h"
#include "insight/request/node_drift.h"

namespace fncache::insight::explain {

using request::KeptNode;
using request::NodeDrift;
using trace::Outcome;
using trace::ReadCall;
using trace::TracedCall;

bool IsHit(Outcome outcome) {
  return outcome == Outcome::kHit || outcome == Outcome::kStaleHit ||
         outcome == Outcome::kCollapsed;
}

std::string WhoseOf(const request::CompositeName& name) {
  return absl::StrCat(name.kind, "\n", name.object_namespace, "\n", name.name,
                      "\n", name.uid);
}

std::string StreamOf(const ReadCall& call) {
  if (call.stream != 0)
    return absl::StrCat(call.stream, "\n", call.call.method);
  return absl::StrCat(call.call.function, "\n", call.call.method, "\n",
                      call.call.step, "\n", WhoseOf(call.call.composite));
}

bool Wanted(const TracedCall& call, const AnalysisOptions& options) {
  if (!options.function.empty() && call.function != options.function) {
    return false;
  }
  if (!options.phase.empty() && call.phase != options.phase) return false;
  return options.composite.empty() ||
         call.composite.name == options.composite ||
         absl::StrCat(call.composite.object_namespace, "/",
                      call.composite.name) == options.composite;
}

bool IsKept(const TracedCall& call) {
  if (call.status != 0) return false;
  if (call.outcome == Outcome::kMiss) return call.stored;
  // Without a cache nothing was stored: decide as a cache would.
  return !call.fatal && call.function_ttl.has_value() &&
         *call.function_ttl > absl::ZeroDuration();
}

absl::Time ServedUntil(const TracedCall& call, absl::Duration lifetime,
                       double margin) {
  if (call.outcome == Outcome::kStaleHit) return absl::InfinitePast();
  const auto lives =
      lifetime > absl::ZeroDuration()
          ? lifetime
          : call.lifetime.value_or(
                call.told_ttl.value_or(absl::ZeroDuration()) + call.age);
  return call.arrived - call.age + (1 - margin) * lives;
}

uint64_t InForce::HashOf(trace::PathId path, const KeptNode& node) const {
  const auto drift = static_cast<NodeDrift>(node.drift);
  if (!tuned_ || drift == NodeDrift::kNone) return trace::NodeHash(path, node);
  if (drift == NodeDrift::kInside) return 0;
  KeptNode mark;  // no node has the kind 0
  mark.value = node.drift;
  return trace::NodeHash(path, mark);
}

bool InForce::DiffersInDriftOnly(const KeptNode* a, const KeptNode* b) const {
  if (!tuned_) return false;
  const auto is_inside = [](const KeptNode* node) {
    return node == nullptr ||
           static_cast<NodeDrift>(node->drift) == NodeDrift::kInside;
  };
  if (is_inside(a) && is_inside(b)) return true;
  if (a == nullptr || b == nullptr) return false;
  if (a->kind == b->kind && a->value == b->value) return true;
  return a->drift != 0 && a->drift == b->drift;
}

}  // namespace fncache::insight::explain
