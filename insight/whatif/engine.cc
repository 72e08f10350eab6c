// SPDX-License-Identifier: Apache-2.0
// It is one thing: one class plays a recording, and its events change one
// state.
#include "insight/whatif/engine.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <queue>
#include <random>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/time/time.h"
#include "cache/observer.h"
#include "cache/policy.h"
#include "cache/store/entry.h"
#include "cache/store/memory_store.h"
#include "common/clock.h"
#include "common/thread_pool.h"

namespace fncache::insight::whatif {
namespace {

using cache::key::Key;
using cache::store::EntryInfo;
using cache::store::EntryRef;
using TracedOutcome = trace::Outcome;

constexpr int64_t kMicro = 1000;
// Nanoseconds after an answer that was not stored, in which misses of its key
// are not collapsed: the daemon's own second.
constexpr int64_t kUncollapsed = 1'000'000'000;
// The most refreshes of a function at once: the daemon's own limit.
constexpr uint32_t kMostRefreshes = 16;
// Microseconds of an answer from memory where the trace has none.
constexpr uint32_t kHitMicros = 500;
// The most played calls for each recorded one, and in addition.
constexpr uint64_t kMostCalls = 1000;
// No answer takes less, so that time advances whatever TTLs a trace has.
constexpr int64_t kLeastLatency = 50'000;
// A call that belongs to no composite.
constexpr uint32_t kAlone = 0xffffffff;
// The runner's jitter.
constexpr double kSpread = 0.1;

absl::Time At(int64_t nanos) { return absl::FromUnixNanos(nanos); }

class EvictionCounter : public cache::Observer {
 public:
  // One thread uses the store.
  void OnRemoved(cache::Tier /*tier*/, cache::Removal why,
                 cache::FunctionId /*function*/, bool /*last*/, uint64_t count,
                 uint64_t /*bytes*/) override {
    if (why == cache::Removal::kEvicted && counts) evictions += count;
  }

  bool counts = false;
  uint64_t evictions = 0;
};

class Engine {
 public:
  Engine(const Recording& recording, const Variant& variant,
         const ReplayOptions& options)
      : recording_(recording),
        options_(options),
        counting_(recording, options.by_composite),
        clock_(absl::UnixEpoch()) {
    cache::store::MemoryStoreOptions store;
    store.capacity = variant.settings.memory;
    // As the daemon sizes its shards: by the largest entry of all functions.
    store.max_entry_bytes = 0;
    for (size_t i = 0; i < recording.functions.size(); ++i) {
      const FunctionSettings& settings =
          variant.settings.Of(recording.functions[i]);
      store.max_entry_bytes =
          std::max(store.max_entry_bytes, settings.policy.max_entry_bytes);
      const int masked = variant.masked_of.empty() ? -1 : variant.masked_of[i];
      functions_.push_back({cache::Policy(settings.policy),
                            masked < 0 ? nullptr : &recording.masked[masked], 0,
                            0, 0});
    }
    store_ = std::make_unique<cache::store::MemoryStore>(store, &evictions_);
    MeasureOverheads();
  }

  Outcome Run() {
    if (options_.arrivals == Arrivals::kRecorded) {
      PlayRecorded();
    } else {
      PlayModel();
    }
    counting_.outcome()->evictions = evictions_.evictions;
    return counting_.Take();
  }

 private:
  struct Function {
    cache::Policy policy;
    const std::vector<Key>* masked;  // null: as recorded
    // Microseconds of a hit, and of a miss beyond the function's own.
    uint32_t hit_latency;
    uint32_t miss_overhead;
    uint32_t refreshes;  // in progress
  };
  struct Waiter {
    uint32_t call;
    uint32_t whose;  // a composite, or kAlone
    bool counts;
  };
  struct Flight {
    Key key;
    Waiter leader;
    int64_t started = 0;
    int64_t ends = 0;
    bool shared = false;  // others may join
    bool keyed = false;
    bool refresh = false;
    std::vector<Waiter> joined;
  };
  enum class What : uint8_t { kFlightEnds, kCall, kTimer };
  struct Event {
    int64_t at;
    uint64_t order;
    What what;
    uint32_t which;
    uint32_t generation;  // kTimer
    friend bool operator>(const Event& a, const Event& b) {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };
  // A composite and the runner's state of it.
  struct Composite {
    // The timer whose spread comes next is behind it in the recording.
    uint32_t spread_from = Pipeline::kNone;
    bool spread_over = false;          // there is none
    bool ticked = false;               // a timer of it has run
    uint32_t event = Pipeline::kNone;  // the last that was no timer's
    uint32_t generation = 0;
    // Whether a pipeline of it runs.
    bool running = false;
    uint32_t pipeline = 0;
    uint32_t position = 0;
    int64_t told = Call::kNone;
    bool failed = false;
    bool counts = false;
    uint32_t waiting = Pipeline::kNone;  // the last event that came meanwhile
  };

