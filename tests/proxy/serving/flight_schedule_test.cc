// SPDX-License-Identifier: Apache-2.0
// Flights under random schedules: callers with deadlines that come, join, leave
// and time out, against a function that answers, fails, and is ended by
// deadlines; with old answers, refreshes and calls that go on without callers.
// Requests of equal key may differ in drift, and nothing is proven: each gets
// an answer of its own drift.
// Simulated time; every schedule is its seed. And the same table under threads.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "proxy/serving/flight.h"
#include "proxy/telemetry/instruments.h"
#include "tests/common/long_form.h"

namespace fncache::proxy::serving {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

// How a simulated function's call will end, unless its deadline is earlier.
enum class Fate { kAccepted, kNotAccepted, kFailed };

class Simulation;

// A caller as proxy/serving/call.cc makes one, but for bytes and queues.
class SimulatedCaller : public FlightCaller,
                        public std::enable_shared_from_this<SimulatedCaller> {
 public:
  SimulatedCaller(Simulation* simulation, int id, const FlightKey& key,
                  absl::Time deadline, cache::store::EntryRef old)
      : FlightCaller(key, deadline, /*stale=*/static_cast<bool>(old),
                     /*has_old=*/static_cast<bool>(old)),
        simulation(simulation),
        id(id),
        deadline(deadline),
        old(std::move(old)) {}
  void OnSignal(FlightSignal signal) override;

  Simulation* const simulation;
  const int id;
  const absl::Time deadline;
  const cache::store::EntryRef old;  // answers if the function fails
  bool waiting = false;
  int answers = 0;
  int signals = 0;
  bool left = false;  // before it was answered
};

using SimulatedCallerPtr = std::shared_ptr<SimulatedCaller>;

// An upstream call.
class SimulatedCall : public FlightCall {
 public:
  explicit SimulatedCall(Simulation* simulation) : simulation(simulation) {}
  void Cancel() override { cancelled = true; }
  void OnAbandoned(uint64_t abandonment) override;

  Simulation* const simulation;
  FlightKey key{cache::key::Key()};
  absl::Time started;
  absl::Time ends;
  bool by_deadline = false;  // that is what ends it
  Fate fate = Fate::kAccepted;
  bool cancelled = false;
  SimulatedCallerPtr owner;  // null once it has left
  std::shared_ptr<Flight> flight;
  SimulatedCallerPtr place;
  bool refresh = false;
  // When it ends for having gone on alone, and the abandonment that this is of.
  absl::Time alone_until = absl::InfiniteFuture();
  uint64_t abandonment = 0;
};

// For how long past their time entries answer while they are refreshed, and
// for how long after that if the function fails.
constexpr absl::Duration kRevalidate = absl::Milliseconds(400);
constexpr absl::Duration kIfError = absl::Milliseconds(800);
constexpr absl::Duration kLifetime = absl::Milliseconds(500);
constexpr absl::Duration kAlone = absl::Milliseconds(700);

class Simulation {
 public:
  explicit Simulation(uint32_t seed)
      : random_(seed),
        max_released_(1 + Draw(4)),
        max_unattended_(1 + Draw(3)),
        revalidates_(Draw(2) == 0),
        falls_back_(Draw(2) == 0),
        longer_(Draw(2) == 0 ? absl::Milliseconds(Draw(1500))
                             : absl::ZeroDuration()) {
    FlightTable::Options options;
    options.max_released = max_released_;
    options.max_unattended = max_unattended_;
    table_ = std::make_unique<FlightTable>(options, instruments_.function(0));
  }

  void Run() {
    const int callers = 5 + Draw(40);
    const int keys = 1 + Draw(3);
    const int drifts = 1 + Draw(2);
    for (int i = 0; i < callers; ++i) {
      const FlightKey key({static_cast<uint64_t>(Draw(keys)), 7},
                          {static_cast<uint64_t>(Draw(drifts)), 5});
      const absl::Time deadline =
          Draw(4) == 0 ? absl::InfiniteFuture()
                       : now_ + absl::Milliseconds(1 + Draw(3000));
      Arrive(i, key, deadline);
      for (int steps = Draw(4); steps > 0; --steps) Step();
    }
    if (Draw(5) == 0) {  // shut-down: everybody is cancelled, in any order
      std::vector<SimulatedCallerPtr> rest = all_;
      std::shuffle(rest.begin(), rest.end(), random_);
      for (const auto& caller : rest) {
        GoAway(caller);
        if (Draw(2) == 0) Step();
      }
    }
    int limit = 100000;
    while (Step()) ASSERT_GT(--limit, 0) << "never ends";
    Check();
  }

