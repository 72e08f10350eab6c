// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/analysis.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "cache/key/field_path.h"
#include "cache/key/mask.h"
#include "insight/explain/proposed_mask.h"
#include "insight/request/compare.h"
#include "insight/request/identity.h"
#include "insight/request/nodes.h"

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

bool IsHit(Outcome outcome) {
  return outcome == Outcome::kHit || outcome == Outcome::kStale ||
         outcome == Outcome::kCollapsed;
}

// Equal for calls of one composite only.
std::string WhoseOf(const request::CompositeName& name) {
  return absl::StrCat(name.kind, "\n", name.object_namespace, "\n", name.name,
                      "\n", name.uid);
}

// Requests that follow one another.
std::string StreamOf(const ReadCall& call) {
  if (call.stream != 0) return absl::StrCat(call.stream);
  return absl::StrCat(call.call.function, "\n", call.call.step, "\n",
                      WhoseOf(call.call.composite));
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

// How a mask is tried: by the paths of the reading that it hides.
struct Candidate {
  std::string name;
  absl::flat_hash_set<PathId> hides;
  bool whole = false;
};

// What the first reading learns.
struct Learned {
  Analysis analysis;
  // Paths that ever changed, with what is said of them.
  absl::flat_hash_map<PathId, std::string> general;
};

class FirstReading {
 public:
  explicit FirstReading(const AnalysisOptions& options) : options_(options) {}

  Learned Read(trace::TraceReader* reader) {
    ReadCall call;
    absl::Time first = absl::InfiniteFuture(), last = absl::InfinitePast();
    std::set<std::string> functions, composites;
    Analysis& analysis = learned_.analysis;
    while (reader->Next(&call)) {
      Follow(call);
      if (!Wanted(call.call, options_)) continue;
      ++analysis.calls;
      first = std::min(first, call.call.arrived);
      last = std::max(last, call.call.arrived);
      functions.insert(call.call.function);
      composites.insert(WhoseOf(call.call.composite));
      if (call.nodes != nullptr) analysis.has_paths = true;
      if (IsHit(call.call.outcome)) {
        ++analysis.hits;
      } else if (call.call.outcome == Outcome::kBypass) {
        ++analysis.bypasses;
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
      absl::Time until;
      absl::Duration slack;
    };
    absl::flat_hash_map<uint64_t, Kept> kept;
    std::string not_stored;  // why the last answer was not kept; "" if it was
    uint64_t hash = 0;       // of the last request
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

  static uint64_t RequestHash(const ReadCall& call) {
    if (call.nodes == nullptr) return call.call.key ? call.call.key->low : 0;
    uint64_t hash = 0;
    for (const auto& [path, node] : *call.nodes)
      hash += trace::NodeHash(path, node);
    return hash;
  }

  void Follow(const ReadCall& call) {
    Past& past = past_[StreamOf(call)];
    const uint64_t hash = RequestHash(call);
    reason_ = ReasonOf(call, past, hash);
    if (IsHit(call.call.outcome) || call.call.outcome == Outcome::kBypass) {
      past.any = true;
      return;
    }
    past.any = true;
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

  void Miss(const trace::TraceReader& reader, const ReadCall& call) {
    Told told;
    told.reason = reason_.first;
    told.seconds = absl::ToDoubleSeconds(call.call.cost);
    if (reason_.second) {
      for (const PathId id : call.changed) {
        const absl::string_view path = reader.PathOf(id);
        auto [general, added] = learned_.general.try_emplace(id);
        if (added) general->second = General(path);
        std::string writer;
        if (call.writers != nullptr) {
          const auto found = call.writers->find(request::ObjectOf(path));
          if (found != call.writers->end()) writer = found->second.manager;
        }
        told.paths.push_back(general->second);
        told.writers.push_back(std::move(writer));
      }
      // An older or newer record may say more than the nodes.
      if (call.changed.empty() && !call.call.detail.empty()) {
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
      path.share.mask =
          cache::key::MaskSet::Parse({name}).ok() ? name : std::string();
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
  absl::flat_hash_map<std::string, Past> past_;
  std::pair<std::string, bool> reason_;
  std::vector<Told> told_;
  Learned learned_;
};

// The masks that could help, with the paths that each hides: those of paths
// that changed, and the named sets.
std::vector<Candidate> CandidatesOf(
    const trace::TraceReader& reader,
    const absl::flat_hash_map<PathId, std::string>& general) {
  std::vector<Candidate> candidates;
  const auto add = [&](const std::string& name,
                       const cache::key::MaskSet& masks) {
    Candidate candidate;
    candidate.name = name;
    const request::MaskMatcher matcher(masks);
    for (const auto& one : general) {
      if (matcher.Masks(reader.PathOf(one.first))) {
        candidate.hides.insert(one.first);
      }
    }
    if (!candidate.hides.empty()) candidates.push_back(std::move(candidate));
  };
  for (const cache::key::NamedMaskSet& set : cache::key::NamedMaskSets()) {
    add(set.name, *cache::key::MaskSet::Parse({set.name}));
  }
  std::set<std::string> names;
  for (const auto& one : general) names.insert(one.second);
  for (const std::string& name : names) {
    const auto masks = cache::key::MaskSet::Parse({name});
    if (masks.ok()) add(name, *masks);
  }
  for (Candidate& one : candidates) one.whole = HidesWholeSection(one.name);
  return candidates;
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
  double seconds;
  uint64_t all = 0;
  std::vector<uint64_t> atoms;
};

class SecondReading {
 public:
  SecondReading(const AnalysisOptions& options,
                std::vector<Candidate> candidates)
      : options_(options), candidates_(std::move(candidates)) {}

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
      seen.seconds = absl::ToDoubleSeconds(call.call.cost);
      Last& last = lasts[seen.whose];
      const auto add = [&](PathId path, const KeptNode& node, bool plus) {
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
      if (!call.miss) continue;
      uint64_t hash = call.all;
      for (size_t i = 0; i < hidden.size(); ++i) {
        if (hidden[i] != 0) hash -= call.atoms[i];
      }
      const auto key = std::make_pair(call.whose, hash);
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
    bool whole = false;  // those are tried, too
    const auto out = [&](size_t i) {
      return set.count(i) > 0 || (candidates_[i].whole && !whole);
    };
    while (static_cast<int>(chosen.size()) < options_.most_masks) {
      size_t best = candidates_.size();
      Saved best_saved = so_far;
      size_t best_pair = candidates_.size();
      for (size_t i = 0; i < candidates_.size(); ++i) {
        if (out(i)) continue;
        std::set<size_t> with = set;
        with.insert(i);
        const Saved saved = Try(with);
        if (saved.misses > best_saved.misses) {
          best_saved = saved;
          best = i;
        }
      }
      // Two that help together only: a write that changes two things.
      for (size_t i = 0; best == candidates_.size() && i < candidates_.size();
           ++i) {
        for (size_t j = i + 1; j < candidates_.size() && pairs_ < kMostPairs;
             ++j) {
          if (out(i) || out(j)) continue;
          ++pairs_;
          std::set<size_t> with = set;
          with.insert({i, j});
          const Saved saved = Try(with);
          if (saved.misses > best_saved.misses) {
            best_saved = saved;
            best = i;
            best_pair = j;
          }
        }
      }
      if (best == candidates_.size()) {
        if (whole) break;
        whole = true;
        pairs_ = 0;
        continue;
      }
      for (const size_t one : {best, best_pair}) {
        if (one == candidates_.size()) continue;
        set.insert(one);
        const Saved now = Try(set);
        MaskShare share;
        share.mask = candidates_[one].name;
        share.whole = candidates_[one].whole;
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

  const AnalysisOptions& options_;
  const std::vector<Candidate> candidates_;
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
  Learned learned = FirstReading(options).Read(reader->get());
  Analysis analysis = std::move(learned.analysis);
  if (!analysis.has_paths || learned.general.empty()) return analysis;
  SecondReading second(options, CandidatesOf(**reader, learned.general));
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
  const auto add = [&](const std::string& path, absl::string_view change) {
    Difference difference;
    difference.path = path;
    difference.section = request::SectionOf(path);
    difference.change = std::string(change);
    const auto writer = writers.find(request::ObjectOf(path));
    if (writer != writers.end()) difference.writer = writer->second;
    difference.mask = request::MaskFor(path);
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
      if (node.kind != request::NodeKind::kMap) add(right.Spell(i), "added");
      continue;
    }
    const request::Node& old = left.nodes()[found->second];
    if (old.kind != node.kind || old.value != node.value) {
      add(right.Spell(i), "changed");
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
    add(left.Spell(i), "removed");
  }
  return differences;
}

}  // namespace fncache::insight::explain