  void MeasureOverheads() {
    std::vector<double> hits(functions_.size()), misses(functions_.size());
    std::vector<uint64_t> hit_count(functions_.size()),
        miss_count(functions_.size());
    for (const Call& call : recording_.calls) {
      if (call.outcome == TracedOutcome::kHit) {
        hits[call.function] += call.latency;
        ++hit_count[call.function];
      } else if (call.outcome == TracedOutcome::kMiss) {
        misses[call.function] +=
            call.latency - std::min(call.cost, call.latency);
        ++miss_count[call.function];
      }
    }
    for (size_t i = 0; i < functions_.size(); ++i) {
      functions_[i].hit_latency =
          hit_count[i] == 0 ? kHitMicros
                            : static_cast<uint32_t>(
                                  hits[i] / static_cast<double>(hit_count[i]));
      if (miss_count[i] > 0) {
        functions_[i].miss_overhead = static_cast<uint32_t>(
            misses[i] / static_cast<double>(miss_count[i]));
      }
    }
  }

  double Random() { return static_cast<double>(random_() >> 11) * 0x1.0p-53; }

  void Push(int64_t at, What what, uint32_t which, uint32_t generation = 0) {
    events_.push({at, order_++, what, which, generation});
  }
  void SetTime(int64_t now) {
    clock_.Set(At(now));
    evictions_.counts = now >= recording_.measured_from;
  }

  // ------------------------------------------------------------ One call

  void Ask(const Waiter& asker) {
    const Call& call = recording_.calls[asker.call];
    Function& function = functions_[call.function];
    ++counting_.outcome()->calls;
    if (!call.keyed || call.outcome == TracedOutcome::kBypass ||
        function.policy.options().mode != cache::Mode::kOn) {
      return Launch(asker, Key(), /*keyed=*/false, /*shared=*/false);
    }
    const Key key =
        function.masked == nullptr ? call.key : (*function.masked)[asker.call];
    const absl::Time now = clock_.Now();
    const cache::store::Found found = store_->Get(key, now);
    if (found.entry) {
      const EntryInfo info = found.entry->info();
      const auto answer = [&](uint64_t Tally::*kind,
                              const absl::optional<absl::Duration>& told) {
        if (asker.counts) {
          counting_.Hit(call, kind);
          counting_.Age(absl::ToInt64Nanoseconds(
              std::max(now - info.arrived, absl::ZeroDuration())));
        }
        Answered(asker, std::max(kLeastLatency, function.hit_latency * kMicro),
                 told, /*failed=*/false);
      };
      const cache::Freshness freshness = function.policy.FreshnessOf(info, now);
      const bool ended =
          freshness != cache::Freshness::kFresh && found.entry->superseded();
      switch (ended ? cache::Freshness::kSpent : freshness) {
        case cache::Freshness::kFresh:
          return answer(&Tally::hits, function.policy.HitTtl(info, now));
        case cache::Freshness::kWhileRevalidate:
          answer(&Tally::stale, function.policy.StaleTtl(info, Random()));
          if (flying_.contains(key) || IsUncollapsed(key) ||
              function.refreshes >= kMostRefreshes) {
            return;
          }
          // The refresh, which no call waits for.
          return Launch({asker.call, kAlone, asker.counts}, key, /*keyed=*/true,
                        /*shared=*/true, /*refresh=*/true);
        case cache::Freshness::kIfError:
        case cache::Freshness::kSpent:
          break;
      }
    }
    const auto flying = flying_.find(key);
    if (flying != flying_.end()) {
      flights_[flying->second].joined.push_back(asker);
      return;
    }
    Launch(asker, key, /*keyed=*/true, /*shared=*/!IsUncollapsed(key));
  }

  bool IsUncollapsed(const Key& key) {
    const int64_t now = absl::ToUnixNanos(clock_.Now());
    while (!uncollapsed_order_.empty() &&
           uncollapsed_order_.front().first <= now) {
      const auto found = uncollapsed_.find(uncollapsed_order_.front().second);
      if (found != uncollapsed_.end() && found->second <= now) {
        uncollapsed_.erase(found);
      }
      uncollapsed_order_.pop_front();
    }
    return uncollapsed_.contains(key);
  }