  void OnAbandoned(SimulatedCall* call, uint64_t abandonment) {
    ++totals.abandoned;
    call->abandonment = abandonment;
    call->alone_until = now_ + kAlone;
    ASSERT_LE(table_->GetStats().unattended, max_unattended_);
  }

  void Deliver(SimulatedCallerPtr caller, FlightSignal signal) {
    posted_.emplace_back(std::move(caller), std::move(signal));
  }

  struct Totals {
    uint64_t answered = 0, shared = 0, upstream = 0, left = 0, released = 0;
    uint64_t stale_hits = 0, refreshes = 0, refused = 0, fallen_back = 0,
             abandoned = 0, filled_alone = 0, others = 0;
  };
  Totals totals;

 private:
  int Draw(int n) { return static_cast<int>(random_() % n); }

  enum class State { kNone, kFresh, kRevalidate, kIfError };
  // The result of a look-up, according to the policy.
  State Look(const FlightKey& key, cache::store::EntryRef* entry) {
    const auto stored = memory_.find(key.key.high);
    if (stored == memory_.end() || stored->second->drift() != key.drift) {
      return State::kNone;
    }
    *entry = stored->second;
    const absl::Duration past = now_ - (*entry)->deadline();
    if (past < absl::ZeroDuration()) return State::kFresh;
    if (revalidates_ && past < kRevalidate) return State::kRevalidate;
    if (falls_back_ && past < kRevalidate + kIfError) return State::kIfError;
    return State::kNone;
  }

  void Arrive(int id, const FlightKey& key, absl::Time deadline) {
    cache::store::EntryRef entry;
    State state = Look(key, &entry);
    if (Draw(3) == 0) state = State::kNone;  // evicted
    const bool old = state == State::kIfError;
    auto caller = std::make_shared<SimulatedCaller>(
        this, id, key, deadline, old ? entry : cache::store::EntryRef());
    all_.push_back(caller);
    if (state == State::kFresh) return Answer(caller);
    if (state != State::kRevalidate) return Enter(caller);
    // Answered at once, and refreshed behind.
    ++totals.stale_hits;
    Answer(caller);
    auto refresh = std::make_shared<SimulatedCaller>(
        this, -1, key, absl::InfiniteFuture(), nullptr);
    switch (table_->EnterToRefresh(refresh, now_)) {
      case FlightTable::Refresh::kNotNeeded:
        return;
      case FlightTable::Refresh::kFull:
        ++totals.refused;
        return;
      case FlightTable::Refresh::kLead:
        break;
    }
    ++totals.refreshes;
    if (Draw(8) == 0) {
      // Another call has filled the key meanwhile.
      return table_->FinishFound(refresh.get(), entry, now_);
    }
    auto call = MakeCall(key, now_ + absl::Milliseconds(3000));
    call->refresh = true;
    call->flight = table_->Launched(refresh.get(), call);
    ASSERT_NE(call->flight, nullptr);
  }

  // A call of the function that ends by itself or at `deadline`.
  std::shared_ptr<SimulatedCall> MakeCall(const FlightKey& key,
                                          absl::Time deadline) {
    auto call = std::make_shared<SimulatedCall>(this);
    call->key = key;
    call->started = now_;
    call->fate = static_cast<Fate>(std::max(Draw(6) - 3, 0));
    call->ends = Draw(6) == 0 ? absl::InfiniteFuture()
                              : now_ + absl::Milliseconds(Draw(2000));
    if (deadline <= call->ends) {
      call->ends = deadline;
      call->by_deadline = deadline != absl::InfiniteFuture();
    }
    calls_.push_back(call);
    ++totals.upstream;
    return call;
  }

