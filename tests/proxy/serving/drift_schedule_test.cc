// SPDX-License-Identifier: Apache-2.0
// Entries across drift under random schedules: callers, flights, refreshes and
// questions that are late, fail or differ, with purges between all of them.
// Simulated time; every schedule is its seed. The flights, the gate and the
// evidence are the real ones.
//
// The test's own record of what happened says which hits are allowed. So no hit
// uses a proof that was revoked before its look-up, and no caller hangs or gets
// another request's answer.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "proxy/serving/evidence.h"
#include "proxy/serving/flight.h"
#include "proxy/serving/function_state.h"
#include "proxy/telemetry/instruments.h"
#include "tests/common/long_form.h"
#include "tests/proxy/serving/scripted.h"

namespace fncache::proxy::serving {
namespace {

using cache::Freshness;
using cache::store::EntryRef;

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

// A request of one of some composites, whose number is its step, too.
struct Asked {
  uint64_t composite = 0;
  uint32_t time = 0;     // heartbeats
  uint32_t version = 0;  // changes more seldom
  uint32_t event = 0;    // seldom

  Key key() const { return {composite, 7}; }
  Key drift() const {
    return {uint64_t{time} << 32 | version, uint64_t{event} + 1};
  }
  FlightKey flight_key() const { return {key(), drift()}; }
  DriftKinds kinds() const {
    return {{11, time, true}, {12, version, false}, {13, event, true}};
  }
};

// The behaviour of a composite's step.
enum class Step {
  kPlain,     // reads no drift
  kReader,    // reads times that are long ago or far ahead
  kSwitches,  // reads no drift, and from some time on copies a time
  kFlaky,     // gives another answer now and then
};
constexpr uint64_t kSteps = 4;

struct Totals {
  uint64_t calls = 0, hits = 0, drifted_hits = 0, stale_drifted_hits = 0,
           shared = 0, later_fills = 0, runs = 0, refreshes = 0, questions = 0,
           proven = 0, revoked = 0, read = 0, purges = 0, left = 0;
};

class Schedule;

struct DriftCaller : public FlightCaller {
  DriftCaller(Schedule* schedule, const Asked& asked, bool stale, EntryRef old)
      : FlightCaller(asked.flight_key(), absl::InfiniteFuture(), stale,
                     static_cast<bool>(old)),
        schedule(schedule),
        asked(asked),
        old(std::move(old)) {}
  void OnSignal(FlightSignal signal) override;

  Schedule* const schedule;
  const Asked asked;
  const EntryRef old;
  std::weak_ptr<DriftCaller> self;
  bool refreshes = false;
  bool waiting = false;
  bool done = false;
};
using CallerRef = std::shared_ptr<DriftCaller>;

// A call of the function.
struct Run : public FlightCall {
  void Cancel() override { cancelled = true; }

  Asked asked;
  absl::Time started;
  bool cancelled = false;
  bool learns = false;
  bool may_ask = false;
  CallerRef owner;  // null once it has left, and for a refresh
  std::shared_ptr<Flight> flight;
  CallerRef seat;  // a released caller's
  bool refreshes = false;
  // The answer.
  std::string text;
  EntryRef older, entry;
  bool newer = false;
  bool purged = false;
};
using RunRef = std::shared_ptr<Run>;

class Schedule {
 public:
  Schedule(uint32_t seed, Totals* totals)
      : totals_(*totals), random_(seed), slow_(Draw(4) == 0) {
    settings::FunctionOptions options;
    options.tune = true;
    if (Draw(2) == 0) {
      options.policy.stale_while_revalidate = absl::Seconds(60);
    }
    if (Draw(2) == 0) options.policy.stale_if_error = absl::Seconds(60);
    static auto* const store = new ScriptedStore();
    state_ = std::make_unique<FunctionState>(options, store, &evidence_);
    FlightTable::Options flights;
    flights.max_released = 1 + Draw(3);
    flights.max_unattended = 1 + Draw(4);
    table_ = std::make_unique<FlightTable>(flights, instruments_.function(0));
    switches_ = kStart + Gap() * (10 + Draw(60));
  }

