// SPDX-License-Identifier: Apache-2.0
#include "insight/whatif/recording.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cache/key/digest.h"
#include "insight/request/compare.h"
#include "xxhash.h"

namespace fncache::insight::whatif {
namespace {

using cache::key::Key;
using trace::NodeMap;
using trace::Outcome;
using trace::PathId;
using trace::ReadCall;
using trace::TracedCall;

// The runner spreads requeues by a tenth; a worker may be late (nanoseconds).
constexpr double kSpread = 0.1;
constexpr int64_t kLate = 50'000'000;
// Nanoseconds. Where the trace does not name pipelines, a longer pause
// separates two.
constexpr int64_t kPause = 500'000'000;
constexpr size_t kMostNames = 0xffff, kMostPhases = 0xff;

// The latest time in a damaged trace, so that sums of times do not overflow.
constexpr int64_t kLatest = std::numeric_limits<int64_t>::max() / 8 * 3;

uint32_t Micros(absl::Duration duration) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>(absl::ToInt64Microseconds(duration), 0,
                          std::numeric_limits<uint32_t>::max()));
}

uint32_t Bytes(uint64_t bytes) {
  return static_cast<uint32_t>(
      std::min<uint64_t>(bytes, std::numeric_limits<uint32_t>::max()));
}

int64_t Nanos(const absl::optional<absl::Duration>& duration) {
  return duration.has_value() ? absl::ToInt64Nanoseconds(*duration)
                              : Call::kNone;
}

// Numbers for texts, in the order in which they came.
class Names {
 public:
  uint32_t Of(const std::string& name) {
    if (!names_.empty() && names_[last_] == name) return last_;
    const auto [at, added] =
        numbers_.try_emplace(name, static_cast<uint32_t>(names_.size()));
    if (added) names_.push_back(name);
    last_ = at->second;
    return last_;
  }
  size_t size() const { return names_.size(); }
  std::vector<std::string> Take() { return std::move(names_); }

 private:
  absl::flat_hash_map<std::string, uint32_t> numbers_;
  std::vector<std::string> names_;
  uint32_t last_ = 0;
};

// Keys under sets of masks, of requests whose nodes are known. They are equal
// where the daemon's would be. With nodes alone this holds for requests of one
// composite, since digests of values are the composite's own. Messages, which a
// trace has at level full, have the keys that the daemon would make.
class MaskedKeys {
 public:
  explicit MaskedKeys(const std::vector<cache::key::MaskSet>& masks) {
    for (const auto& set : masks) {
      matchers_.emplace_back(set);
      digesters_.push_back(std::make_unique<cache::key::Digester>(
          cache::key::Seed{}, cache::key::KeyScope{}, set));
    }
  }
  size_t sets() const { return matchers_.size(); }

  // Adds one key for each set to `keys`. The call has nodes.
  void Of(const trace::TraceReader& reader, const ReadCall& call,
          std::vector<Key>* keys) {
    if (call.request_message.empty()) return OfNodes(reader, call, keys);
    const uint64_t whose =
        XXH3_64bits_withSeed(call.call.generation.data(),
                             call.call.generation.size(), 0) ^
        XXH3_64bits(call.call.method.data(), call.call.method.size()) ^
        XXH3_64bits_withSeed(call.call.function.data(),
                             call.call.function.size(), 1);
    for (const auto& digester : digesters_) {
      Key key = digester->Compute({call.request_message}, &scratch_).key;
      key.high ^= whose;
      keys->push_back(key);
    }
  }

 private:
  struct Last {
    std::shared_ptr<const NodeMap> nodes;
    std::vector<uint64_t> sums;  // of the nodes that are not masked
  };