  void Launch(const Waiter& leader, const Key& key, bool keyed, bool shared,
              bool refresh = false) {
    const Call& call = recording_.calls[leader.call];
    uint32_t number;
    if (free_.empty()) {
      number = static_cast<uint32_t>(flights_.size());
      flights_.emplace_back();
    } else {
      number = free_.back();
      free_.pop_back();
    }
    Flight& flight = flights_[number];
    flight.key = key;
    flight.leader = leader;
    flight.started = absl::ToUnixNanos(clock_.Now());
    flight.ends = flight.started + int64_t{call.cost} * kMicro;
    flight.keyed = keyed;
    flight.shared = shared;
    flight.refresh = refresh;
    if (refresh) ++functions_[call.function].refreshes;
    flight.joined.clear();
    if (shared) flying_[key] = number;
    if (leader.counts) {
      counting_.Run(call,
                    refresh ? nullptr
                    : keyed ? &Tally::misses
                            : &Tally::bypasses,
                    call.cost);
    }
    Push(flight.ends, What::kFlightEnds, number);
  }

  void Land(uint32_t number) {
    const Flight flight = std::move(flights_[number]);
    flights_[number] = Flight();
    free_.push_back(number);
    if (flight.shared) flying_.erase(flight.key);
    const Call& call = recording_.calls[flight.leader.call];
    Function& function = functions_[call.function];
    if (flight.refresh) --function.refreshes;
    const absl::Time now = clock_.Now();
    const int64_t overhead = std::max(function.miss_overhead * kMicro,
                                      kLeastLatency - call.cost * kMicro);

    cache::ResponseFacts facts;
    if (call.ttl >= 0) facts.ttl = absl::Nanoseconds(call.ttl);
    facts.fatal = call.fatal;
    facts.secrets = call.secrets;
    cache::Policy::Storing storing;
    EntryInfo info;
    bool stored = false;
    if (flight.keyed && !call.failed) {
      storing = function.policy.Decide(facts, call.response_bytes, Random());
    }
    if (storing.store) {
      info.function = call.function;
      info.started = At(flight.started);
      info.arrived = now;
      info.lifetime = storing.lifetime;
      info.retention = storing.retention;
      info.ttl = facts.ttl;
      info.cost = absl::Microseconds(int64_t{call.cost});
      info.secrets = facts.secrets;
      stored = Fill(flight.key, info, call.response_bytes, now);
    }
    if (flight.keyed && !stored && !call.failed &&
        function.policy.serves_stale()) {
      // An answer that is not to be stored removes the old one.
      const cache::store::Found old = store_->Get(flight.key, now);
      if (old.entry) old.entry->Supersede();
    }
    absl::optional<absl::Duration> told = function.policy.MissTtl(
        facts, stored ? storing : cache::Policy::Storing());
    if (!told.has_value()) told = facts.ttl;
    Answered(flight.leader, overhead, told, call.failed || call.fatal);
    if (!flight.shared) return;
    if (stored) {
      told = function.policy.HitTtl(info, now);
      for (const Waiter& waiter : flight.joined) {
        const Call& theirs = recording_.calls[waiter.call];
        if (waiter.counts) {
          counting_.Hit(theirs, &Tally::collapsed);
          counting_.Age(0);
        }
        Answered(waiter, overhead, told, false);
      }
      return;
    }
    const int64_t until = absl::ToUnixNanos(now) + kUncollapsed;
    uncollapsed_[flight.key] = until;
    uncollapsed_order_.emplace_back(until, flight.key);
    for (const Waiter& waiter : flight.joined) {
      Launch(waiter, flight.key, /*keyed=*/true, /*shared=*/false);
    }
  }

  // Only the size of an entry counts: its bytes are not written.
  bool Fill(const Key& key, const EntryInfo& info, uint32_t bytes,
            absl::Time now) {
    bool written = false;
    EntryRef entry = cache::store::Entry::CreateInPlace(
        info, "", bytes, [](char* /*body*/) { return true; }, &written);
    return store_->Put(key, std::move(entry), now) ==
           cache::store::PutResult::kStored;
  }

  // ------------------------------------------------------------- Arrivals

  void PlayRecorded() {
    for (const Pipeline& pipeline : recording_.pipelines) {
      if (pipeline.measured) ++counting_.outcome()->pipelines;
    }
    for (uint32_t i = 0; i < recording_.calls.size(); ++i) {
      const Call& call = recording_.calls[i];
      PlayUntil(call.arrived);
      SetTime(call.arrived);
      Ask({i, kAlone, call.measured});
    }
    PlayUntil(std::numeric_limits<int64_t>::max());
  }

