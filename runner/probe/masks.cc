// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/masks.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "cache/key/mask.h"
#include "insight/request/compare.h"
#include "insight/request/identity.h"

namespace fncache::runner::probe {
namespace {

using insight::request::MaskFor;
using insight::request::PathSegment;

constexpr char kTimes[] = "@times";
constexpr absl::string_view kManagers = ".metadata.managedFields";

// A field that a mask may hide alone.
struct Leaf {
  int field = 0;
  std::string object;  // that it is in, as masks spell it; "" of the context
  std::string of_all;  // the mask with `*` for the names of resources
  bool time = false;   // of @times
};

class Proposer {
 public:
  Proposer(const std::vector<Field>& fields,
           const std::vector<Search::Result>& results,
           const Variation& variation, bool all_observed)
      : fields_(fields),
        results_(results),
        variation_(variation),
        all_observed_(all_observed) {
    const insight::request::MaskMatcher times(
        *cache::key::MaskSet::Parse({kTimes}));
    std::set<std::string> objects;
    for (int i = 0; i < static_cast<int>(fields.size()); ++i) {
      const std::vector<PathSegment> segments =
          insight::request::SplitPath(fields[i].path);
      const size_t object = insight::request::ObjectSegments(segments);
      if (object == 4 && fields[i].real) objects.insert(segments[2].name);
      const bool times_too = times.Masks(fields[i].path);
      if (times_too && (!IsUnread(i) || InReadList(i))) times_unread_ = false;
      if (IsLeaf(i, segments, object) && AllUnread(i) && !InReadList(i)) {
        leaves_.push_back({i, object == 4 ? segments[2].name : "",
                           object == 0 ? "" : MaskFor(fields[i].path),
                           times_too});
      }
      const auto varied = variation.paths().find(fields[i].mask);
      if (varied == variation.paths().end()) continue;
      // No leaf hides that an object or a list came, went or grew.
      const bool grew =
          fields[i].container && !absl::StrContains(fields[i].mask, kManagers);
      if (grew || results[i] == Search::Result::kRead) {
        lost_.insert(varied->second.calls.begin(), varied->second.calls.end());
      }
    }
    objects_ = objects.size();
    for (const auto& [mask, path] : variation.paths()) {
      const std::vector<PathSegment> segments =
          insight::request::SplitPath(path.path);
      const bool composed = insight::request::ObjectSegments(segments) == 4;
      // The path is in a resource that was not probed.
      if (composed && objects.count(segments[2].name) == 0) {
        all_observed_ = false;
      }
    }
    for (const Leaf& leaf : leaves_) ++in_all_[leaf.of_all];
  }

  std::vector<ProposedMask> Propose(bool only_varied) {
    // By mask: the leaves that it hides.
    std::map<std::string, std::vector<const Leaf*>> by_mask;
    for (const Leaf& leaf : leaves_) by_mask[MaskOf(leaf)].push_back(&leaf);
    std::vector<ProposedMask> masks;
    for (const auto& [mask, leaves] : by_mask) {
      ProposedMask one;
      one.mask = mask;
      std::set<uint32_t> calls;
      for (const Leaf* leaf : leaves) {
        for (int i = leaf->field; i < fields_[leaf->field].end; ++i) {
          one.bytes += fields_[i].bytes;
          one.fields += fields_[i].real ? 1 : 0;
          const auto varied = variation_.paths().find(fields_[i].mask);
          if (varied == variation_.paths().end()) continue;
          for (const uint32_t call : varied->second.calls) {
            if (lost_.count(call) == 0) calls.insert(call);
          }
        }
      }
      one.varied = static_cast<uint32_t>(calls.size());
      if (!only_varied || one.varied > 0) masks.push_back(std::move(one));
    }
    std::stable_sort(masks.begin(), masks.end(),
                     [](const ProposedMask& a, const ProposedMask& b) {
                       return a.varied != b.varied ? a.varied > b.varied
                                                   : a.bytes > b.bytes;
                     });
    return masks;
  }

 private:
  bool IsUnread(int field) const {
    return results_[field] == Search::Result::kUnread;
  }
  // The field and all that is in it.
  bool AllUnread(int field) const {
    for (int i = field; i < fields_[field].end; ++i) {
      if (!IsUnread(i)) return false;
    }
    return true;
  }

  // Whether it is in a list that is read: how many elements there are, or one
  // that is not there yet.
  bool InReadList(int field) const {
    for (int at = field; at >= 0; at = fields_[at].parent) {
      const int list = fields_[at].parent;
      if (list >= 0 && absl::EndsWith(fields_[at].mask, ".*") &&
          results_[list] == Search::Result::kRead) {
        return true;
      }
    }
    return false;
  }

  bool IsLeaf(int field, const std::vector<PathSegment>& segments,
              size_t object) const {
    const Field& one = fields_[field];
    if (!one.real || !cache::key::MaskSet::Parse({one.mask}).ok() ||
        absl::c_any_of(one.mask, absl::ascii_iscntrl)) {
      return false;
    }
    if (object == 0) return one.scalar && !one.container;
    const auto is = [&](size_t at, absl::string_view name) {
      at += object;
      return at < segments.size() && !segments[at].index &&
             segments[at].name == name;
    };
    const bool managers = is(0, "metadata") && is(1, "managedFields");
    if (managers) return segments.size() == object + 2;
    const bool asked_for = segments[1].name == "composite" && object == 3 &&
                           is(0, "spec") && !is(1, "crossplane");
    const bool kind =
        segments.size() == object + 1 && (is(0, "kind") || is(0, "apiVersion"));
    return one.scalar && !one.container && !asked_for && !kind;
  }

  std::string MaskOf(const Leaf& leaf) const {
    if (leaf.time && all_observed_ && times_unread_) return kTimes;
    const bool of_all = !leaf.object.empty() && all_observed_ &&
                        in_all_.at(leaf.of_all) == objects_;
    return of_all ? leaf.of_all : fields_[leaf.field].mask;
  }

  const std::vector<Field>& fields_;
  const std::vector<Search::Result>& results_;
  const Variation& variation_;
  bool all_observed_;
  std::vector<Leaf> leaves_;
  std::map<std::string, size_t> in_all_;  // by Leaf::of_all
  size_t objects_ = 0;                    // that are composed and observed
  bool times_unread_ = true;
  std::set<uint32_t> lost_;  // calls at which something that is read changed
};

}  // namespace

std::vector<ProposedMask> ProposeMasks(
    const std::vector<Field>& fields,
    const std::vector<Search::Result>& results, const Variation& variation,
    bool all_observed) {
  return Proposer(fields, results, variation, all_observed)
      .Propose(/*only_varied=*/variation.calls() > 0);
}

std::vector<ProposedMask> UnreadLeaves(
    const std::vector<Field>& fields,
    const std::vector<Search::Result>& results, bool all_observed) {
  const Variation none;
  return Proposer(fields, results, none, all_observed)
      .Propose(/*only_varied=*/false);
}

}  // namespace fncache::runner::probe