  void OfNodes(const trace::TraceReader& reader, const ReadCall& call,
               std::vector<Key>* keys) {
    Last& last = lasts_[call.stream];
    const auto add = [&](PathId path, const request::KeptNode& node,
                         bool plus) {
      const uint64_t hash = trace::NodeHash(path, node);
      const std::vector<bool>& hidden = HiddenBy(reader, path);
      for (size_t i = 0; i < sets(); ++i) {
        if (!hidden[i]) last.sums[i] += plus ? hash : -hash;
      }
    };
    if (last.nodes == nullptr || !call.has_previous) {
      last.sums.assign(sets(), 0);
      for (const auto& [path, node] : *call.nodes) add(path, node, true);
    } else if (last.nodes != call.nodes) {
      for (const PathId path : call.changed) {
        const auto before = last.nodes->find(path);
        if (before != last.nodes->end()) add(path, before->second, false);
        const auto now = call.nodes->find(path);
        if (now != call.nodes->end()) add(path, now->second, true);
      }
    }
    last.nodes = call.nodes;
    const uint64_t whose =
        XXH3_64bits_withSeed(call.call.generation.data(),
                             call.call.generation.size(), call.stream) ^
        XXH3_64bits(call.call.method.data(), call.call.method.size());
    for (size_t i = 0; i < sets(); ++i) {
      const uint64_t text[] = {whose, last.sums[i]};
      const XXH128_hash_t hash = XXH3_128bits(text, sizeof text);
      keys->push_back({hash.high64, hash.low64});
    }
  }

  const std::vector<bool>& HiddenBy(const trace::TraceReader& reader,
                                    PathId path) {
    if (path >= hidden_.size()) hidden_.resize(reader.paths());
    std::vector<bool>& hidden = hidden_[path];
    if (hidden.empty()) {
      for (const auto& matcher : matchers_) {
        hidden.push_back(matcher.Masks(reader.PathOf(path)));
      }
    }
    return hidden;
  }

  std::vector<request::MaskMatcher> matchers_;
  std::vector<std::unique_ptr<cache::key::Digester>> digesters_;
  cache::key::DigestScratch scratch_;
  std::vector<std::vector<bool>> hidden_;  // by path, then set
  absl::flat_hash_map<uint64_t, Last> lasts_;
};

// Fields that a call does not know of the function, because a cache answered
// it. They are taken from neighbouring calls of the same composite and step.
struct Unknown {
  bool ttl = false;
  bool cost = false;
};

class Reading {
 public:
  Reading(trace::TraceReader* reader,
          const std::vector<cache::key::MaskSet>& masks)
      : reader_(reader), keys_(masks) {}

  absl::StatusOr<Recording> Run() {
    recording_.header = reader_->header();
    recording_.masked.resize(keys_.sets());
    ReadCall read;
    while (reader_->Next(&read)) {
      if (recording_.calls.size() == std::numeric_limits<int32_t>::max()) {
        return absl::OutOfRangeError("holds more than 2^31 calls");
      }
      Take(read);
    }
    recording_.dropped = reader_->dropped();
    recording_.damaged = reader_->damaged();
    if (functions_.size() > kMostNames || steps_.size() > kMostNames ||
        phases_.size() > kMostPhases) {
      return absl::OutOfRangeError(
          "names more than 65,535 functions or steps, or 255 phases");
    }
    Sort();
    Learn(/*forwards=*/true);
    Learn(/*forwards=*/false);
    FillRest();
    recording_.functions = functions_.Take();
    recording_.steps = steps_.Take();
    recording_.phases = phases_.Take();
    recording_.composites = composites_.Take();
    if (!NumberSeries()) {
      return absl::OutOfRangeError("names more than 65,535 steps of functions");
    }
    Count();
    MakePipelines();
    return std::move(recording_);
  }

 private:
  enum class Trigger : uint8_t { kUnknown, kTimer, kOther };