  void PlayModel() {
    composites_.resize(recording_.composites.size());
    for (uint32_t i = 0; i < recording_.pipelines.size(); ++i) {
      const Pipeline& pipeline = recording_.pipelines[i];
      if (pipeline.timer) continue;
      PlayUntil(pipeline.start);
      SetTime(pipeline.start);
      if (recording_.composites[pipeline.composite].empty()) {
        PlayWithoutComposite(i);
      } else {
        Happen(i);
      }
    }
    PlayUntil(std::numeric_limits<int64_t>::max());
  }

  // Plays the events up to `time`, inclusive.
  void PlayUntil(int64_t time) {
    while (!events_.empty() && events_.top().at <= time) {
      const Event event = events_.top();
      events_.pop();
      SetTime(event.at);
      switch (event.what) {
        case What::kFlightEnds:
          Land(event.which);
          break;
        case What::kCall:
          NextCall(event.which);
          break;
        case What::kTimer:
          Timer(event.which, event.generation);
          break;
      }
    }
  }

  void PlayWithoutComposite(uint32_t number) {
    const Pipeline& pipeline = recording_.pipelines[number];
    if (pipeline.measured) ++counting_.outcome()->pipelines;
    for (uint32_t i = 0; i < pipeline.calls; ++i) {
      const uint32_t call = recording_.pipeline_calls[pipeline.first + i];
      Ask({call, kAlone, recording_.calls[call].measured});
    }
  }

  // An event replaces the timer.
  void Happen(uint32_t number) {
    const uint32_t whose = recording_.pipelines[number].composite;
    Composite& composite = composites_[whose];
    ++composite.generation;
    if (composite.running) {
      composite.waiting = number;
      return;
    }
    composite.event = number;
    Begin(whose, number);
  }

  void Timer(uint32_t whose, uint32_t generation) {
    Composite& composite = composites_[whose];
    if (composite.generation != generation || composite.running) return;
    composite.ticked = true;
    // The next pipeline that a timer caused without an event in between. After
    // the last of them the first follows again, since their requests are the
    // same.
    uint32_t next = recording_.pipelines[composite.event].repeats;
    if (recording_.pipelines[composite.pipeline].timer) {
      const uint32_t after = recording_.pipelines[composite.pipeline].next;
      if (after != Pipeline::kNone && recording_.pipelines[after].timer) {
        next = after;
      }
    }
    Begin(whose, next);
  }

  void Begin(uint32_t whose, uint32_t number) {
    Composite& composite = composites_[whose];
    const int64_t now = absl::ToUnixNanos(clock_.Now());
    composite.running = true;
    composite.pipeline = number;
    composite.position = 0;
    composite.told = Call::kNone;
    composite.failed = false;
    composite.counts = now >= recording_.measured_from;
    if (composite.counts) ++counting_.outcome()->pipelines;
    NextCall(whose);
  }

  void NextCall(uint32_t whose) {
    Composite& composite = composites_[whose];
    const Pipeline& pipeline = recording_.pipelines[composite.pipeline];
    if (composite.failed || composite.position == pipeline.calls) {
      return End(whose);
    }
    const uint32_t call =
        recording_.pipeline_calls[pipeline.first + composite.position++];
    Ask({call, whose, composite.counts});
  }

  // The caller gets the answer `latency` from now.
  void Answered(const Waiter& asker, int64_t latency,
                const absl::optional<absl::Duration>& told, bool failed) {
    if (asker.whose == kAlone) return;
    Composite& composite = composites_[asker.whose];
    composite.failed |= failed;
    if (told.has_value()) {
      const int64_t nanos = absl::ToInt64Nanoseconds(*told);
      if (nanos > 0 &&
          (composite.told == Call::kNone || nanos < composite.told)) {
        composite.told = nanos;
      }
    }
    // Between two calls the runner takes its recorded time.
    const Pipeline& pipeline = recording_.pipelines[composite.pipeline];
    int64_t pause = 0;
    if (composite.position < pipeline.calls) {
      const Call& call = recording_.calls[asker.call];
      const Call& next =
          recording_.calls[recording_.pipeline_calls[pipeline.first +
                                                     composite.position]];
      pause = std::max<int64_t>(
          0, next.arrived - call.arrived - int64_t{call.latency} * kMicro);
    }
    Push(absl::ToUnixNanos(clock_.Now()) + latency + pause, What::kCall,
         asker.whose);
  }