  void Enter(const SimulatedCallerPtr& caller) {
    Follow(caller, table_->Enter(caller, now_), /*again=*/true);
  }

  void Follow(const SimulatedCallerPtr& caller, Verdict verdict, bool again) {
    if (verdict == Verdict::kWait) {
      caller->waiting = true;
      return;
    }
    cache::store::EntryRef entry;
    if (again && Look(caller->key(), &entry) == State::kFresh && Draw(2) == 0) {
      if (verdict == Verdict::kLead) {
        table_->FinishFound(caller.get(), entry, now_);
      } else {
        table_->Leave(caller.get());
      }
      Answer(caller);
      return;
    }
    const bool leads = verdict == Verdict::kLead;
    auto call = MakeCall(caller->key(),
                         leads ? caller->deadline + longer_ : caller->deadline);
    call->owner = caller;
    if (leads) {
      call->flight =
          table_->Launched(caller.get(), call, longer_ > absl::ZeroDuration());
      ASSERT_NE(call->flight, nullptr);
    } else {
      call->place = caller;
      ++totals.released;
    }
    int running = 0;
    for (const auto& other : calls_) running += other->place != nullptr;
    ASSERT_LE(running, max_released_);
  }

  void Answer(const SimulatedCallerPtr& caller) {
    ASSERT_FALSE(caller->left) << caller->id << " had left";
    ++caller->answers;
    ++totals.answered;
    ASSERT_EQ(caller->answers, 1) << caller->id;
  }

  bool Done(const SimulatedCallerPtr& caller) const {
    return caller->answers > 0 || caller->left;
  }

  // The caller is cancelled.
  void GoAway(const SimulatedCallerPtr& caller) {
    if (Done(caller)) return;
    caller->left = true;
    caller->waiting = false;
    ++totals.left;
    for (const auto& call : calls_) {
      if (call->owner != caller) continue;
      call->owner = nullptr;
      if (call->place != nullptr) {
        call->cancelled = true;
        return;
      }
    }
    table_->Leave(caller.get());
  }

  void EndCall(size_t index) {
    const std::shared_ptr<SimulatedCall> call = calls_[index];
    calls_.erase(calls_.begin() + index);
    cache::store::EntryRef entry;
    bool found = false;
    if (!call->cancelled && !call->by_deadline &&
        call->fate == Fate::kAccepted) {
      cache::store::EntryInfo info;
      info.started = call->started;
      info.arrived = now_;
      info.lifetime = kLifetime;
      info.drift = call->key.drift;
      entry = cache::store::Entry::Create(info, "",
                                          {std::to_string(call->key.key.high)});
      // The entry of a later start stays. Joined callers are offered that one.
      cache::store::EntryRef& stored = memory_[call->key.key.high];
      found = stored && stored->started() > entry->started();
      if (found) entry = stored;
      stored = entry;
    }
    const bool failed =
        !call->cancelled && !call->by_deadline && call->fate == Fate::kFailed;
    if (entry && call->alone_until != absl::InfiniteFuture()) {
      ++totals.filled_alone;
    }
    if (call->flight != nullptr) {
      table_->Finish(call->flight,
                     entry ? FlightEnd::kShared
                     : call->by_deadline && !call->cancelled
                         ? FlightEnd::kDeadline
                     : failed ? FlightEnd::kFailed
                              : FlightEnd::kAlone,
                     entry, now_, found, failed ? 14 : 0);
    }
    if (call->place != nullptr) table_->Leave(call->place.get());
    if (call->owner == nullptr) return;
    if (failed && call->owner->old) CheckOld(call->owner, call->owner->old);
    Answer(call->owner);
  }

  // An old answer is of the caller's own key.
  void CheckOld(const SimulatedCallerPtr& caller,
                const cache::store::EntryRef& old) {
    ++totals.fallen_back;
    ASSERT_TRUE(old);
    ASSERT_EQ(old->body(), std::to_string(caller->key().key.high));
  }