  void Go() {
    const int calls = 40 + Draw(100);
    absl::Time when = kStart;
    std::vector<Asked> now(kSteps);
    for (int i = 0; i < calls; ++i) {
      when += Gap() * Draw(1000) / 500;
      Asked& asked = now[Draw(3) == 0 ? Draw(kSteps) : 0];
      if (&asked == &now[0] && Draw(3) == 0) {
        // Bursts of one composite let its answers be proven.
        const size_t other = 1 + Draw(kSteps - 1);
        for (int j = 0; j < 6; ++j) {
          now[other].composite = other;
          Tick(&now[other]);
          At(when + absl::Seconds(j),
             [this, one = now[other]] { Arrive(one); });
        }
      }
      asked.composite = static_cast<uint64_t>(&asked - now.data());
      if (Draw(5) != 0) Tick(&asked);
      At(when, [this, asked] { Arrive(asked); });
      if (Draw(12) == 0) At(when + Late(), [this] { Purge(); });
    }
    int limit = 100'000;
    while (!events_.empty() && !::testing::Test::HasFatalFailure()) {
      ASSERT_GT(--limit, 0) << "never ends";
      const auto next = events_.begin();
      now_ = next->first;
      const std::function<void()> task = std::move(next->second);
      events_.erase(next);
      ++moment_;
      task();
    }
    if (!::testing::Test::HasFatalFailure()) Check();
  }

  void OnSignal(const CallerRef& caller, FlightSignal signal) {
    At(now_ + absl::Microseconds(Draw(2000)),
       [this, caller, signal = std::move(signal)] { Hear(caller, signal); });
  }