  void End(uint32_t whose) {
    Composite& composite = composites_[whose];
    composite.running = false;
    if (composite.waiting != Pipeline::kNone) {
      composite.event = std::exchange(composite.waiting, Pipeline::kNone);
      return Begin(whose, composite.event);
    }
    // A failed pipeline is retried at its recorded time.
    if (composite.failed || composite.told == Call::kNone) return;
    Outcome* const outcome = counting_.outcome();
    outcome->cut |= outcome->calls > kMostCalls * (recording_.calls.size() + 1);
    if (outcome->cut) return;
    const int64_t at = NextTimer(&composite);
    if (at > recording_.until) return;
    Push(at, What::kTimer, whose, ++composite.generation);
  }

  int64_t NextTimer(Composite* composite) {
    const int64_t now = absl::ToUnixNanos(clock_.Now());
    const auto told = static_cast<double>(composite->told);
    const Pipeline& ended = recording_.pipelines[composite->pipeline];
    // The settled composites of a load wait from its beginning on, each for
    // another fraction of its TTL: the recorded time, or longer than until the
    // first event.
    if (ended.settling && !composite->ticked) {
      double part = Random();
      if (ended.next != Pipeline::kNone && ended.told > 0) {
        const Pipeline& next = recording_.pipelines[ended.next];
        const double waited =
            std::clamp(static_cast<double>(next.start - recording_.begun) /
                           static_cast<double>(ended.told),
                       0.0, 1.0);
        if (next.timer) {
          composite->spread_from = ended.next;
          part = waited;
        } else {
          part = waited + (1 - waited) * part;
        }
      }
      return std::max(now, Later(recording_.begun, part * told));
    }
    return Later(now, told * Spread(composite));
  }

  // Some TTLs exceed 64 bits of nanoseconds, and so the trace.
  int64_t Later(int64_t from, double nanos) const {
    return nanos > static_cast<double>(recording_.until - from)
               ? std::numeric_limits<int64_t>::max()
               : from + static_cast<int64_t>(nanos);
  }

  // The fraction of the TTL that a timer waits. It is the composite's own, as
  // long as it has any in the recording, so that equal settings give equal
  // arrivals.
  double Spread(Composite* composite) {
    uint32_t from = composite->spread_from == Pipeline::kNone
                        ? composite->event
                        : composite->spread_from;
    while (!composite->spread_over) {
      const Pipeline& before = recording_.pipelines[from];
      from = before.next;
      if (from == Pipeline::kNone) {
        composite->spread_over = true;
        break;
      }
      composite->spread_from = from;
      const Pipeline& next = recording_.pipelines[from];
      if (next.timer && before.told > 0) {
        return static_cast<double>(
                   std::max<int64_t>(0, next.start - before.end)) /
               static_cast<double>(before.told);
      }
    }
    return 1 + kSpread * (2 * Random() - 1);
  }

  const Recording& recording_;
  const ReplayOptions options_;
  Counting counting_;
  SimulatedClock clock_;
  EvictionCounter evictions_;
  std::vector<Function> functions_;
  std::unique_ptr<cache::store::MemoryStore> store_;
  std::mt19937_64 random_{1};

  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t order_ = 0;
  std::vector<Flight> flights_;
  std::vector<uint32_t> free_;
  absl::flat_hash_map<Key, uint32_t> flying_;
  absl::flat_hash_map<Key, int64_t> uncollapsed_;
  std::deque<std::pair<int64_t, Key>> uncollapsed_order_;
  std::vector<Composite> composites_;
};

}  // namespace

Outcome Replay(const Recording& recording, const Variant& variant,
               const ReplayOptions& options) {
  return Engine(recording, variant, options).Run();
}

std::vector<Outcome> ReplayAll(const Recording& recording,
                               const std::vector<Variant>& variants,
                               const ReplayOptions& options) {
  std::vector<Outcome> outcomes(variants.size());
  absl::BlockingCounter left(static_cast<int>(variants.size()));
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  ThreadPool pool(static_cast<int>(std::min(cores, variants.size())));
  for (size_t i = 0; i < variants.size(); ++i) {
    ThreadPool::Work work = [&, i](bool /*run*/) {
      outcomes[i] = Replay(recording, variants[i], options);
      left.DecrementCount();
    };
    pool.Submit(&work);
  }
  left.Wait();
  return outcomes;
}

}  // namespace fncache::insight::whatif
