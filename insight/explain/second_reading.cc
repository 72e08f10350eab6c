// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/second_reading.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "insight/explain/proposed_mask.h"
#include "insight/request/compare.h"

namespace fncache::insight::explain {

using request::KeptNode;
using trace::NodeMap;
using trace::Outcome;
using trace::PathId;
using trace::ReadCall;

std::vector<Candidate> CandidatesOf(
    const trace::TraceReader& reader,
    const absl::flat_hash_map<PathId, Changed>& changed) {
  std::map<std::string, Candidate> candidates;
  for (const auto& [id, one] : changed) {
    const std::string mask =
        ProposedMask(reader.PathOf(id), one.leaf && one.changed);
    if (mask.empty()) continue;
    const std::vector<std::string> together = ProposedTogether(mask);
    const bool versions = together.size() > 1;
    // The same field of several resources is one candidate.
    std::string name = request::MaskFor(together[0]);
    if (name.empty() || absl::StartsWith(mask, "context.")) name = mask;
    Candidate& candidate = candidates[name];
    candidate.masks.insert(together.begin(), together.end());
    candidate.hides.insert(id);
    candidate.versions = versions;
    candidate.times = mask == "@times";
  }
  std::vector<Candidate> all;
  for (auto& one : candidates) all.push_back(std::move(one.second));
  return all;
}

void SecondReading::Read(trace::TraceReader* reader,
                         uint64_t misses_before_the_last) {
  absl::flat_hash_map<std::string, uint32_t> whose;
  absl::flat_hash_map<std::vector<size_t>, size_t> atom_of_cover;
  // By path: its atom, or none.
  absl::flat_hash_map<PathId, size_t> atoms;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    for (const PathId path : candidates_[i].hides) covers_[path].push_back(i);
  }
  for (auto& [path, cover] : covers_) {
    std::sort(cover.begin(), cover.end());
    const auto [at, added] =
        atom_of_cover.try_emplace(cover, atom_covers_.size());
    if (added) atom_covers_.push_back(cover);
    atoms[path] = at->second;
  }
  // A composite's last request, so that only changes are added up.
  struct Last {
    std::shared_ptr<const NodeMap> nodes;
    uint64_t all = 0;
    std::vector<uint64_t> atoms;
  };
  absl::flat_hash_map<uint32_t, Last> lasts;
  ReadCall call;
  uint64_t misses = 0;
  while (reader->Next(&call)) {
    if (call.nodes == nullptr || call.call.outcome == Outcome::kBypass) {
      continue;
    }
    Seen seen;
    seen.whose =
        whose.try_emplace(StreamOf(call), static_cast<uint32_t>(whose.size()))
            .first->second;
    seen.miss = !IsHit(call.call.outcome);
    seen.counted = seen.miss && Wanted(call.call, options_) &&
                   misses++ >= misses_before_the_last;
    seen.kept = seen.miss && IsKept(call.call);
    seen.arrived = call.call.arrived;
    seen.answered = call.call.arrived + call.call.latency;
    if (options_.lifetime > absl::ZeroDuration()) {
      seen.lives = options_.lifetime;
    } else if (call.call.lifetime) {
      seen.lives = *call.call.lifetime;
    } else if (call.call.function_ttl) {
      seen.lives = *call.call.function_ttl;
    }
    if (!seen.miss) {
      seen.served_until =
          ServedUntil(call.call, options_.lifetime, options_.margin);
    }
    seen.seconds = absl::ToDoubleSeconds(call.call.cost);
    Last& last = lasts[seen.whose];
    const auto add = [&](PathId path, const KeptNode& node, bool plus) {
      if (in_force_->Hide(*reader, call.call.function, path)) return;
      const uint64_t hash = in_force_->HashOf(path, node);
      last.all += plus ? hash : -hash;
      const auto atom = atoms.find(path);
      if (atom == atoms.end()) return;
      last.atoms[atom->second] += plus ? hash : -hash;
    };
    if (last.nodes == nullptr || !call.has_previous) {
      last.all = 0;
      last.atoms.assign(atom_covers_.size(), 0);
      for (const auto& [path, node] : *call.nodes) add(path, node, true);
    } else {
      for (const PathId path : call.changed) {
        const auto before = last.nodes->find(path);
        if (before != last.nodes->end()) add(path, before->second, false);
        const auto now = call.nodes->find(path);
        if (now != call.nodes->end()) add(path, now->second, true);
      }
    }
    last.nodes = call.nodes;
    seen.all = last.all;
    seen.atoms = last.atoms;
    calls_.push_back(std::move(seen));
  }
}

