// SPDX-License-Identifier: Apache-2.0
#include "sdk/compose/waits.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/field_path.h"
#include "sdk/compose/bounded_text.h"

namespace fncache::sdk {
namespace {

using function::Graph;
using function::Until;

constexpr char kReadyWithoutIt[] = "ready without it";
constexpr char kNotDesired[] = "not desired by anyone";

// Why what is observed does not have a value, or is not ready.
absl::string_view ReasonOf(Document* observed) {
  Node* const synced = ConditionOf(observed, "Synced");
  if (synced != nullptr && StatusOf(synced) != "True") return "not synced";
  return StatusOf(ConditionOf(observed, "Ready")) == "True" ? kReadyWithoutIt
                                                            : "not ready yet";
}

absl::string_view ReasonOf(const ComposedResource& source) {
  if (source.seen != nullptr) return ReasonOf(source.observed);
  if (source.role == ComposedResource::Role::kRequired) return "none found";
  if (source.held) return "waits itself";
  return source.desires() ? "not created yet" : kNotDesired;
}

bool IsMet(const ComposedResource& on, Until until) {
  if (on.seen == nullptr) return false;
  return until == Until::kObserved ||
         StatusOf(ConditionOf(on.observed, "Ready")) == "True";
}

// A held resource. Links lead to those that it waits for: field and source.
struct Held {
  ComposedResource* resource;
  std::map<std::string, absl::string_view> sources;  // with their reasons
  std::map<size_t, std::pair<std::string, std::string>> links;
};

class Reporting {
 public:
  explicit Reporting(Call* call) : call_(call) {}

  WaitReport Report() {
    FindHeld();
    WaitReport report;
    const std::vector<size_t> order = Order();
    if (order.size() < held_.size()) {
      report.cycle = Bounded("dependency cycle: ", Circles(order), "; ");
      return report;
    }
    const Graph graph = call_->options.graph;
    std::vector<std::string> edges;
    if (graph == Graph::kAlways ||
        (graph == Graph::kWaiting && !held_.empty())) {
      edges = Edges();
    }
    report.dependencies = BoundedWaits(Items(order, ""), edges);
    report.never_resolves = Bounded("", Items(order, kReadyWithoutIt), "; ");
    report.not_desired = Bounded("", Items(order, kNotDesired), "; ");
    return report;
  }

 private:
  void FindHeld() {
    std::map<const ComposedResource*, size_t> index;
    for (const auto& [name, resource] : call_->composed) {
      if (!resource->held) continue;
      index[resource.get()] = held_.size();
      held_.push_back({resource.get(), {}, {}});
    }
    for (Held& held : held_) {
      const auto add = [&](const ComposedResource* source,
                           absl::string_view reason, std::string field,
                           std::string name) {
        held.sources.emplace(name, reason);
        const auto found = index.find(source);
        if (found == index.end()) return;
        const std::pair<std::string, std::string> link(std::move(field),
                                                       std::move(name));
        const auto [known, is_new] = held.links.emplace(found->second, link);
        if (!is_new) known->second = std::min(known->second, link);
      };
      for (const Wait& wait : held.resource->waits) {
        for (Node* const source : wait.sources) {
          const ComposedResource* const owner = OwnerOf(source->document);
          add(owner,
              owner != nullptr              ? ReasonOf(*owner)
              : source->document->present() ? ReasonOf(source->document)
                                            : "none found",
              FieldName(wait.target), SourceName(source));
        }
      }
      for (const auto& [on, until] : held.resource->depends_on) {
        if (IsMet(*on, until)) continue;
        add(on, ReasonOf(*on), FieldName(held.resource->desired->root()),
            SourceName(on->observed->root()));
      }
    }
  }

  const ComposedResource* OwnerOf(const Document* document) const {
    if (document->section != Section::kObservedResource) return nullptr;
    const auto found = call_->composed.find(document->name);
    return found == call_->composed.end() ? nullptr : found->second.get();
  }

  // Sources before what waits for them, else by name. Without those that wait
  // for a circle.
  std::vector<size_t> Order() const {
    std::vector<std::vector<size_t>> dependents(held_.size());
    std::vector<size_t> missing(held_.size());
    std::set<size_t> next;
    for (size_t i = 0; i < held_.size(); ++i) {
      missing[i] = held_[i].links.size();
      if (missing[i] == 0) next.insert(i);
      for (const auto& [source, link] : held_[i].links) {
        dependents[source].push_back(i);
      }
    }
    std::vector<size_t> order;
    while (!next.empty()) {
      const size_t at = *next.begin();
      next.erase(next.begin());
      order.push_back(at);
      for (const size_t dependent : dependents[at]) {
        if (--missing[dependent] == 0) next.insert(dependent);
      }
    }
    return order;
  }

