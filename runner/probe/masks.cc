// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/masks.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "cache/key/mask.h"
#include "insight/request/compare.h"
#include "insight/request/identity.h"

namespace fncache::runner::probe {
namespace {

using insight::request::MaskFor;
using insight::request::MaskMatcher;
using insight::request::ObjectOf;
using insight::request::SplitPath;

// So many are looked at; those that hide the most bytes where there are more.
constexpr size_t kMostCandidates = 200;

struct Candidate {
  ProposedMask proposed;
  std::vector<int> hidden;           // fields
  std::vector<std::string> changed;  // paths of the trace
};

class Proposer {
 public:
  Proposer(const std::vector<Field>& fields,
           const std::vector<Search::Result>& results,
           const Variation& variation)
      : fields_(fields), results_(results), variation_(variation) {
    for (size_t i = 0; i < fields.size(); ++i) {
      const std::string mask = MaskFor(fields[i].path);
      container_[fields[i].mask] = fields[i].container;
      bool& unread = unread_by_mask_.try_emplace(mask, true).first->second;
      unread = unread && IsUnread(i);
    }
    for (size_t i = 0; i < fields.size(); ++i) {
      const auto varied = variation.paths().find(fields[i].mask);
      if (results[i] != Search::Result::kRead ||
          varied == variation.paths().end()) {
        continue;
      }
      lost_.insert(varied->second.calls.begin(), varied->second.calls.end());
    }
  }

  std::vector<ProposedMask> Propose() {
    for (const auto& set : cache::key::NamedMaskSets()) Consider(set.name);
    if (variation_.calls() > 0) {
      for (const auto& [mask, path] : variation_.paths()) {
        if (IsBroad(path.path)) continue;
        if (!Consider(MaskFor(path.path))) Consider(mask);
      }
    } else {
      for (const int field : Topmost()) {
        if (!Consider(MaskFor(fields_[field].path))) {
          Consider(fields_[field].mask);
        }
      }
    }
    // Sets come before paths that hide no more.
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return a.proposed.varied != b.proposed.varied
                                  ? a.proposed.varied > b.proposed.varied
                                  : a.proposed.bytes > b.proposed.bytes;
                     });
    std::vector<ProposedMask> proposed;
    std::set<int> hidden;
    std::set<std::string> changed;
    for (const Candidate& one : candidates_) {
      if (variation_.calls() > 0 && one.proposed.varied == 0) break;
      const size_t before = hidden.size() + changed.size();
      changed.insert(one.changed.begin(), one.changed.end());
      // What no call changed is not worth a mask where there is a trace.
      if (variation_.calls() == 0) {
        hidden.insert(one.hidden.begin(), one.hidden.end());
      }
      if (hidden.size() + changed.size() > before) {
        proposed.push_back(one.proposed);
      }
    }
    return proposed;
  }

 private:
  bool IsUnread(size_t field) const {
    return results_[field] == Search::Result::kUnread;
  }

  // Whether it is `metadata`, `spec`, `status` or such a one as a whole, right
  // below an object: that holds what other requests have and these have not.
  bool IsBroad(absl::string_view path) const {
    const size_t object = SplitPath(ObjectOf(path)).size();
    if (object == 0 || SplitPath(path).size() != object + 1) return false;
    const auto field = container_.find(SpelledAsMask(path));
    return field == container_.end() || field->second;
  }

  // The topmost fields of which all that is in them is unread, without broad
  // ones.
  std::vector<int> Topmost() const {
    std::vector<int> topmost;
    for (int i = 0; i < static_cast<int>(fields_.size());) {
      bool unread = true;
      for (int j = i; j < fields_[i].end; ++j) {
        unread = unread && IsUnread(j);
      }
      if (unread && !IsBroad(fields_[i].path)) {
        topmost.push_back(i);
        i = fields_[i].end;
      } else {
        ++i;
      }
    }
    return topmost;
  }

  // Whether it may be proposed, or has been considered already.
  bool Consider(const std::string& mask) {
    if (mask.empty()) return false;
    const auto known = considered_.find(mask);
    if (known != considered_.end()) return known->second;
    if (considered_.size() >= kMostCandidates) return false;
    bool& taken = considered_[mask];
    const auto masks = cache::key::MaskSet::Parse({mask});
    if (!masks.ok()) return false;
    const MaskMatcher matcher(*masks);
    Candidate candidate;
    candidate.proposed.mask = mask;
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (!matcher.Masks(fields_[i].path)) continue;
      if (!IsUnread(i)) return false;
      candidate.hidden.push_back(static_cast<int>(i));
      candidate.proposed.bytes += fields_[i].bytes;
    }
    std::set<uint32_t> calls;
    for (const auto& [spelled, path] : variation_.paths()) {
      if (!matcher.Masks(path.path)) continue;
      // Of another request: the same path of another object must be unread.
      const auto found = unread_by_mask_.find(MaskFor(path.path));
      if (found == unread_by_mask_.end() || !found->second) return false;
      candidate.changed.push_back(spelled);
      for (const uint32_t call : path.calls) {
        if (lost_.count(call) == 0) calls.insert(call);
      }
    }
    candidate.proposed.varied = static_cast<uint32_t>(calls.size());
    candidate.proposed.fields = static_cast<uint32_t>(candidate.hidden.size());
    if (candidate.hidden.empty()) return false;
    candidates_.push_back(std::move(candidate));
    taken = true;
    return true;
  }

  const std::vector<Field>& fields_;
  const std::vector<Search::Result>& results_;
  const Variation& variation_;
  // By the mask that hides them whatever the object's name is.
  absl::flat_hash_map<std::string, bool> unread_by_mask_;
  std::set<uint32_t> lost_;  // calls at which something that is read changed
  absl::flat_hash_map<std::string, bool> container_;  // by how masks spell it
  std::map<std::string, bool> considered_;
  std::vector<Candidate> candidates_;
};

}  // namespace

std::vector<ProposedMask> ProposeMasks(
    const std::vector<Field>& fields,
    const std::vector<Search::Result>& results, const Variation& variation) {
  return Proposer(fields, results, variation).Propose();
}

}  // namespace fncache::runner::probe