SecondReading::Saved SecondReading::Try(const std::set<size_t>& set) const {
  std::vector<char> hidden(atom_covers_.size());
  for (size_t i = 0; i < atom_covers_.size(); ++i) {
    hidden[i] = std::any_of(atom_covers_[i].begin(), atom_covers_[i].end(),
                            [&](size_t one) { return set.count(one) > 0; });
  }
  Saved saved;
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, absl::Time> until;
  for (const Seen& call : calls_) {
    uint64_t hash = call.all;
    for (size_t i = 0; i < hidden.size(); ++i) {
      if (hidden[i] != 0) hash -= call.atoms[i];
    }
    const auto key = std::make_pair(call.whose, hash);
    if (!call.miss) {
      absl::Time& served =
          until.try_emplace(key, absl::InfinitePast()).first->second;
      served = std::max(served, call.served_until);
      continue;
    }
    const auto found = until.find(key);
    if (found != until.end() && found->second > call.arrived) {
      if (call.counted) {
        ++saved.misses;
        saved.seconds += call.seconds;
      }
      continue;
    }
    if (call.kept) {
      until[key] = call.answered + (1 - options_.margin) * call.lives;
    }
  }
  return saved;
}

std::vector<MaskGain> SecondReading::Choose() const {
  // Without any mask: other lifetimes may save calls alone, which is not the
  // masks' merit.
  const Saved none = Try({});
  std::vector<Saved> alone;
  for (size_t i = 0; i < candidates_.size(); ++i) alone.push_back(Try({i}));
  std::vector<MaskGain> chosen;
  std::set<size_t> set;
  Saved so_far = none;
  while (static_cast<int>(chosen.size()) < options_.most_masks) {
    const std::vector<size_t> best = Best(set, so_far);
    if (best.empty()) break;
    for (const size_t one : best) {
      set.insert(one);
      const Saved now = Try(set);
      MaskGain share;
      share.masks.assign(candidates_[one].masks.begin(),
                         candidates_[one].masks.end());
      share.alone =
          alone[one].misses - std::min(alone[one].misses, none.misses);
      share.together = now.misses - std::min(now.misses, none.misses);
      share.seconds_together = now.seconds - none.seconds;
      chosen.push_back(std::move(share));
      so_far = now;
    }
  }
  return chosen;
}

SecondReading::Saved SecondReading::With(
    std::set<size_t> set, const std::vector<size_t>& more) const {
  set.insert(more.begin(), more.end());
  return Try(set);
}

std::vector<size_t> SecondReading::Best(const std::set<size_t>& set,
                                        const Saved& so_far) const {
  std::vector<size_t> best;
  uint64_t most = so_far.misses;
  const auto consider = [&](const std::vector<size_t>& more) {
    const Saved saved = With(set, more);
    if (saved.misses <= most) return;
    most = saved.misses;
    best = more;
  };
  std::vector<size_t> left, versions, with_times;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (set.count(i) > 0) continue;
    left.push_back(i);
    if (candidates_[i].versions) versions.push_back(i);
    if (candidates_[i].versions || candidates_[i].times) {
      with_times.push_back(i);
    }
  }
  for (const size_t one : left) consider({one});
  if (!best.empty()) return best;
  for (size_t i = 0; i < left.size(); ++i) {
    for (size_t j = i + 1; j < left.size() && pairs_ < kMostPairs; ++j) {
      ++pairs_;
      consider({left[i], left[j]});
    }
  }
  consider(versions);
  consider(with_times);
  if (best.empty()) consider(left);
  // Removes masks that save nothing more.
  for (size_t i = best.size(); i-- > 0;) {
    std::vector<size_t> fewer = best;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (With(set, fewer).misses >= most) best = std::move(fewer);
  }
  return best;
}

}  // namespace fncache::insight::explain