  void Take(const ReadCall& read) {
    const TracedCall& traced = read.call;
    Call call;
    call.arrived =
        std::clamp<int64_t>(absl::ToUnixNanos(traced.arrived), 0, kLatest);
    call.keyed = traced.key.has_value();
    if (call.keyed) call.key = *traced.key;
    call.told = Nanos(traced.told_ttl);
    call.ttl = Nanos(traced.function_ttl);
    call.age = absl::ToInt64Nanoseconds(traced.age);
    call.cost = Micros(traced.cost);
    call.latency = Micros(traced.latency);
    call.request_bytes = Bytes(traced.request_bytes);
    call.response_bytes = Bytes(traced.response_bytes);
    call.outcome = traced.outcome;
    call.fatal = traced.fatal;
    call.secrets = traced.secrets;
    call.failed = traced.status != 0;
    call.function = static_cast<uint16_t>(functions_.Of(traced.function));
    call.step = static_cast<uint16_t>(steps_.Of(traced.step));
    call.phase = static_cast<uint8_t>(phases_.Of(traced.phase));
    const request::CompositeName& whose = traced.composite;
    call.composite = composites_.Of(
        whose.known() ? absl::StrCat(whose.kind, "/", whose.object_namespace,
                                     "/", whose.name, "/", whose.uid)
                      : std::string());
    Unknown unknown;
    const bool from_cache = traced.outcome == Outcome::kHit ||
                            traced.outcome == Outcome::kStaleHit ||
                            traced.outcome == Outcome::kCollapsed;
    if (from_cache) {
      unknown.ttl = call.ttl == Call::kNone && call.told != Call::kNone;
      unknown.cost = call.cost == 0 || traced.outcome == Outcome::kCollapsed;
    }
    unknown_.push_back(unknown);
    // Calls of one step, or of one stream if steps are unknown.
    series_.push_back(
        series_numbers_
            .try_emplace(
                std::make_pair((uint64_t{call.composite} << 32) |
                                   (uint64_t{call.function} << 16) | call.step,
                               traced.step.empty() ? read.stream : 0),
                static_cast<uint32_t>(series_numbers_.size()))
            .first->second);
    pipeline_ids_.push_back(traced.pipeline);
    triggers_.push_back(traced.trigger == "timer" ? Trigger::kTimer
                        : traced.trigger.empty()  ? Trigger::kUnknown
                                                  : Trigger::kOther);
    NoteBeginning(read, call);
    if (keys_.sets() > 0) TakeKeys(read, call);
    recording_.has_nodes |= read.nodes != nullptr;
    if (call.keyed && read.nodes == nullptr) ++recording_.without_nodes;
    recording_.calls.push_back(call);
  }

  // Whether the composite begins in this trace: its first call has no composed
  // resource.
  void NoteBeginning(const ReadCall& read, const Call& call) {
    if (call.composite < begins_.size()) return;
    begins_.resize(call.composite + 1);
    if (read.nodes == nullptr) return;
    begins_[call.composite] = std::none_of(
        read.nodes->begin(), read.nodes->end(), [this](const auto& node) {
          return absl::StartsWith(reader_->PathOf(node.first),
                                  "observed.resources");
        });
  }

  void TakeKeys(const ReadCall& read, const Call& call) {
    keys_here_.clear();
    if (read.nodes != nullptr) {
      keys_.Of(*reader_, read, &keys_here_);
    } else {
      keys_here_.assign(keys_.sets(), call.key);
    }
    for (size_t i = 0; i < keys_.sets(); ++i) {
      recording_.masked[i].push_back(keys_here_[i]);
    }
  }

  // Records were written when calls ended.
  void Sort() {
    std::vector<uint32_t> order(recording_.calls.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(
        order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
          return recording_.calls[a].arrived < recording_.calls[b].arrived;
        });
    const auto apply = [&order](auto* all) {
      std::decay_t<decltype(*all)> sorted;
      sorted.reserve(all->size());
      for (const uint32_t at : order) sorted.push_back((*all)[at]);
      *all = std::move(sorted);
    };
    apply(&recording_.calls);
    apply(&unknown_);
    apply(&series_);
    apply(&pipeline_ids_);
    apply(&triggers_);
    for (auto& keys : recording_.masked) apply(&keys);
  }

  void Learn(bool forwards) {
    struct Known {
      bool ttl_known = false, cost_known = false;
      int64_t ttl = 0;
      uint32_t cost = 0;
    };
    std::vector<Known> known(series_numbers_.size());
    const size_t count = recording_.calls.size();
    for (size_t n = 0; n < count; ++n) {
      const size_t i = forwards ? n : count - 1 - n;
      Call& call = recording_.calls[i];
      Known& here = known[series_[i]];
      if (call.failed) continue;
      if (!unknown_[i].ttl) {
        here.ttl_known = true;
        here.ttl = call.ttl;
      } else if (here.ttl_known) {
        call.ttl = here.ttl;
        unknown_[i].ttl = false;
      }
      if (!unknown_[i].cost) {
        here.cost_known = true;
        here.cost = call.cost;
      } else if (here.cost_known) {
        call.cost = here.cost;
        unknown_[i].cost = false;
      }
    }
  }

