// SPDX-License-Identifier: Apache-2.0
#include "runner/load/model/reconcile_queue.h"

#include <algorithm>
#include <map>
#include <utility>

namespace fncache::runner::load::model {
namespace {

// How long a reconcile takes while composites settle, so that a function whose
// answers never settle does not stop the time.
constexpr absl::Duration kSettlingRound = absl::Milliseconds(100);
constexpr absl::Duration kLongestBackoff = absl::Seconds(30);
// Answers are compared in the last pipelines before a composite counts as one
// that never settles: several, since not every two of them need to differ.
constexpr int kCompared = 6;
// Reconciles that one call of Pump starts. Beyond it the scheduler runs other
// things first, and another thread may continue.
constexpr int kStartsAtOnce = 32;

absl::Duration Backoff(int failures) {  // of the first it is 0
  return failures >= 5 ? kLongestBackoff : absl::Seconds(1 << failures);
}

// kMostChanging of the fields at most, those that most composites have first.
std::vector<std::string> MostFrequent(
    const std::map<std::string, uint64_t>& times) {
  std::vector<std::pair<uint64_t, std::string>> sorted;
  for (const auto& [field, count] : times) sorted.emplace_back(count, field);
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> fields;
  for (auto& [count, field] : sorted) {
    if (fields.size() == kMostChanging) break;
    fields.push_back(std::move(field));
  }
  return fields;
}

}  // namespace

ReconcileQueue::ReconcileQueue(const ModelOptions& options,
                               const Templates& templates, int composites,
                               Agenda* agenda,
                               std::function<void(const PipelineStart&)> begin)
    : options_(options),
      templates_(templates),
      agenda_(agenda),
      begin_(std::move(begin)) {
  MutexLock lock(&mutex_);
  composites_ = std::vector<Composite>(composites);
  for (int i = 0; i < composites; ++i) {
    composites_[i].requeue = SplitMix64(options_.seed, i, kForRequeue);
  }
  pools_ = std::vector<Pool>(templates.kinds());
}

void ReconcileQueue::Create(int i) {
  MutexLock lock(&mutex_);
  if (stopped_) return;
  composites_[i].exists = true;
  composites_[i].created = agenda_->Now();
  ++counters_.composites;
  Admit(i, 1, Trigger::kCreate);
}

void ReconcileQueue::Events(int i, const std::vector<int>& costs) {
  MutexLock lock(&mutex_);
  for (const int cost : costs) Admit(i, cost, Trigger::kEvent);
}

bool ReconcileQueue::Resync(int i) {
  MutexLock lock(&mutex_);
  if (stopped_) return false;
  const size_t watched = options_.realtime ? composites_[i].composed + 1 : 1;
  for (size_t k = 0; k < watched; ++k) Admit(i, 2, Trigger::kResync);
  return true;
}

void ReconcileQueue::Restart(int i) {
  MutexLock lock(&mutex_);
  Composite& composite = composites_[i];
  if (!composite.exists) return;
  composite.failures = 0;
  composite.breaker = Breaker();
  composite.after_restart = true;
  Enqueue(i, Trigger::kRestart);
}

void ReconcileQueue::StartTimer(int i) {
  MutexLock lock(&mutex_);
  Composite& composite = composites_[i];
  composite.failures = 0;
  if (composite.wait <= absl::ZeroDuration()) return;
  SplitMix64 random(options_.seed, i, kForPhase);
  SetTimer(i, random.Uniform() * composite.wait, Trigger::kTimer);
}

void ReconcileQueue::Enqueue(int i, Trigger trigger) {
  Composite& composite = composites_[i];
  if (!composite.exists || stopped_) return;
  ++composite.timer;
  if (composite.running) {
    if (!composite.again) composite.again_trigger = trigger;
    composite.again = true;
    return;
  }
  if (composite.queued) return;
  absl::Time due = agenda_->Now();
  if (settles_) {
    if (AtItsBound(composite)) return;
    due += kSettlingRound;
  }
  composite.queued = true;
  composite.trigger = trigger;
  composite.due = due;
  Pool* const pool = PoolOf(i);
  pool->waiting.push_back(i);
  PumpSoon(pool, due);
}

void ReconcileQueue::PumpSoon(Pool* pool, absl::Time when) {
  if (pool->pump_is_due) return;
  pool->pump_is_due = true;
  const size_t index = static_cast<size_t>(pool - pools_.data());
  agenda_->At(when, [this, index] { Pump(index); });
}

void ReconcileQueue::Pump(size_t index) {
  for (int started = 0;; ++started) {
    PipelineStart start;
    {
      MutexLock lock(&mutex_);
      Pool& pool = pools_[index];
      if (started == 0) pool.pump_is_due = false;
      if (stopped_ || pool.waiting.empty() || pool.busy >= options_.workers) {
        return;
      }
      if (started >= kStartsAtOnce) return PumpSoon(&pool, agenda_->Now());
      start.composite = pool.waiting.front();
      pool.waiting.pop_front();
      ++pool.busy;
      ++in_flight_;
      Composite& composite = composites_[start.composite];
      composite.queued = false;
      composite.running = true;
      start.trigger = composite.trigger;
      start.started = agenda_->Now();
      start.due = std::min(composite.due, start.started);
      start.settling = settles_;
    }
    begin_(start);
  }
}

void ReconcileQueue::SetTimer(int i, absl::Duration after, Trigger trigger) {
  const uint64_t timer = ++composites_[i].timer;
  if (!settles_) ++counters_.requeues;
  agenda_->At(agenda_->Now() + after, [this, i, timer, trigger] {
    MutexLock lock(&mutex_);
    if (composites_[i].timer == timer) Enqueue(i, trigger);
  });
}

bool ReconcileQueue::Admitted(Composite* composite, int cost) {
  if (!options_.breaker || !options_.realtime || settles_) return true;
  const bool was_open = composite->breaker.open();
  const bool admitted = composite->breaker.Admit(cost, agenda_->Now());
  if (!was_open && composite->breaker.open()) ++counters_.breaker_openings;
  if (!admitted) ++counters_.events_dropped;
  return admitted;
}

bool ReconcileQueue::AtItsBound(const Composite& composite) const {
  return composite.rounds >= kSettlingRounds ||
         composite.settling_writes >= SettlingWrites(options_);
}

void ReconcileQueue::Prepare(Reconcile* reconcile) const {
  MutexLock lock(&mutex_);
  const Composite& composite = composites_[reconcile->start.composite];
  reconcile->responsive = !composite.breaker.open(agenda_->Now());
  reconcile->compared =
      reconcile->start.settling
          ? composite.rounds >= kSettlingRounds - kCompared ||
                composite.settling_writes >=
                    SettlingWrites(options_) - kCompared
          : options_.start == StartFrom::kCreate &&
                composite.differing >= kDiffering - kCompared &&
                composite.differing < kDiffering;
}

absl::optional<absl::Duration> ReconcileQueue::Count(
    const Reconcile& reconcile) {
  MutexLock lock(&mutex_);
  counters_.deleted += reconcile.deleted;
  Composite& composite = composites_[reconcile.start.composite];
  const auto lost = [&composite] {
    return composite.settled_ready && !composite.ready && !composite.unmarked;
  };
  const bool was_lost = lost();
  if (composite.unmarked != reconcile.unmarked) {
    composite.unmarked = reconcile.unmarked;
    counters_.unmarked += reconcile.unmarked ? 1 : -1;
  }
  const bool same = composite.ready == reconcile.ready;
  composite.ready = reconcile.ready;
  if (lost() != was_lost) counters_.lost_ready += was_lost ? -1 : 1;
  if (same) return absl::nullopt;
  counters_.ready += reconcile.ready ? 1 : -1;
  if (!reconcile.ready || composite.was_ready) return absl::nullopt;
  composite.was_ready = true;
  return agenda_->Now() - composite.created;
}

void ReconcileQueue::NoteAnswers(const Reconcile& reconcile, bool ok,
                                 Composite* composite) {
  if (reconcile.start.settling) {
    const bool settled = ok && reconcile.writes == 0;
    composite->rounds = settled ? 0 : composite->rounds + 1;
    if (!settled) ++composite->settling_writes;
    if (!reconcile.compared) composite->changing.clear();
  } else if (reconcile.as_before || reconcile.differs) {
    composite->differing = reconcile.as_before || composite->differing < 0
                               ? -1
                               : composite->differing + 1;
  } else {
    return;
  }
  composite->changing.insert(reconcile.changing.begin(),
                             reconcile.changing.end());
}

void ReconcileQueue::End(const Reconcile& reconcile, const PipelineEnd& end) {
  const int i = reconcile.start.composite;
  MutexLock lock(&mutex_);
  Composite& composite = composites_[i];
  NoteAnswers(reconcile, end.status.ok(), &composite);
  // Its own writes' events come while it runs, so that all of them together
  // are one echo.
  for (const int cost : reconcile.costs) Admit(i, cost, Trigger::kEvent);
  composite.running = false;
  composite.composed = reconcile.composed;
  composite.failed = !end.status.ok();
  if (settles_) {
    ++settled_.pipelines;
    if (end.status.ok()) ++counters_.settled_ok;
    if (!end.status.ok() && first_failure_.ok()) first_failure_ = end.status;
  }
  Pool* const pool = PoolOf(i);
  --pool->busy;
  Requeue(reconcile, end);
  if (!pool->waiting.empty()) PumpSoon(pool, agenda_->Now());
  --in_flight_;
  idle_.SignalAll();
}

void ReconcileQueue::Requeue(const Reconcile& reconcile,
                             const PipelineEnd& end) {
  const int i = reconcile.start.composite;
  Composite& composite = composites_[i];
  const bool backoff =
      !end.status.ok() || (!options_.realtime && !reconcile.ready);
  absl::Duration after;
  if (backoff) {
    after = Backoff(composite.failures++);
  } else {
    composite.failures = 0;
    composite.wait = !options_.realtime               ? options_.poll_interval
                     : end.ttl > absl::ZeroDuration() ? end.ttl
                                                      : reconcile.annotated;
    after = composite.requeue.Jitter(composite.wait);
  }
  if (composite.after_restart) {
    composite.after_restart = false;
    if (!composite.again) composite.again_trigger = Trigger::kRestart;
    composite.again = true;
  }
  if (composite.again) {
    composite.again = false;
    Enqueue(i, composite.again_trigger);
    return;
  }
  // A composite that has settled waits for the run to begin, and before that
  // for events of its providers, where these reconcile it.
  if (settles_ && end.status.ok() && reconcile.unchanged &&
      (!reconcile.pending || options_.realtime)) {
    return;
  }
  if (settles_ && AtItsBound(composite)) return;
  if (after > absl::ZeroDuration()) {
    SetTimer(i, after, backoff ? Trigger::kBackoff : Trigger::kTimer);
  }
}

void ReconcileQueue::BeginOther() {
  MutexLock lock(&mutex_);
  ++in_flight_;
}

void ReconcileQueue::EndOther() {
  MutexLock lock(&mutex_);
  --in_flight_;
  idle_.SignalAll();
}

void ReconcileQueue::Stop() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  idle_.SignalAll();
}

