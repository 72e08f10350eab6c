// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/analysis.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cache/key/field_path.h"
#include "cache/key/mask.h"
#include "common/duration.h"
#include "insight/explain/proposed_mask.h"
#include "insight/request/compare.h"
#include "insight/request/identity.h"
#include "insight/request/nodes.h"
#include "insight/trace/masks_in_force.h"

namespace fncache::insight::explain {
namespace {

using request::KeptNode;
using request::PathPart;
using trace::NodeMap;
using trace::Outcome;
using trace::PathId;
using trace::ReadCall;
using trace::Reason;
using trace::TracedCall;

constexpr absl::Duration kShown = absl::Milliseconds(1);

bool IsHit(Outcome outcome) {
  return outcome == Outcome::kHit || outcome == Outcome::kStale ||
         outcome == Outcome::kCollapsed;
}

// Equal for calls of one composite only.
std::string WhoseOf(const request::CompositeName& name) {
  return absl::StrCat(name.kind, "\n", name.object_namespace, "\n", name.name,
                      "\n", name.uid);
}

// Requests that follow one another. Those of another method share no entries.
// (A stream of an older trace has both.)
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

// Whether a later look-up could have found the answer.
bool IsKept(const TracedCall& call) {
  if (call.status != 0) return false;
  if (call.outcome == Outcome::kMiss) return call.stored;
  // Nobody stored anything where no cache was: what one would have kept.
  return !call.fatal && call.function_ttl.has_value() &&
         *call.function_ttl > absl::ZeroDuration();
}

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

// A path of many composites as one: `*` for elements and resources' names.
std::string General(absl::string_view path) {
  const std::string mask = request::MaskFor(path);
  if (!mask.empty()) return mask;
  const std::vector<PathPart> parts = request::SplitPath(path);
  std::string general;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool name = (i == 2 && parts[1].name == "resources") ||
                      (i == 1 && (parts[0].name == "required_resources" ||
                                  parts[0].name == "extra_resources"));
    if (name || (parts[i].index && parts[i].name != "[?]") ||
        (parts[i].name == "*" && !parts[i].quoted)) {
      absl::StrAppend(&general, general.empty() ? "" : ".", "*");
    } else if (parts[i].index) {
      absl::StrAppend(&general, parts[i].name);
    } else {
      general = cache::key::PathBelow(general, parts[i].name);
    }
  }
  return general;
}

template <typename T>
void ByMisses(std::vector<T>* shares) {
  std::stable_sort(shares->begin(), shares->end(),
                   [](const T& a, const T& b) { return a.misses > b.misses; });
}

// Which paths of the reading the masks in force hide, each decided once.
class InForce {
 public:
  explicit InForce(const trace::MasksInForce& masks) : masks_(masks) {}

  bool Hide(const trace::TraceReader& reader, const std::string& function,
            PathId path) {
    if (!masks_.any()) return false;
    auto& hidden = hidden_[function];
    const auto [at, added] = hidden.try_emplace(path, false);
    if (added) at->second = masks_.Hide(function, reader.PathOf(path));
    return at->second;
  }

 private:
  const trace::MasksInForce& masks_;
  std::map<std::string, absl::flat_hash_map<PathId, bool>> hidden_;
};

// Masks that are tried together, by the paths of the reading that they hide.
struct Candidate {
  std::set<std::string> masks;
  absl::flat_hash_set<PathId> hides;
  bool versions = false;  // resourceVersion and managedFields
  bool times = false;     // @times
};

// A path that ever changed.
struct Changed {
  std::string general;   // what is said of it
  bool changed = false;  // from one leaf to another
  bool leaf = true;      // it never was an object or a list
};

// What the first reading learns.
struct Learned {
  Analysis analysis;
  absl::flat_hash_map<PathId, Changed> changed;
};

// Until when the entry that answered the hit was served; the past where that is
// not known. An answer past its time shows no such entry.
absl::Time ServedUntil(const TracedCall& call, absl::Duration lifetime,
                       double margin) {
  if (call.outcome == Outcome::kStale) return absl::InfinitePast();
  const auto lives =
      lifetime > absl::ZeroDuration()
          ? lifetime
          : call.lifetime.value_or(
                call.told_ttl.value_or(absl::ZeroDuration()) + call.age);
  return call.arrived - call.age + (1 - margin) * lives;
}

class FirstReading {
 public:
  FirstReading(const AnalysisOptions& options, InForce* in_force)
      : options_(options), in_force_(in_force) {}