 private:
  int Draw(int n) { return static_cast<int>(random_() % n); }
  absl::Duration Gap() const {
    return slow_ ? absl::Minutes(4) : absl::Seconds(4);
  }
  absl::Duration Late() {
    return absl::Milliseconds(Draw(6) == 0 ? Draw(20'000) : Draw(900));
  }
  void Tick(Asked* asked) {
    ++asked->time;
    if (Draw(2) == 0) ++asked->version;
    if (Draw(15) == 0) ++asked->event;
  }
  // No two events are at the same time.
  void At(absl::Time when, std::function<void()> task) {
    when = std::max(when, now_ + absl::Nanoseconds(1));
    while (!events_.emplace(when, task).second) when += absl::Nanoseconds(1);
  }

  // ---- The function.

  static Step StepOf(const Asked& asked) {
    return static_cast<Step>(asked.composite);
  }
  // `altered`: its times, or its versions alone, are made up.
  std::string TextOf(const Asked& asked, bool times_altered) {
    const std::string text = absl::StrCat("composite ", asked.composite);
    switch (StepOf(asked)) {
      case Step::kPlain:
        return text;
      case Step::kReader:
        return text + (times_altered ? " far" : "");
      case Step::kSwitches:
        if (now_ < switches_) return text;
        return absl::StrCat(text, " ", times_altered ? 0 : asked.time);
      case Step::kFlaky:
        return text + (Draw(25) == 0 ? " or not" : "");
    }
    return text;
  }
  static Key AnswerOf(const std::string& text) {
    return {std::hash<std::string>()(text), 1};
  }

  // ---- Callers, as call.cc makes them.

  RequestKey Request(const Asked& asked) {
    kinds_ = asked.kinds();
    return {asked.key(), asked.drift(), &kinds_};
  }
  EntryRef Memory(const Asked& asked) {
    const auto found = memory_.find(asked.composite);
    return found == memory_.end() ? nullptr : found->second;
  }

  void Arrive(const Asked& asked) {
    ++totals_.calls;
    const EntryRef entry = Draw(30) == 0 ? nullptr : Memory(asked);
    Freshness fresh = Freshness::kSpent;
    if (entry) fresh = state_->FreshnessOf(Request(asked), *entry, now_);
    auto caller = std::make_shared<DriftCaller>(
        this, asked, static_cast<bool>(entry),
        fresh == Freshness::kIfError ? entry : nullptr);
    caller->self = caller;
    callers_.push_back(caller);
    if (fresh == Freshness::kFresh || fresh == Freshness::kWhileRevalidate) {
      Hit(caller, entry);
      if (fresh == Freshness::kWhileRevalidate) {
        ++totals_.stale_drifted_hits;
        Refresh(asked);
      }
      return;
    }
    found_[caller.get()] = static_cast<bool>(entry);
    Miss(caller);
    if (Draw(10) == 0) At(now_ + Late(), [this, caller] { GoAway(caller); });
  }

  void Refresh(const Asked& asked) {
    auto seat = std::make_shared<DriftCaller>(this, asked, true, nullptr);
    seat->refreshes = true;
    if (table_->EnterToRefresh(seat, now_) != FlightTable::Refresh::kLead) {
      return;
    }
    ++totals_.refreshes;
    const RunRef run = MakeRun(asked, /*found=*/true);
    run->refreshes = true;
    run->flight = table_->Launched(seat.get(), run);
  }

  void Miss(const CallerRef& caller) {
    Follow(caller, table_->Enter(caller, now_), /*again=*/true);
  }

  void Follow(const CallerRef& caller, Verdict verdict, bool again) {
    if (verdict == Verdict::kWait) {
      caller->waiting = true;
      return;
    }
    const EntryRef entry = Memory(caller->asked);
    if (again && state_->IsFresh(Request(caller->asked), entry, now_)) {
      if (verdict == Verdict::kLead) {
        table_->FinishFound(caller.get(), entry, now_);
      } else {
        table_->Leave(caller.get());
      }
      return Hit(caller, entry);
    }
    const RunRef run = MakeRun(caller->asked, found_[caller.get()] || entry);
    run->owner = caller;
    if (verdict == Verdict::kLead) {
      run->flight = table_->Launched(caller.get(), run);
      ASSERT_NE(run->flight, nullptr);
    } else {
      run->seat = caller;
    }
  }

  void Hear(const CallerRef& caller, const FlightSignal& signal) {
    if (!caller->waiting || caller->done) return;
    caller->waiting = false;
    if (signal.verdict == Verdict::kAnswer) {
      const EntryRef& entry = signal.entry;
      ASSERT_TRUE(entry);
      if (Purged(caller->asked, *entry)) return Miss(caller);
      if (entry->drift() != caller->asked.drift()) {
        ++totals_.later_fills;
        if (!state_->IsFresh(Request(caller->asked), entry, now_)) {
          return Miss(caller);
        }
      }
      ++totals_.shared;
      return Hit(caller, entry);
    }
    if (signal.verdict == Verdict::kOld) {
      if (state_->FreshnessOf(Request(caller->asked), *caller->old, now_) !=
          Freshness::kSpent) {
        return Hit(caller, caller->old);
      }
      return Miss(caller);
    }
    Follow(caller, signal.verdict,
           signal.verdict == Verdict::kLead || signal.queued);
  }

  void Done(const CallerRef& caller) {
    ASSERT_FALSE(caller->done) << "answered twice";
    caller->done = true;
  }

  void GoAway(const CallerRef& caller) {
    if (caller->done) return;
    ++totals_.left;
    Done(caller);
    caller->waiting = false;
    for (const RunRef& run : runs_) {
      if (run->owner != caller) continue;
      run->owner = nullptr;
      if (run->seat != nullptr) run->cancelled = true;
    }
    bool released = false;
    for (const RunRef& run : runs_) released |= run->seat == caller;
    if (!released) table_->Leave(caller.get());
  }

  // An entry answers the caller, at this moment's look-up.
  void Hit(const CallerRef& caller, const EntryRef& entry) {
    const Asked& asked = caller->asked;
    ++totals_.hits;
    Done(caller);
    const std::string text(entry->body());
    ASSERT_EQ(text.substr(0, 11), absl::StrCat("composite ", asked.composite));
    if (entry->drift() == asked.drift()) return;
    ++totals_.drifted_hits;
    ++hits_;
    // Each condition, by the record.
    const Record& record = records_[asked.composite];
    ASSERT_TRUE(record.proven) << text;
    ASSERT_EQ(record.proven_text, text);
    ASSERT_GE(record.proof_began, record.revoked) << "a revoked proof";
    ASSERT_GE(record.drifts.size(), 3u);
    ASSERT_LT(now_ - entry->started(), absl::Hours(1));
    ASSERT_LE(now_ - record.proven_at, absl::Hours(24));
    const Asked& filled = filled_.at(entry.get());
    const bool times = filled.time != asked.time || filled.event != asked.event;
    ASSERT_TRUE(record.reads == Reads::kNothing ||
                (record.reads == Reads::kTimes && !times));
    if (filled.event != asked.event) {
      ASSERT_GE(record.events.size(), 2u);
    }
    evidence_.OnHit(asked.key(), asked.kinds());
  }

  // ---- Runs, as upstream_run.cc makes them.

  RunRef MakeRun(const Asked& asked, bool found) {
    ++totals_.runs;
    auto run = std::make_shared<Run>();
    run->asked = asked;
    run->started = now_;
    run->learns = found || evidence_.Knows(asked.key());
    run->may_ask = run->learns && evidence_.MayAskLater(0, asked.key(),
                                                        asked.key(), 0.1, now_);
    runs_.push_back(run);
    At(now_ + Late(), [this, run] { OnAnswer(run); });
    return run;
  }

  void OnAnswer(const RunRef& run) {
    const int dice = run->cancelled ? 0 : Draw(14);
    if (dice == 0) {
      if (!run->cancelled) evidence_.OnFailure(0, now_);
      return EndRun(run, FlightEnd::kFailed);
    }
    run->text = TextOf(run->asked, /*times_altered=*/false);
    run->older = Memory(run->asked);
    // On other threads anything may come between.
    At(now_ + absl::Microseconds(Draw(3) == 0 ? Draw(5000) : 0),
       [this, run, dice] { Fill(run, /*stored=*/dice != 1); });
  }

  bool Purged(const Asked& asked, const cache::store::Entry& entry) {
    return entry.started() <= purged_[asked.composite];
  }

  void Fill(const RunRef& run, bool stored) {
    if (stored) {
      cache::store::EntryInfo info;
      info.started = run->started;
      info.arrived = now_;
      info.lifetime = slow_ ? absl::Hours(2) : absl::Seconds(60);
      info.retention = info.lifetime + absl::Minutes(10);
      info.ttl = info.lifetime;
      info.drift = run->asked.drift();
      const EntryRef entry = cache::store::Entry::Create(info, "", {run->text});
      filled_[entry.get()] = run->asked;
      kept_.push_back(entry);
      EntryRef& there = memory_[run->asked.composite];
      if (Purged(run->asked, *entry)) {
        run->purged = true;
      } else if (there && there->started() > run->started) {
        run->newer = true;
        run->entry = there;
      } else {
        there = run->entry = entry;
      }
      if (!there) memory_.erase(run->asked.composite);
    }
    At(now_ + absl::Microseconds(Draw(3) == 0 ? Draw(5000) : 0),
       [this, run] { Learn(run); });
  }

  TunedEntry Tuned(const std::string& text, absl::Time started,
                   const Key& drift) const {
    return {started, drift, AnswerOf(text), absl::Seconds(60)};
  }

  void Learn(const RunRef& run) {
    const Key key = run->asked.key();
    if (run->newer) return EndRun(run, FlightEnd::kShared);
    const DriftKinds kinds = run->asked.kinds();
    TunedRun learnt;
    learnt.step = learnt.key = key;
    learnt.kinds = &kinds;
    learnt.stored = static_cast<bool>(run->entry);
    learnt.for_caller = !run->refreshes;
    absl::optional<TunedEntry> before;
    if (run->learns) {
      if (run->older && !evidence_.Knows(key, run->older->started())) {
        before = Tuned(std::string(run->older->body()), run->older->started(),
                       *run->older->drift());
      }
    } else if (evidence_.Knows(key)) {
      learnt.stored = false;
    }
    learnt.entry = Tuned(run->text, run->started, run->asked.drift());
    Note(*run);
    const RunNote note =
        evidence_.OnRun(learnt, before.has_value() ? &*before : nullptr, now_);
    const bool purged = run->started <= purged_[run->asked.composite];
    // OnRun has ended the proof of an answer that is not stored.
    if (purged) evidence_.Forget(key);
    EndRun(run, run->entry ? FlightEnd::kShared : FlightEnd::kAlone);
    if (note.questions_due && run->may_ask && !purged) Ask(run);
  }

  void EndRun(const RunRef& run, FlightEnd end) {
    runs_.erase(std::find(runs_.begin(), runs_.end(), run));
    if (run->flight != nullptr) {
      table_->Finish(run->flight, end, run->entry, now_, run->newer,
                     end == FlightEnd::kFailed ? 14 : 0);
    }
    if (run->seat != nullptr) table_->Leave(run->seat.get());
    if (run->owner != nullptr) Done(run->owner);
  }

  // ---- Questions, as question.cc sends them.

  struct Proving {
    Evidence::Running running;
    Asked asked;
    std::string text;  // to compare with
    uint64_t began;    // the moment
    absl::Time began_at;
    int same = 0;  // in sequence
  };

  void Ask(const RunRef& run) {
    if (table_->CallersWait()) return;
    auto running = evidence_.Begin(run->asked.key(), 0.1, now_);
    if (!running.has_value()) return;
    ++begun_;
    ASSERT_TRUE(proving_.insert(run->asked.composite).second)
        << "two proofs of a key";
    ASSERT_LE(proving_.size(), 2u);
    auto proving = std::make_shared<Proving>(
        Proving{*std::move(running), run->asked, run->text, moment_, now_});
    Next(proving);
  }

  void Next(const std::shared_ptr<Proving>& proving) {
    const bool stops = Draw(25) == 0;  // a reload, or a caller waits
    if (proving->running.proof.ended() || stops || !table_->TakeSlot()) {
      return EndProof(*proving);
    }
    if (!evidence_.Take(&proving->running, now_)) {
      table_->ReturnSlot();
      return EndProof(*proving);
    }
    ++totals_.questions;
    ++questions_;
    // Often so late that runs, purges and refills come meanwhile.
    const absl::Duration late =
        Draw(3) == 0 ? absl::Milliseconds(Draw(40'000)) : Late();
    At(now_ + late, [this, proving] {
      const Question question = proving->running.proof.next();
      const bool altered = question.number != 0 && !question.versions_alone;
      Answered answered = Answered::kNone;
      if (Draw(20) != 0) {
        answered = TextOf(proving->asked, altered) == proving->text
                       ? Answered::kSame
                       : Answered::kDiffers;
      }
      const bool as_it_came = question.number == 0;
      if (!as_it_came) {
        proving->same = answered == Answered::kSame ? proving->same + 1 : 0;
      }
      if (answered == Answered::kNone) evidence_.OnFailure(0, now_);
      evidence_.Report(&proving->running, answered, now_);
      Record& record = records_[proving->asked.composite];
      if (proving->began > record.forgotten) {
        record.reads = std::max(record.reads, proving->running.proof.reads());
      }
      table_->ReturnSlot();
      Next(proving);
    });
  }

  void EndProof(Proving& proving) {
    evidence_.Abort(&proving.running);
    proving_.erase(proving.asked.composite);
    Record& record = records_[proving.asked.composite];
    if (proving.running.proof.reads() != Reads::kNothing) ++totals_.read;
    if (proving.same < Proof::kQuestions) return;
    if (proving.began >= record.revoked) ++totals_.proven;
    record.proven = true;
    record.proven_text = proving.text;
    record.proof_began = proving.began;
    record.proven_at = proving.began_at;
  }

  // ---- The record: what the function has shown of a composite.

  struct Record {
    std::string text;                                // of the last answer
    std::set<std::pair<uint64_t, uint64_t>> drifts;  // that got it
    std::set<uint32_t> events;
    uint64_t revoked = 0;    // the moment
    uint64_t forgotten = 0;  // the same, of what the step reads
    bool proven = false;
    std::string proven_text;
    uint64_t proof_began = 0;
    absl::Time proven_at;
    Reads reads = Reads::kNothing;
  };

  void Revoke(Record* record) {
    totals_.revoked += record->proven;
    record->proven = false;
    record->revoked = moment_;
  }
  void Forget(Record* record) {
    Revoke(record);
    record->drifts.clear();
    record->events.clear();
  }

  void Note(const Run& run) {
    Record& record = records_[run.asked.composite];
    const bool purged = run.started <= purged_[run.asked.composite];
    // An answer that is not stored ends the proof. The entry stays, and so does
    // its drift. A purged one ends the proof, too.
    if (!run.entry || purged) return Revoke(&record);
    if (run.text != record.text) Forget(&record);
    record.text = run.text;
    const Key drift = run.asked.drift();
    record.drifts.emplace(drift.high, drift.low);
    record.events.insert(run.asked.event);
  }

  void Purge() {
    ++totals_.purges;
    const auto purge = [this](uint64_t composite) {
      purged_[composite] = now_;
      memory_.erase(composite);
      Forget(&records_[composite]);
    };
    if (Draw(3) != 0) {
      const auto composite = static_cast<uint64_t>(Draw(kSteps));
      purge(composite);
      evidence_.Forget({composite, 7});
      table_->Detach({composite, 7});
      return;
    }
    evidence_.ForgetFunction(0);
    table_->DetachAll();
    for (uint64_t composite = 0; composite < kSteps; ++composite) {
      purge(composite);
      records_[composite].forgotten = moment_;
      records_[composite].reads = Reads::kNothing;
    }
  }

  void Check() {
    for (const auto& caller : callers_) EXPECT_TRUE(caller->done) << "hangs";
    EXPECT_TRUE(runs_.empty());
    EXPECT_TRUE(proving_.empty());
    EXPECT_TRUE(table_->GetStats().empty());
    EXPECT_EQ(table_->GetStats().unattended, 0);
    auto figures = evidence_.Figures(now_)[0];
    uint64_t ended = 0;
    for (const uint64_t proofs : figures.proofs) ended += proofs;
    EXPECT_EQ(ended, begun_);
    EXPECT_EQ(figures.hits, hits_);
    // The budget: 40, a tenth of the runs, and half of the hits.
    EXPECT_LE(static_cast<double>(questions_),
              40 + 0.1 * static_cast<double>(totals_.runs) +
                  0.5 * static_cast<double>(hits_));
  }

  Totals& totals_;
  std::mt19937 random_;
  const bool slow_;  // composites change more seldom, and entries live longer
  const telemetry::Instruments instruments_{{"function"}};
  Evidence evidence_;
  std::unique_ptr<FunctionState> state_;
  std::unique_ptr<FlightTable> table_;
  absl::Time now_ = kStart;
  absl::Time switches_;  // Step::kSwitches
  uint64_t moment_ = 0;
  std::map<absl::Time, std::function<void()>> events_;
  std::map<uint64_t, EntryRef> memory_;
  std::map<uint64_t, absl::Time> purged_;
  std::map<const cache::store::Entry*, Asked> filled_;
  std::vector<EntryRef> kept_;
  std::map<uint64_t, Record> records_;
  std::vector<CallerRef> callers_;
  std::map<const DriftCaller*, bool> found_;
  std::vector<RunRef> runs_;
  std::set<uint64_t> proving_;
  uint64_t begun_ = 0, questions_ = 0, hits_ = 0;
  DriftKinds kinds_;  // of the request at the gate
};

void DriftCaller::OnSignal(FlightSignal signal) {
  const CallerRef caller = self.lock();
  ASSERT_NE(caller, nullptr) << "a refresh gets no signal";
  schedule->OnSignal(caller, std::move(signal));
}

void TrySchedules(uint32_t first, uint32_t count) {
  Totals totals;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    Schedule schedule(seed, &totals);
    schedule.Go();
    if (::testing::Test::HasFailure()) return;
  }
  std::printf(
      "%u schedules: %lu calls, %lu hits, of them %lu across drift; %lu "
      "stale; %lu shared; %lu later fills of other drift; %lu runs, of them "
      "%lu refreshes; %lu questions; %lu proven, %lu revoked, %lu read; %lu "
      "purges; %lu left\n",
      count, totals.calls, totals.hits, totals.drifted_hits,
      totals.stale_drifted_hits, totals.shared, totals.later_fills, totals.runs,
      totals.refreshes, totals.questions, totals.proven, totals.revoked,
      totals.read, totals.purges, totals.left);
  // The schedules reach what they are meant to.
  EXPECT_GT(totals.drifted_hits, count);
  EXPECT_GT(totals.proven, count / 2);
  EXPECT_GT(totals.revoked, count / 20);
  EXPECT_GT(totals.read, count / 10);
  EXPECT_GT(totals.refreshes, count / 20);
  EXPECT_GT(totals.later_fills, count / 100);
}

TEST(DriftScheduleTest, NoHitUsesAProofThatWasRevoked) {
  TrySchedules(1, fncache::testing::FewerSanitized(1000));
}

TEST(DriftScheduleHeavyTest, NoHitUsesAProofThatWasRevoked) {
  TrySchedules(100'000, fncache::testing::ShortOrLong(1000, 20'000));
}

}  // namespace
}  // namespace fncache::proxy::serving