bool ReconcileQueue::stopped() const {
  MutexLock lock(&mutex_);
  return stopped_;
}

bool ReconcileQueue::Idle() const {
  MutexLock lock(&mutex_);
  return in_flight_ == 0;
}

void ReconcileQueue::WaitUntilIdle() {
  MutexLock lock(&mutex_);
  while (in_flight_ > 0) idle_.Wait(&mutex_);
}

void ReconcileQueue::BeginSettling() {
  MutexLock lock(&mutex_);
  settles_ = true;
  settled_ = Settled();
}

void ReconcileQueue::CountSettlingCall() {
  MutexLock lock(&mutex_);
  ++settled_.calls;
}

void ReconcileQueue::NoteOtherCause(int i) {
  MutexLock lock(&mutex_);
  composites_[i].rounds = 0;
}

bool ReconcileQueue::SettleStep(SimulatedScheduler* time, absl::Time end) {
  // Time does not advance while anything is in flight.
  if (time->RunOne(Idle() ? end : time->Now())) return true;
  MutexLock lock(&mutex_);
  if (in_flight_ == 0) return time->Next() <= end;
  if (time->Next() > time->Now()) {
    idle_.WaitWithTimeout(&mutex_, absl::Milliseconds(100));
  }
  return true;
}

absl::StatusOr<Settled> ReconcileQueue::EndSettling() {
  MutexLock lock(&mutex_);
  settles_ = false;
  settled_.ready = counters_.ready;
  for (Pool& pool : pools_) {
    pool.waiting.clear();
    pool.pump_is_due = false;
  }
  std::map<std::string, uint64_t> changing;
  for (Composite& composite : composites_) {
    composite.queued = false;
    composite.again = false;
    ++composite.timer;
    composite.settled_ready = composite.ready;
    if (!AtItsBound(composite) || composite.failed) continue;
    ++settled_.never;
    for (const std::string& field : composite.changing) ++changing[field];
  }
  settled_.changing = MostFrequent(changing);
  if (counters_.settled_ok == 0 && !first_failure_.ok()) return first_failure_;
  return settled_;
}

