// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/first_reading.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "cache/key/mask.h"
#include "common/field_path.h"
#include "insight/explain/proposed_mask.h"
#include "insight/request/compare.h"
#include "insight/request/identity.h"
#include "insight/request/nodes.h"

namespace fncache::insight::explain {

using request::PathSegment;
using trace::NodeMap;
using trace::Outcome;
using trace::PathId;
using trace::ReadCall;
using trace::Reason;
using trace::TracedCall;

namespace {

std::string NotStoredBecause(const TracedCall& call) {
  if (!call.detail.empty()) return call.detail;
  if (call.status != 0) return "error";
  if (call.fatal) return "fatal";
  if (!call.function_ttl.has_value() ||
      *call.function_ttl <= absl::ZeroDuration()) {
    return "no-ttl";
  }
  return call.secrets ? "secrets" : "too-large";
}

// A path of many composites as one: elements and resources' names become `*`.
std::string General(absl::string_view path) {
  const std::string mask = request::MaskFor(path);
  if (!mask.empty()) return mask;
  const std::vector<PathSegment> segments = request::SplitPath(path);
  std::string general;
  for (size_t i = 0; i < segments.size(); ++i) {
    const bool name = (i == 2 && segments[1].name == "resources") ||
                      (i == 1 && (segments[0].name == "required_resources" ||
                                  segments[0].name == "extra_resources"));
    if (name || (segments[i].index && segments[i].name != "[?]") ||
        (segments[i].name == "*" && !segments[i].quoted)) {
      absl::StrAppend(&general, general.empty() ? "" : ".", "*");
    } else if (segments[i].index) {
      absl::StrAppend(&general, segments[i].name);
    } else {
      general = PathBelow(general, segments[i].name);
    }
  }
  return general;
}

template <typename T>
void ByMisses(std::vector<T>* shares) {
  std::stable_sort(shares->begin(), shares->end(),
                   [](const T& a, const T& b) { return a.misses > b.misses; });
}

}  // namespace

Learned FirstReading::Read(trace::TraceReader* reader) {
  ReadCall call;
  absl::Time first = absl::InfiniteFuture(), last = absl::InfinitePast();
  std::set<std::string> functions, composites;
  Analysis& analysis = learned_.analysis;
  while (reader->Next(&call)) {
    Follow(*reader, call);
    if (!Wanted(call.call, options_)) continue;
    ++analysis.calls;
    for (const auto& ttl : {call.call.told_ttl, call.call.function_ttl}) {
      analysis.longest_ttl =
          std::max(analysis.longest_ttl, ttl.value_or(absl::ZeroDuration()));
    }
    first = std::min(first, call.call.arrived);
    last = std::max(last, call.call.arrived);
    functions.insert(call.call.function);
    // Calls of an operation have no composite.
    if (call.call.composite.known()) {
      composites.insert(WhoseOf(call.call.composite));
    }
    if (call.nodes != nullptr) analysis.has_paths = true;
    if (IsHit(call.call.outcome)) {
      ++analysis.hits;
    } else if (call.call.outcome == Outcome::kBypass) {
      ++analysis.bypasses;
      if (!call.call.detail.empty()) {
        ++analysis.bypasses_by_reason[call.call.detail];
      }
    } else {
      Miss(*reader, call);
    }
  }
  Sum();
  if (first <= last) analysis.span = last - first;
  analysis.composites = composites.size();
  analysis.functions.assign(functions.begin(), functions.end());
  analysis.dropped = reader->dropped();
  analysis.damaged = reader->damaged();
  return std::move(learned_);
}

std::pair<std::string, bool> FirstReading::ReasonOf(const ReadCall& call,
                                                    const Past& past,
                                                    uint64_t hash) const {
  const TracedCall& traced = call.call;
  if (traced.reason == Reason::kNotStored) {
    return {absl::StrCat("not-stored: ", traced.detail), false};
  }
  if (traced.reason == Reason::kChanged) return {"changed", true};
  // The trace may know more than the daemon that wrote it.
  if (traced.reason != Reason::kNone && traced.reason != Reason::kUnknown) {
    return {trace::ReasonName(traced.reason), false};
  }
  if (!past.any) return {"new", false};
  if (call.nodes == nullptr && !traced.key) return {"unknown", false};
  const auto found = past.kept.find(hash);
  if (found != past.kept.end()) {
    // The trace saw the answer a little later than the store did.
    const bool over =
        found->second.until <= traced.arrived + found->second.slack;
    // A load's trace of a function that nothing caches.
    const bool cached = traced.outcome != Outcome::kNone;
    return {over ? "expired" : cached ? "evicted" : "no-cache", false};
  }
  if (hash == past.hash && !past.not_stored.empty()) {
    return {absl::StrCat("not-stored: ", past.not_stored), false};
  }
  return {"changed", true};
}

uint64_t FirstReading::RequestHash(const trace::TraceReader& reader,
                                   const ReadCall& call) {
  if (call.call.key && options_.masked.empty() && options_.in_force) {
    return call.call.key->low ^ call.call.key->high;
  }
  if (call.nodes == nullptr) return 0;
  uint64_t hash = 0;
  for (const auto& [path, node] : *call.nodes) {
    if (in_force_->Hide(reader, call.call.function, path)) continue;
    hash += in_force_->HashOf(path, node);
  }
  return hash;
}

void FirstReading::Follow(const trace::TraceReader& reader,
                          const ReadCall& call) {
  Past& past = past_[StreamOf(call)];
  before_ = std::exchange(past.nodes, call.nodes);
  const uint64_t hash = RequestHash(reader, call);
  reason_ = ReasonOf(call, past, hash);
  past.any = true;
  if (call.call.outcome == Outcome::kBypass) return;
  if (IsHit(call.call.outcome)) {
    const absl::Time until =
        ServedUntil(call.call, absl::ZeroDuration(), options_.margin);
    Past::Kept& kept = past.kept[hash];
    kept.until = std::max(kept.until, until);
    return;
  }
  past.hash = hash;
  if (IsKept(call.call)) {
    past.not_stored.clear();
    const absl::Duration lives =
        call.call.lifetime.value_or(*call.call.function_ttl);
    past.kept[hash] = {
        call.call.arrived + call.call.latency + (1 - options_.margin) * lives,
        lives / kSlackDivisor};
  } else {
    past.not_stored = NotStoredBecause(call.call);
  }
}

const request::KeptNode* FirstReading::NodeIn(
    const std::shared_ptr<const NodeMap>& nodes, PathId id) {
  if (nodes == nullptr) return nullptr;
  const auto found = nodes->find(id);
  return found == nodes->end() ? nullptr : &found->second;
}

bool FirstReading::Has(const std::shared_ptr<const NodeMap>& nodes, PathId id) {
  return nodes == nullptr || nodes->contains(id);
}

bool FirstReading::IsLeafIn(const std::shared_ptr<const NodeMap>& nodes,
                            PathId id) {
  if (nodes == nullptr) return true;
  const auto found = nodes->find(id);
  return found == nodes->end() ||
         IsLeaf(static_cast<request::NodeKind>(found->second.kind));
}

absl::flat_hash_set<PathId> FirstReading::Inside(
    const trace::TraceReader& reader, const ReadCall& call) const {
  absl::flat_hash_set<PathId> inside;
  if (before_ == nullptr || call.nodes == nullptr) return inside;
  absl::flat_hash_set<absl::string_view> moved;
  for (const PathId id : call.changed) {
    const absl::string_view path = reader.PathOf(id);
    if (before_->contains(id) != call.nodes->contains(id) &&
        ProposedMask(path, /*leaf=*/false).empty()) {
      moved.insert(path);
    }
  }
  for (const PathId id : call.changed) {
    const absl::string_view path = reader.PathOf(id);
    for (size_t at = path.find_first_of(".["); at != path.npos;
         at = path.find_first_of(".[", at + 1)) {
      if (moved.contains(path.substr(0, at))) inside.insert(id);
    }
  }
  return inside;
}

void FirstReading::Miss(const trace::TraceReader& reader,
                        const ReadCall& call) {
  MissFacts miss;
  miss.reason = reason_.first;
  miss.seconds = absl::ToDoubleSeconds(call.call.cost);
  if (reason_.second) {
    const absl::flat_hash_set<PathId> inside = Inside(reader, call);
    for (const PathId id : call.changed) {
      if (inside.contains(id)) continue;
      if (in_force_->Hide(reader, call.call.function, id)) continue;
      if (in_force_->DiffersInDriftOnly(NodeIn(before_, id),
                                        NodeIn(call.nodes, id))) {
        continue;
      }
      const absl::string_view path = reader.PathOf(id);
      auto [changed, added] = learned_.changed.try_emplace(id);
      if (added) changed->second.general = General(path);
      const bool came_or_went = Has(call.nodes, id) != Has(before_, id);
      changed->second.changed |= !came_or_went;
      changed->second.leaf &= IsLeafIn(call.nodes, id) && IsLeafIn(before_, id);
      std::string writer;
      if (call.writers != nullptr) {
        const auto found = call.writers->find(request::ObjectOf(path));
        if (found != call.writers->end()) writer = found->second.manager;
      }
      miss.paths.push_back(changed->second.general);
      miss.writers.push_back(std::move(writer));
    }
    // An older or newer record may say more than the nodes.
    if (miss.paths.empty() && !call.call.detail.empty()) {
      miss.paths.push_back(General(call.call.detail));
      miss.writers.emplace_back();
    }
  }
  miss.pathless = reason_.second && call.nodes == nullptr && miss.paths.empty();
  misses_.push_back(std::move(miss));
}

void FirstReading::Sum() {
  Analysis& analysis = learned_.analysis;
  const size_t from = options_.last > 0 && options_.last < misses_.size()
                          ? misses_.size() - options_.last
                          : 0;
  std::map<std::string, Misses> reasons, sections, writers;
  struct Path {
    PathMisses share;
    std::map<std::string, uint64_t> writers;
  };
  std::map<std::string, Path> paths;
  const auto add = [](std::map<std::string, Misses>* to,
                      const std::string& name, double seconds) {
    Misses& share = (*to)[name];
    share.name = name;
    ++share.misses;
    share.seconds += seconds;
  };
  for (size_t i = from; i < misses_.size(); ++i) {
    const MissFacts& miss = misses_[i];
    ++analysis.misses;
    analysis.seconds += miss.seconds;
    if (miss.pathless) ++analysis.pathless;
    add(&reasons, miss.reason, miss.seconds);
    // Each of them counts once for a miss.
    std::set<std::string> seen_paths, seen_sections, seen_writers;
    for (size_t j = 0; j < miss.paths.size(); ++j) {
      const std::string& name = miss.paths[j];
      if (!miss.writers[j].empty()) ++paths[name].writers[miss.writers[j]];
      seen_paths.insert(name);
      seen_sections.insert(request::SectionOf(name));
      if (!miss.writers[j].empty()) seen_writers.insert(miss.writers[j]);
    }
    for (const std::string& name : seen_paths) {
      ++paths[name].share.misses;
      paths[name].share.seconds += miss.seconds;
    }
    for (const auto& one : seen_sections) add(&sections, one, miss.seconds);
    for (const auto& one : seen_writers) add(&writers, one, miss.seconds);
  }
  for (auto& [name, path] : paths) {
    path.share.path = name;
    path.share.section = request::SectionOf(name);
    path.share.allowed = cache::key::MaskSet::Parse({name}).ok();
    uint64_t most = 0;
    for (const auto& [writer, count] : path.writers) {
      if (count > most) path.share.writer = writer;
      most = std::max(most, count);
    }
    analysis.paths.push_back(std::move(path.share));
  }
  const auto take = [](std::map<std::string, Misses>* shares,
                       std::vector<Misses>* to) {
    for (auto& one : *shares) to->push_back(std::move(one.second));
    ByMisses(to);
  };
  take(&reasons, &analysis.reasons);
  take(&sections, &analysis.sections);
  take(&writers, &analysis.writers);
  ByMisses(&analysis.paths);
}

}  // namespace fncache::insight::explain