  // `a waits for b.status.x (not created yet)`, of sources with this reason;
  // empty: of all.
  std::vector<std::string> Items(const std::vector<size_t>& order,
                                 absl::string_view only) const {
    // Leaves space for the counts of what is cut.
    constexpr size_t kMaxItemBytes = kMaxTextBytes - 64;
    std::vector<std::string> items;
    for (const size_t at : order) {
      std::vector<std::string> sources;
      for (const auto& [source, reason] : held_[at].sources) {
        if (!only.empty() && reason != only) continue;
        sources.push_back(absl::StrCat(source, " (", reason, ")"));
      }
      if (sources.empty()) continue;
      items.push_back(Bounded(
          absl::StrCat(SpellKey(held_[at].resource->name), " waits for "),
          sources, ", ", kMaxItemBytes));
    }
    return items;
  }

  std::vector<std::string> Edges() const {
    std::set<std::pair<std::string, std::string>> edges;
    for (const auto& [name, resource] : call_->composed) {
      if (!resource->desires()) continue;
      const std::string to = SpellKey(name);
      for (const Document* const from : resource->desired->dependencies) {
        edges.emplace(SourceName(const_cast<Document*>(from)->root()), to);
      }
      for (const auto& [on, until] : resource->depends_on) {
        edges.emplace(SourceName(on->observed->root()), to);
      }
    }
    std::vector<std::string> texts;
    for (const auto& [from, to] : edges) {
      texts.push_back(absl::StrCat(from, " -> ", to));
    }
    return texts;
  }

  // The shortest circle through each resource that is in one.
  std::vector<std::string> Circles(const std::vector<size_t>& order) const {
    std::vector<bool> free(held_.size());
    for (const size_t at : order) free[at] = true;
    std::set<std::vector<size_t>> circles;
    for (size_t start = 0; start < held_.size(); ++start) {
      if (!free[start]) AddCircle(start, free, &circles);
    }
    std::set<std::string> texts;
    for (const std::vector<size_t>& circle : circles) {
      std::vector<std::string> names, links;
      for (size_t i = 0; i < circle.size(); ++i) {
        const Held& held = held_[circle[i]];
        const auto& [field, source] =
            held.links.at(circle[(i + 1) % circle.size()]);
        names.push_back(SpellKey(held.resource->name));
        links.push_back(absl::StrCat(field, " waits for ", source));
      }
      names.push_back(names[0]);
      texts.insert(absl::StrCat(absl::StrJoin(names, " -> "), " (",
                                absl::StrJoin(links, "; "), ")"));
    }
    return {texts.begin(), texts.end()};
  }

  void AddCircle(size_t start, const std::vector<bool>& free,
                 std::set<std::vector<size_t>>* circles) const {
    // The one before each one that was reached.
    std::vector<size_t> before(held_.size(), held_.size());
    std::vector<size_t> queue = {start};
    for (size_t i = 0; i < queue.size(); ++i) {
      for (const auto& [next, link] : held_[queue[i]].links) {
        if (next == start) {
          std::vector<size_t> circle;
          for (size_t at = queue[i]; at != start; at = before[at]) {
            circle.push_back(at);
          }
          circle.push_back(start);
          std::reverse(circle.begin(), circle.end());
          std::rotate(circle.begin(),
                      std::min_element(circle.begin(), circle.end()),
                      circle.end());
          circles->insert(std::move(circle));
          return;
        }
        if (free[next] || before[next] != held_.size()) continue;
        before[next] = queue[i];
        queue.push_back(next);
      }
    }
  }

  Call* const call_;
  std::vector<Held> held_;  // sorted by name
};

}  // namespace

WaitReport ReportWaits(Call* call) { return Reporting(call).Report(); }

bool DependenciesMet(const ComposedResource& resource) {
  return std::all_of(
      resource.depends_on.begin(), resource.depends_on.end(),
      [](const auto& entry) { return IsMet(*entry.first, entry.second); });
}

std::string FieldName(const Node* field) {
  const std::string name = SpellKey(field->document->name);
  const std::string path = PathInDocument(field);
  return path.empty() ? name : absl::StrCat(name, ".", path);
}

}  // namespace fncache::sdk