  // One thing that can happen next, at random; false if nothing can.
  bool Step() {
    std::vector<std::function<void()>> now;
    if (!posted_.empty()) {
      // Signals to different callers overtake each other.
      now.push_back([this] {
        const size_t i = Draw(posted_.size());
        auto [caller, signal] = std::move(posted_[i]);
        posted_.erase(posted_.begin() + i);
        OnSignal(caller, signal);
      });
    }
    for (const auto& call : calls_) {
      if (call->owner == nullptr || call->owner->deadline > now_ ||
          call->ends <= now_) {
        continue;
      }
      // Its call may take longer than it waits.
      now.push_back([this, caller = call->owner] { GoAway(caller); });
      break;
    }
    for (const auto& call : calls_) {
      if (call->alone_until > now_) continue;
      now.push_back([this, call] {
        call->alone_until = absl::InfiniteFuture();
        table_->EndAbandoned(call->flight, call->abandonment);
      });
      break;
    }
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i]->ends > now_ && !calls_[i]->cancelled) continue;
      now.push_back([this, i] { EndCall(i); });
      break;
    }
    for (const auto& caller : all_) {
      if (!caller->waiting || caller->deadline > now_) continue;
      // Its own timer or gRPC's notice ends it; the table cannot tell them
      // apart. Or its patience, and it has an old answer.
      now.push_back([this, caller] {
        if (caller->old) CheckOld(caller, caller->old);
        table_->Leave(caller.get());
        caller->waiting = false;
        Answer(caller);
        ++timeouts_;
      });
      break;
    }
    if (Draw(12) == 0) {
      const auto& caller = all_[Draw(all_.size())];
      if (!Done(caller)) {
        now.push_back([this, caller] { GoAway(caller); });
      }
    }
    if (now.empty() || (Draw(3) == 0 && posted_.empty())) {
      // Time passes, to or towards what happens next.
      absl::Time next = absl::InfiniteFuture();
      for (const auto& call : calls_) {
        next = std::min({next, call->ends, call->alone_until});
        if (call->owner != nullptr)
          next = std::min(next, call->owner->deadline);
      }
      for (const auto& caller : all_) {
        if (caller->waiting) next = std::min(next, caller->deadline);
      }
      if (next != absl::InfiniteFuture()) {
        now_ = std::max(now_, next);
        if (now.empty()) return true;
      }
    }
    if (now.empty()) {
      // All that is left are callers without deadline of a function that does
      // not answer: they go.
      for (const auto& caller : all_) {
        if (Done(caller)) continue;
        GoAway(caller);
        return true;
      }
      return false;
    }
    now[Draw(now.size())]();
    return true;
  }

  void OnSignal(const SimulatedCallerPtr& caller, const FlightSignal& signal) {
    ++caller->signals;
    ASSERT_EQ(caller->signals, 1) << caller->id;
    if (!caller->waiting) {
      ASSERT_TRUE(Done(caller));
      return;
    }
    caller->waiting = false;
    if (signal.verdict == Verdict::kAnswer) {
      ASSERT_TRUE(signal.entry);
      // No caller gets an entry of another key.
      ASSERT_EQ(signal.entry->body(), std::to_string(caller->key().key.high));
      if (signal.entry->drift() != caller->key().drift) {
        // The fill of a later call: it is not this caller's answer.
        ASSERT_TRUE(signal.found);
        ++totals.others;
        caller->answers = 1;
        auto again = std::make_shared<SimulatedCaller>(
            this, caller->id, caller->key(), caller->deadline, caller->old);
        all_.push_back(again);
        return Enter(again);
      }
      ++totals.shared;
      Answer(caller);
      return;
    }
    if (signal.verdict == Verdict::kOld) {
      ASSERT_EQ(signal.code, 14);
      CheckOld(caller, caller->old);
      Answer(caller);
      return;
    }
    Follow(caller, signal.verdict,
           signal.verdict == Verdict::kLead || signal.queued);
  }

  void Check() {
    for (const auto& caller : all_) {
      EXPECT_EQ(caller->answers + (caller->left ? 1 : 0), 1) << caller->id;
    }
    EXPECT_TRUE(calls_.empty());
    EXPECT_TRUE(table_->GetStats().empty());
    EXPECT_EQ(table_->GetStats().unattended, 0);
    const telemetry::FunctionGauges gauges =
        instruments_.function(0).ReadGauges();
    EXPECT_EQ(gauges.flights, 0);
    EXPECT_EQ(gauges.abandoned, 0);
    // And nothing of it is kept alive.
    for (const auto& caller : all_) EXPECT_EQ(caller.use_count(), 1);
  }

  std::mt19937 random_;
  const int max_released_;
  const int max_unattended_;
  const bool revalidates_;       // stale_while_revalidate
  const bool falls_back_;        // stale_if_error
  const absl::Duration longer_;  // finish_abandoned
  absl::Time now_ = kStart;
  const telemetry::Instruments instruments_{{"function"}};
  std::unique_ptr<FlightTable> table_;
  std::vector<SimulatedCallerPtr> all_;
  std::vector<std::shared_ptr<SimulatedCall>> calls_;
  std::deque<std::pair<SimulatedCallerPtr, FlightSignal>> posted_;
  std::map<uint64_t, cache::store::EntryRef> memory_;
  uint64_t timeouts_ = 0;
};