  // Fields that no call of the series knows: the averages of the function's
  // calls. A TTL is taken as the caller got it.
  void FillRest() {
    std::vector<std::pair<double, uint64_t>> costs(functions_.size());
    for (size_t i = 0; i < recording_.calls.size(); ++i) {
      const Call& call = recording_.calls[i];
      if (unknown_[i].cost || call.failed) continue;
      costs[call.function].first += call.cost;
      ++costs[call.function].second;
    }
    for (size_t i = 0; i < recording_.calls.size(); ++i) {
      Call& call = recording_.calls[i];
      if (unknown_[i].ttl) call.ttl = call.told;
      const auto& [sum, count] = costs[call.function];
      if (unknown_[i].cost && count > 0) {
        call.cost = static_cast<uint32_t>(sum / static_cast<double>(count));
      }
    }
    series_ = {};
    unknown_ = {};
  }

  bool NumberSeries() {
    absl::flat_hash_map<std::pair<uint16_t, uint16_t>, uint16_t> numbers;
    for (Call& call : recording_.calls) {
      const auto series = std::make_pair(call.function, call.step);
      const auto [at, added] = numbers.try_emplace(
          series, static_cast<uint16_t>(recording_.series.size()));
      if (added) recording_.series.push_back(series);
      if (recording_.series.size() > kMostNames) return false;
      call.series = at->second;
    }
    return true;
  }

  void Count() {
    const std::vector<std::string>& phases = recording_.phases;
    recording_.has_phases =
        std::find(phases.begin(), phases.end(), "measure") != phases.end();
    recording_.begun = recording_.measured_from =
        std::numeric_limits<int64_t>::max();
    for (Call& call : recording_.calls) {
      const std::string& phase = phases[call.phase];
      call.measured = !recording_.has_phases || phase == "measure";
      if (phase != "settle") {
        recording_.begun = std::min(recording_.begun, call.arrived);
      }
      if (call.measured) {
        recording_.measured_from =
            std::min(recording_.measured_from, call.arrived);
      }
    }
  }

  // Guesses the pipeline of a call where the trace does not name it: its
  // composite's last one, unless there was a pause or a repeated request.
  uint32_t Guess(const Call& call) {
    Open& open = open_[call.composite];
    const auto begin = [&] {
      open.seen.clear();
      open.pipeline = NewPipeline(call);
    };
    if (call.composite == unknown_composite_) return NewPipeline(call);
    if (open.pipeline == Pipeline::kNone || call.arrived - open.end > kPause) {
      begin();
    }
    const uint64_t what = call.key.low ^ (uint64_t{call.function} << 48);
    if (!open.seen.insert(what).second) {
      begin();
      open.seen.insert(what);
    }
    open.end = std::max(open.end, call.arrived + int64_t{call.latency} * 1000);
    return open.pipeline;
  }

  uint32_t NewPipeline(const Call& call) {
    Pipeline pipeline;
    pipeline.start = call.arrived;
    pipeline.composite = call.composite;
    recording_.pipelines.push_back(pipeline);
    return static_cast<uint32_t>(recording_.pipelines.size() - 1);
  }

  void MakePipelines() {
    for (size_t i = 0; i < recording_.composites.size(); ++i) {
      if (recording_.composites[i].empty()) {
        unknown_composite_ = static_cast<uint32_t>(i);
      }
    }
    open_.resize(recording_.composites.size());
    absl::flat_hash_map<std::pair<uint64_t, uint32_t>, uint32_t> by_id;
    std::vector<Trigger> triggers;  // of the pipelines
    for (size_t i = 0; i < recording_.calls.size(); ++i) {
      Call& call = recording_.calls[i];
      if (pipeline_ids_[i] == 0) {
        call.pipeline = Guess(call);
      } else {
        const auto [at, added] = by_id.try_emplace(
            std::make_pair(pipeline_ids_[i], call.composite), 0);
        if (added) at->second = NewPipeline(call);
        call.pipeline = at->second;
      }
      if (triggers.size() < recording_.pipelines.size()) {
        triggers.push_back(triggers_[i]);
      }
      Pipeline& pipeline = recording_.pipelines[call.pipeline];
      ++pipeline.calls;
      pipeline.end =
          std::max(pipeline.end, call.arrived + int64_t{call.latency} * 1000);
      pipeline.failed |= call.failed || call.fatal;
      pipeline.measured |= call.measured;
      pipeline.settling |= recording_.phases[call.phase] == "settle";
      if (call.told > 0 &&
          (pipeline.told == Call::kNone || call.told < pipeline.told)) {
        pipeline.told = call.told;
      }
    }
    pipeline_ids_ = {};
    triggers_ = {};
    open_ = {};
    uint32_t first = 0;
    for (Pipeline& pipeline : recording_.pipelines) {
      pipeline.first = first;
      first += pipeline.calls;
      pipeline.calls = 0;
      if (pipeline.failed) pipeline.told = Call::kNone;
      recording_.until = std::max(recording_.until, pipeline.start);
    }
    recording_.pipeline_calls.resize(recording_.calls.size());
    for (uint32_t i = 0; i < recording_.calls.size(); ++i) {
      Pipeline& pipeline = recording_.pipelines[recording_.calls[i].pipeline];
      recording_.pipeline_calls[pipeline.first + pipeline.calls++] = i;
    }
    Link(triggers);
    MarkCreation();
  }