  Learned Read(trace::TraceReader* reader) {
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
      // An operation's calls have none.
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

 private:
  static constexpr int kSlackShare = 20;

  // What became of the last answers to one composite's requests.
  struct Past {
    bool any = false;
    // By the request's hash: until when its answer was served.
    struct Kept {
      absl::Time until = absl::InfinitePast();
      absl::Duration slack = absl::ZeroDuration();
    };
    absl::flat_hash_map<uint64_t, Kept> kept;
    std::string not_stored;  // why the last answer was not kept; "" if it was
    uint64_t hash = 0;       // of the last request
    std::shared_ptr<const NodeMap> nodes;  // of the last request that has them
  };
  struct Told {
    std::string reason;
    double seconds = 0;
    std::vector<std::string> paths;
    std::vector<std::string> writers;
    bool pathless = false;
  };

  // Why this one missed, by what the trace said before it, where the record
  // does not say.
  std::pair<std::string, bool> ReasonOf(const ReadCall& call, const Past& past,
                                        uint64_t hash) const {
    const TracedCall& traced = call.call;
    if (traced.reason == Reason::kNotStored) {
      return {absl::StrCat("not-stored: ", traced.detail), false};
    }
    if (traced.reason == Reason::kChanged) return {"changed", true};
    // What a daemon has forgotten the trace may know.
    if (traced.reason != Reason::kNone && traced.reason != Reason::kUnknown) {
      return {trace::ReasonName(traced.reason), false};
    }
    if (!past.any) return {"new", false};
    if (call.nodes == nullptr && !traced.key) return {"unknown", false};
    const auto found = past.kept.find(hash);
    if (found != past.kept.end()) {
      // Whoever traced saw the answer a little later than who stored it.
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

  // A key is what the cache went by, under the masks that it had.
  uint64_t RequestHash(const trace::TraceReader& reader, const ReadCall& call) {
    if (call.call.key && options_.masked.empty() && options_.in_force) {
      return call.call.key->low ^ call.call.key->high;
    }
    if (call.nodes == nullptr) return 0;
    uint64_t hash = 0;
    for (const auto& [path, node] : *call.nodes) {
      if (in_force_->Hide(reader, call.call.function, path)) continue;
      hash += trace::NodeHash(path, node);
    }
    return hash;
  }

  void Follow(const trace::TraceReader& reader, const ReadCall& call) {
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
          lives / kSlackShare};
    } else {
      past.not_stored = NotStoredBecause(call.call);
    }
  }

  static bool Has(const std::shared_ptr<const NodeMap>& nodes, PathId id) {
    return nodes == nullptr || nodes->contains(id);
  }
  // Also where it is not.
  static bool IsLeafIn(const std::shared_ptr<const NodeMap>& nodes, PathId id) {
    if (nodes == nullptr) return true;
    const auto found = nodes->find(id);
    return found == nodes->end() ||
           IsLeaf(static_cast<request::NodeKind>(found->second.kind));
  }

  // Those of the changed paths that are in an object or list which came or went
  // as a whole and for which no mask is proposed. They say nothing that it does
  // not say.
  absl::flat_hash_set<PathId> Inside(const trace::TraceReader& reader,
                                     const ReadCall& call) const {
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

  void Miss(const trace::TraceReader& reader, const ReadCall& call) {
    Told told;
    told.reason = reason_.first;
    told.seconds = absl::ToDoubleSeconds(call.call.cost);
    if (reason_.second) {
      const absl::flat_hash_set<PathId> inside = Inside(reader, call);
      for (const PathId id : call.changed) {
        if (inside.contains(id)) continue;
        if (in_force_->Hide(reader, call.call.function, id)) continue;
        const absl::string_view path = reader.PathOf(id);
        auto [changed, added] = learned_.changed.try_emplace(id);
        if (added) changed->second.general = General(path);
        const bool came_or_went = Has(call.nodes, id) != Has(before_, id);
        changed->second.changed |= !came_or_went;
        changed->second.leaf &=
            IsLeafIn(call.nodes, id) && IsLeafIn(before_, id);
        std::string writer;
        if (call.writers != nullptr) {
          const auto found = call.writers->find(request::ObjectOf(path));
          if (found != call.writers->end()) writer = found->second.manager;
        }
        told.paths.push_back(changed->second.general);
        told.writers.push_back(std::move(writer));
      }
      // An older or newer record may say more than the nodes.
      if (told.paths.empty() && !call.call.detail.empty()) {
        told.paths.push_back(General(call.call.detail));
        told.writers.emplace_back();
      }
    }
    told.pathless =
        reason_.second && call.nodes == nullptr && told.paths.empty();
    told_.push_back(std::move(told));
  }

  void Sum() {
    Analysis& analysis = learned_.analysis;
    const size_t from = options_.last > 0 && options_.last < told_.size()
                            ? told_.size() - options_.last
                            : 0;
    std::map<std::string, Share> reasons, sections, writers;
    struct Path {
      PathShare share;
      std::map<std::string, uint64_t> writers;
    };
    std::map<std::string, Path> paths;
    const auto add = [](std::map<std::string, Share>* to,
                        const std::string& name, double seconds) {
      Share& share = (*to)[name];
      share.name = name;
      ++share.misses;
      share.seconds += seconds;
    };
    for (size_t i = from; i < told_.size(); ++i) {
      const Told& told = told_[i];
      ++analysis.misses;
      analysis.seconds += told.seconds;
      if (told.pathless) ++analysis.pathless;
      add(&reasons, told.reason, told.seconds);
      // Each counts once a miss.
      std::set<std::string> seen_paths, seen_sections, seen_writers;
      for (size_t j = 0; j < told.paths.size(); ++j) {
        const std::string& name = told.paths[j];
        if (!told.writers[j].empty()) ++paths[name].writers[told.writers[j]];
        seen_paths.insert(name);
        seen_sections.insert(request::SectionOf(name));
        if (!told.writers[j].empty()) seen_writers.insert(told.writers[j]);
      }
      for (const std::string& name : seen_paths) {
        ++paths[name].share.misses;
        paths[name].share.seconds += told.seconds;
      }
      for (const auto& one : seen_sections) add(&sections, one, told.seconds);
      for (const auto& one : seen_writers) add(&writers, one, told.seconds);
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
    const auto take = [](std::map<std::string, Share>* shares,
                         std::vector<Share>* to) {
      for (auto& one : *shares) to->push_back(std::move(one.second));
      ByMisses(to);
    };
    take(&reasons, &analysis.reasons);
    take(&sections, &analysis.sections);
    take(&writers, &analysis.writers);
    ByMisses(&analysis.paths);
  }

  const AnalysisOptions& options_;
  InForce* const in_force_;
  absl::flat_hash_map<std::string, Past> past_;
  std::pair<std::string, bool> reason_;    // of the call that is read
  std::shared_ptr<const NodeMap> before_;  // of the request before it
  std::vector<Told> told_;
  Learned learned_;
};

// The masks that could help, with the paths that they hide.
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

// One call, as any set of the candidates sees it: paths that the same
// candidates hide are one atom, and a request's hash under a set is the sum of
// its nodes' less that of the atoms that the set hides.
struct Seen {
  uint32_t whose;
  bool miss;     // it went to the function
  bool counted;  // and is among those that are told of
  bool kept;
  absl::Time arrived;
  absl::Time answered;
  absl::Duration lives;
  absl::Time served_until;  // of a hit
  double seconds;
  uint64_t all = 0;
  std::vector<uint64_t> atoms;
};

class SecondReading {
 public:
  SecondReading(const AnalysisOptions& options,
                std::vector<Candidate> candidates, InForce* in_force)
      : options_(options),
        candidates_(std::move(candidates)),
        in_force_(in_force) {}

  void Read(trace::TraceReader* reader, uint64_t misses_before_the_last) {
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
    // A composite's last request, so that only what changed is added up.
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
        const uint64_t hash = trace::NodeHash(path, node);
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

  struct Saved {
    uint64_t misses = 0;
    double seconds = 0;
  };
  // What `set` (indices of candidates) would have made hits of.
  Saved Try(const std::set<size_t>& set) const {
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

  std::vector<MaskShare> Choose() const {
    // Without any mask: what other settings of lifetimes would save by
    // themselves is not the masks' merit.
    const Saved none = Try({});
    std::vector<Saved> alone;
    for (size_t i = 0; i < candidates_.size(); ++i) alone.push_back(Try({i}));
    std::vector<MaskShare> chosen;
    std::set<size_t> set;
    Saved so_far = none;
    while (static_cast<int>(chosen.size()) < options_.most_masks) {
      const std::vector<size_t> best = Best(set, so_far);
      if (best.empty()) break;
      for (const size_t one : best) {
        set.insert(one);
        const Saved now = Try(set);
        MaskShare share;
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

 private:
  static constexpr int kMostPairs = 2000;

  Saved With(std::set<size_t> set, const std::vector<size_t>& more) const {
    set.insert(more.begin(), more.end());
    return Try(set);
  }

  // Those that save most beside `set`, which saves `so_far`: one; where no one
  // saves anything, two, or the versions of all objects with or without times,
  // since one moment may have several objects written; or else as many as it
  // takes. Empty: nothing does.
  std::vector<size_t> Best(const std::set<size_t>& set,
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
    // Without those that save nothing more.
    for (size_t i = best.size(); i-- > 0;) {
      std::vector<size_t> fewer = best;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (With(set, fewer).misses >= most) best = std::move(fewer);
    }
    return best;
  }

  const AnalysisOptions& options_;
  const std::vector<Candidate> candidates_;
  InForce* const in_force_;
  absl::flat_hash_map<PathId, std::vector<size_t>> covers_;
  std::vector<std::vector<size_t>> atom_covers_;
  std::vector<Seen> calls_;
  mutable int pairs_ = 0;
};

}  // namespace

absl::StatusOr<Analysis> Analyze(const OpenTrace& open,
                                 const AnalysisOptions& options) {
  auto reader = open();
  if (!reader.ok()) return reader.status();
  const auto masks = trace::MasksInForce::Of(
      options.in_force ? (*reader)->header() : trace::TraceHeader(),
      options.masked);
  if (!masks.ok()) return masks.status();
  InForce in_force(*masks);
  Learned learned = FirstReading(options, &in_force).Read(reader->get());
  Analysis analysis = std::move(learned.analysis);
  if (!analysis.has_paths || learned.changed.empty()) return analysis;
  SecondReading second(options, CandidatesOf(**reader, learned.changed),
                       &in_force);
  uint64_t all = 0;
  if (options.last > 0) {
    all = analysis.calls - analysis.hits - analysis.bypasses;
  }
  auto again = open();
  if (!again.ok()) return again.status();
  second.Read(again->get(), all > options.last ? all - options.last : 0);
  analysis.masks = second.Choose();
  return analysis;
}

std::string TooShortForTimers(absl::Duration span, absl::Duration longest_ttl) {
  if (span >= longest_ttl) return "";
  return absl::StrCat(
      "the trace covers ", FormatGoDuration(absl::Trunc(span, kShown)),
      ", less than the longest TTL in it (",
      FormatGoDuration(absl::Trunc(longest_ttl, kShown)),
      "): it is too short for timers, and does not show what happens when a "
      "TTL is over");
}

absl::StatusOr<std::vector<Difference>> Compare(absl::string_view a,
                                                absl::string_view b) {
  const request::FingerprintSecret secret =
      request::FingerprintSecret::Random();
  request::RequestNodes left(secret), right(secret);
  if (!left.Read({a})) {
    return absl::InvalidArgumentError("the first is no RunFunctionRequest");
  }
  if (!right.Read({b})) {
    return absl::InvalidArgumentError("the second is no RunFunctionRequest");
  }
  std::map<std::string, std::string> writers;
  for (const request::ObjectWriter& one : request::WritersOf(right.nodes())) {
    writers[one.object] = one.manager;
  }
  std::vector<Difference> differences;
  const auto add = [&](const std::string& path, absl::string_view change,
                       request::NodeKind kind) {
    Difference difference;
    difference.path = path;
    difference.section = request::SectionOf(path);
    difference.change = std::string(change);
    const auto writer = writers.find(request::ObjectOf(path));
    if (writer != writers.end()) difference.writer = writer->second;
    difference.allowed = !request::MaskFor(path).empty();
    difference.mask = ProposedMask(path, IsLeaf(kind));
    differences.push_back(std::move(difference));
  };
  absl::flat_hash_map<uint64_t, size_t> before;
  for (size_t i = 0; i < left.nodes().size(); ++i) {
    before.emplace(left.nodes()[i].path, i);
  }
  for (size_t i = 0; i < right.nodes().size(); ++i) {
    const request::Node& node = right.nodes()[i];
    const auto found = before.find(node.path);
    if (found == before.end()) {
      if (node.kind != request::NodeKind::kMap) {
        add(right.Spell(i), "added", node.kind);
      }
      continue;
    }
    const request::Node& old = left.nodes()[found->second];
    if (old.kind != node.kind || old.value != node.value) {
      add(right.Spell(i), "changed", IsLeaf(old.kind) ? node.kind : old.kind);
    }
    before.erase(found);
  }
  for (size_t i = 0; i < left.nodes().size(); ++i) {
    const request::Node& node = left.nodes()[i];
    const auto found = before.find(node.path);
    if (found == before.end() || found->second != i ||
        node.kind == request::NodeKind::kMap) {
      continue;
    }
    add(left.Spell(i), "removed", node.kind);
  }
  return differences;
}

}  // namespace fncache::insight::explain