void SimulatedCall::OnAbandoned(uint64_t abandonment) {
  simulation->OnAbandoned(this, abandonment);
}

void SimulatedCaller::OnSignal(FlightSignal signal) {
  simulation->Deliver(shared_from_this(), std::move(signal));
}

void TrySchedules(uint32_t first, uint32_t last) {
  Simulation::Totals totals;
  for (uint32_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(seed);
    simulation.Run();
    if (::testing::Test::HasFailure()) return;
    totals.answered += simulation.totals.answered;
    totals.shared += simulation.totals.shared;
    totals.upstream += simulation.totals.upstream;
    totals.left += simulation.totals.left;
    totals.released += simulation.totals.released;
    totals.stale_hits += simulation.totals.stale_hits;
    totals.refreshes += simulation.totals.refreshes;
    totals.refused += simulation.totals.refused;
    totals.fallen_back += simulation.totals.fallen_back;
    totals.abandoned += simulation.totals.abandoned;
    totals.filled_alone += simulation.totals.filled_alone;
    totals.others += simulation.totals.others;
  }
  std::printf(
      "%u schedules: %lu answered, of them %lu shared, %lu by a stale hit, %lu "
      "over a failure; %lu left; %lu upstream calls, of them %lu released, %lu "
      "refreshes (%lu refused), %lu abandoned (%lu filled), %lu later fills of "
      "other drift\n",
      last - first + 1, totals.answered, totals.shared, totals.stale_hits,
      totals.fallen_back, totals.left, totals.upstream, totals.released,
      totals.refreshes, totals.refused, totals.abandoned, totals.filled_alone,
      totals.others);
  // The schedules reach what they are meant to.
  const auto scaled = [&](uint64_t in_4000) {
    return in_4000 * (last - first + 1) / 4000;
  };
  EXPECT_GT(totals.shared, scaled(1000));
  EXPECT_GT(totals.left, scaled(1000));
  EXPECT_GT(totals.released, scaled(1000));
  EXPECT_GT(totals.stale_hits, scaled(500));
  EXPECT_GT(totals.refreshes, scaled(100));
  EXPECT_GT(totals.refused, scaled(10));
  EXPECT_GT(totals.fallen_back, scaled(500));
  EXPECT_GT(totals.abandoned, scaled(1000));
  EXPECT_GT(totals.filled_alone, scaled(100));
  EXPECT_GT(totals.others, scaled(100));
}

TEST(FlightScheduleTest, NoScheduleLosesACallerOrAnswersItTwice) {
  TrySchedules(1, fncache::testing::kSanitized ? 1000 : 4000);
}

TEST(FlightScheduleHeavyTest, NoScheduleLosesACallerOrAnswersItTwice) {
  TrySchedules(4001, fncache::testing::ShortOrLong(8000, 20000));
}