  void MarkCreation() {
    std::vector<bool> over(recording_.composites.size());
    for (const Pipeline& pipeline : recording_.pipelines) {
      if (pipeline.composite == unknown_composite_) continue;
      if (pipeline.timer) over[pipeline.composite] = true;
      if (over[pipeline.composite] || !begins_[pipeline.composite]) continue;
      for (uint32_t i = 0; i < pipeline.calls; ++i) {
        recording_.calls[recording_.pipeline_calls[pipeline.first + i]]
            .creation = true;
      }
    }
  }

  // Links each pipeline to the next, with the cause.
  void Link(const std::vector<Trigger>& triggers) {
    std::vector<Pipeline>& all = recording_.pipelines;
    std::vector<uint32_t> last(recording_.composites.size(), Pipeline::kNone);
    std::vector<uint32_t> epoch(recording_.composites.size(), Pipeline::kNone);
    for (uint32_t i = 0; i < all.size(); ++i) {
      Pipeline& pipeline = all[i];
      pipeline.repeats = i;
      if (pipeline.composite == unknown_composite_) continue;
      const uint32_t before = std::exchange(last[pipeline.composite], i);
      if (before != Pipeline::kNone) {
        all[before].next = i;
        pipeline.timer = triggers[i] == Trigger::kTimer ||
                         (triggers[i] == Trigger::kUnknown &&
                          IsTimer(all[before], pipeline));
        // A load settles composites at once, whatever TTLs say.
        if (pipeline.settling) pipeline.timer = false;
      }
      uint32_t& since = epoch[pipeline.composite];
      if (!pipeline.timer) {
        since = i;
      } else if (since != Pipeline::kNone && all[since].repeats == since) {
        all[since].repeats = i;
      }
    }
  }

  static bool IsTimer(const Pipeline& before, const Pipeline& pipeline) {
    if (before.told == Call::kNone) return false;
    const auto told = static_cast<double>(before.told);
    const auto gap = static_cast<double>(pipeline.start - before.end);
    return gap >= (1 - kSpread) * told - kLate &&
           gap <= (1 + kSpread) * told + kLate;
  }

  struct Open {
    uint32_t pipeline = Pipeline::kNone;
    int64_t end = 0;
    absl::flat_hash_set<uint64_t> seen;
  };

  trace::TraceReader* const reader_;
  MaskedKeys keys_;
  std::vector<Key> keys_here_;
  Recording recording_;
  Names functions_, steps_, phases_, composites_;
  std::vector<bool> begins_;  // by composite
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, uint32_t> series_numbers_;
  // One for each call.
  std::vector<Unknown> unknown_;
  std::vector<uint32_t> series_;
  std::vector<uint64_t> pipeline_ids_;
  std::vector<Trigger> triggers_;
  // By composite: the pipeline that may continue.
  std::vector<Open> open_;
  uint32_t unknown_composite_ = Pipeline::kNone;
};

}  // namespace

double Recording::Seconds() const {
  return std::max(1e-3, static_cast<double>(until - measured_from) / 1e9);
}

absl::StatusOr<Recording> Read(trace::TraceReader* reader,
                               const std::vector<cache::key::MaskSet>& masks) {
  return Reading(reader, masks).Run();
}

}  // namespace fncache::insight::whatif