Counters ReconcileQueue::counters() const {
  MutexLock lock(&mutex_);
  Counters counters = counters_;
  counters.in_flight = in_flight_;
  for (const Pool& pool : pools_) counters.queued += pool.waiting.size();
  return counters;
}

Restless ReconcileQueue::restless() const {
  Restless restless;
  std::map<std::string, uint64_t> changing;
  MutexLock lock(&mutex_);
  for (const Composite& composite : composites_) {
    if (composite.differing < kDiffering) continue;
    ++restless.composites;
    for (const std::string& field : composite.changing) ++changing[field];
  }
  restless.changing = MostFrequent(changing);
  return restless;
}

Demand ReconcileQueue::demand() const {
  Demand demand;
  const double hourly = options_.churn.spec + options_.churn.composed +
                        options_.churn.status + options_.churn.noop;
  MutexLock lock(&mutex_);
  for (const Composite& composite : composites_) {
    if (!composite.exists) continue;
    absl::Duration wait = composite.wait;
    if (wait <= absl::ZeroDuration()) wait = options_.resync;
    demand.churn += hourly / 3600;
    if (wait == absl::InfiniteDuration()) continue;
    demand.pipelines += 1 / absl::ToDoubleSeconds(wait);
    demand.longest = std::max(demand.longest, wait);
    if (demand.shortest == absl::ZeroDuration() || wait < demand.shortest) {
      demand.shortest = wait;
    }
  }
  return demand;
}

}  // namespace fncache::runner::load::model