// A caller whose thread polls for its signal.
class ThreadedCaller : public FlightCaller {
 public:
  explicit ThreadedCaller(const cache::key::Key& key)
      : FlightCaller(key, absl::InfiniteFuture()) {}
  void OnSignal(FlightSignal signal) override {
    MutexLock lock(&mutex_);
    ++signals_;
    signal_ = std::move(signal);
    told_.SignalAll();
  }
  // False after the timeout.
  bool Wait(absl::Duration timeout, FlightSignal* signal) {
    MutexLock lock(&mutex_);
    const absl::Time until = absl::Now() + timeout;
    while (signals_ == 0) {
      if (told_.WaitWithTimeout(&mutex_, until - absl::Now())) break;
    }
    *signal = signal_;
    return signals_ > 0;
  }
  int signals() {
    MutexLock lock(&mutex_);
    return signals_;
  }

 private:
  Mutex mutex_;
  CondVar told_;
  int signals_ ABSL_GUARDED_BY(mutex_) = 0;
  FlightSignal signal_ ABSL_GUARDED_BY(mutex_);
};

class ThreadedCall : public FlightCall {
 public:
  void Cancel() override { cancelled = true; }
  void OnAbandoned(uint64_t number) override { abandonment = number; }
  std::atomic<bool> cancelled{false};
  std::atomic<uint64_t> abandonment{0};
};

TEST(FlightScheduleTest, ThreadsShareOneTable) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 3000;
  constexpr int kMaxReleased = 2;
  const telemetry::Instruments instruments({"function"});
  FlightTable table({kMaxReleased, absl::Milliseconds(1)},
                    instruments.function(0));
  std::atomic<int> running{0};
  std::atomic<int> answered{0};
  std::atomic<int> left{0};
  auto work = [&](uint32_t seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < kCalls; ++i) {
      const cache::key::Key key{random() % 2, 1};
      auto caller = std::make_shared<ThreadedCaller>(key);
      Verdict verdict = Verdict::kLead;
      const bool refresh = random() % 5 == 0;
      if (!refresh) {
        verdict = table.Enter(caller, absl::Now());
      } else if (table.EnterToRefresh(caller, absl::Now()) !=
                 FlightTable::Refresh::kLead) {
        ++left;
        continue;
      }
      if (verdict == Verdict::kWait) {
        FlightSignal signal;
        if (!caller->Wait(absl::Microseconds(random() % 300), &signal)) {
          table.Leave(caller.get());
          ++left;
          continue;
        }
        if (signal.verdict == Verdict::kAnswer) {
          ASSERT_EQ(signal.entry->body(), std::to_string(key.high));
          ++answered;
          continue;
        }
        verdict = signal.verdict;
      }
      if (verdict == Verdict::kRun) {
        ASSERT_LE(++running, kMaxReleased);
        std::this_thread::yield();
        --running;
        table.Leave(caller.get());
        ++answered;
        continue;
      }
      auto call = std::make_shared<ThreadedCall>();
      const auto flight =
          table.Launched(caller.get(), call, /*outlives=*/random() % 2 == 0);
      ASSERT_NE(flight, nullptr);
      std::this_thread::yield();
      const int fate = refresh ? 1 : random() % 4;
      if (fate == 0) {
        // The leader goes; its call ends later all the same.
        table.Leave(caller.get());
        ++left;
      }
      std::this_thread::yield();
      if (call->abandonment != 0 && random() % 2 == 0) {
        table.EndAbandoned(flight, call->abandonment);
      }
      if (random() % 3 == 0) {
        table.Finish(flight, FlightEnd::kAlone, nullptr, absl::Now());
      } else if (random() % 3 == 0) {
        table.Finish(flight, FlightEnd::kDeadline, nullptr, absl::Now());
      } else {
        cache::store::EntryInfo info;
        info.lifetime = absl::Seconds(1);
        table.Finish(
            flight, FlightEnd::kShared,
            cache::store::Entry::Create(info, "", {std::to_string(key.high)}),
            absl::Now());
      }
      if (fate != 0) ++answered;
      ASSERT_LE(caller->signals(), 1);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(answered + left, kThreads * kCalls);
  EXPECT_TRUE(table.GetStats().empty());
  EXPECT_EQ(table.GetStats().unattended, 0);
}

}  // namespace
}  // namespace fncache::proxy::serving
