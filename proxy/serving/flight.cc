// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/flight.h"

#include <deque>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "proxy/telemetry/instruments.h"

namespace fncache::proxy::serving {

// Guarded by the mutex of its key's shard. `closed`: it is not in the table any
// more, so a later report about it is ignored.
class Flight {
 public:
  Flight(const FlightKey& key, bool stale) : key(key), stale(stale) {}

  const FlightKey key;
  const bool stale;  // its first caller is
  bool closed = false;
  FlightCallerPtr leader;  // null once it has left
  std::map<uint64_t, FlightCallerPtr> joined;
  std::shared_ptr<FlightCall> call;  // null until launched
  bool outlives = false;             // its callers
  bool unattended = false;           // it takes a `max_unattended` slot
  uint64_t abandonment = 0;          // 0: it is not abandoned
};

bool ReleaseGate::Enter(const FlightCallerPtr& caller) {
  MutexLock lock(&mutex_);
  if (running_ < max_running_) {
    ++running_;
    caller->gate_state_ = FlightCaller::GateState::kRunning;
    instruments_.ReleasedRunning(1);
    return true;
  }
  queue_.emplace(caller->number_, caller);
  caller->gate_state_ = FlightCaller::GateState::kQueued;
  instruments_.ReleasedWaiting(1);
  return false;
}

FlightCallerPtr ReleaseGate::Leave(FlightCaller* caller) {
  // A caller that leaves the queue is destroyed after the mutex is unlocked.
  FlightCallerPtr gone;
  FlightCallerPtr next;
  MutexLock lock(&mutex_);
  const auto state =
      std::exchange(caller->gate_state_, FlightCaller::GateState::kNone);
  if (state == FlightCaller::GateState::kNone) return nullptr;
  if (state == FlightCaller::GateState::kQueued) {
    const auto it = queue_.find(caller->number_);
    gone = std::move(it->second);
    queue_.erase(it);
    instruments_.ReleasedWaiting(-1);
    return nullptr;
  }
  // More callers than `max_running_` may run after SetMaxRunning.
  if (queue_.empty() || running_ > max_running_) {
    --running_;
    instruments_.ReleasedRunning(-1);
    return nullptr;
  }
  next = std::move(queue_.begin()->second);
  queue_.erase(queue_.begin());
  next->gate_state_ = FlightCaller::GateState::kRunning;
  instruments_.ReleasedWaiting(-1);
  return next;
}

std::vector<FlightCallerPtr> ReleaseGate::SetMaxRunning(int max_running) {
  std::vector<FlightCallerPtr> next;
  MutexLock lock(&mutex_);
  max_running_ = max_running;
  while (running_ < max_running_ && !queue_.empty()) {
    next.push_back(std::move(queue_.begin()->second));
    queue_.erase(queue_.begin());
    next.back()->gate_state_ = FlightCaller::GateState::kRunning;
    ++running_;
    instruments_.ReleasedWaiting(-1);
    instruments_.ReleasedRunning(1);
  }
  return next;
}

int ReleaseGate::running() const {
  MutexLock lock(&mutex_);
  return running_;
}

int ReleaseGate::queued() const {
  MutexLock lock(&mutex_);
  return static_cast<int>(queue_.size());
}

struct FlightTable::Shard {
  // Forgets keys whose time has passed.
  void Purge(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    while (!until.empty() && until.front().first <= now) {
      const auto it = uncollapsed.find(until.front().second);
      if (it != uncollapsed.end() && it->second == until.front().first) {
        uncollapsed.erase(it);
      }
      until.pop_front();
    }
  }

  // Takes the flight out of the table; false if no caller could join it.
  bool Remove(const Flight& flight) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (detached.erase(&flight) > 0) return false;
    const auto it = flights.find(flight.key);
    if (it == flights.end() || it->second.get() != &flight) return false;
    flights.erase(it);
    return true;
  }
  // Misses of the key are not collapsed for `how_long` from `now`.
  void Uncollapse(const FlightKey& key, absl::Time now, absl::Duration how_long)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Purge(now);
    uncollapsed[key] = now + how_long;
    until.emplace_back(now + how_long, key);
  }

  mutable Mutex mutex;
  absl::flat_hash_map<FlightKey, std::shared_ptr<Flight>> flights
      ABSL_GUARDED_BY(mutex);
  // Flights that no caller can join any more.
  absl::flat_hash_map<const Flight*, std::shared_ptr<Flight>> detached
      ABSL_GUARDED_BY(mutex);
  // Keys that are not collapsed, with the end of that time; `until` has them in
  // order of time.
  absl::flat_hash_map<FlightKey, absl::Time> uncollapsed ABSL_GUARDED_BY(mutex);
  std::deque<std::pair<absl::Time, FlightKey>> until ABSL_GUARDED_BY(mutex);
};

// Collects actions that must wait until no mutex is locked. Until then it also
// keeps alive what the table released, so that no destructor of a caller runs
// while a mutex is locked.
struct FlightTable::Actions {
  Actions() = default;
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  ~Actions() {
    for (auto& [caller, signal] : signals) caller->OnSignal(std::move(signal));
    if (cancel != nullptr) cancel->Cancel();
    if (abandoned != nullptr) abandoned->OnAbandoned(abandonment);
  }
  void Tell(FlightCallerPtr caller, FlightSignal signal) {
    signals.emplace_back(std::move(caller), std::move(signal));
  }

  std::vector<std::pair<FlightCallerPtr, FlightSignal>> signals;
  std::shared_ptr<FlightCall> cancel;
  std::shared_ptr<FlightCall> abandoned;
  uint64_t abandonment = 0;
  FlightCallerPtr gone;
  std::shared_ptr<Flight> ended;
};

namespace {

constexpr size_t kShards = 16;

FlightSignal LeadSignal() {
  FlightSignal signal;
  signal.verdict = Verdict::kLead;
  return signal;
}

FlightSignal RunSignal(bool queued) {
  FlightSignal signal;
  signal.verdict = Verdict::kRun;
  signal.queued = queued;
  return signal;
}

FlightSignal OldSignal(int code) {
  FlightSignal signal;
  signal.verdict = Verdict::kOld;
  signal.code = code;
  return signal;
}

}  // namespace

FlightTable::FlightTable(const Options& options,
                         const telemetry::FunctionInstruments& instruments)
    : options_(options),
      instruments_(instruments),
      gate_(options.max_released, instruments) {
  for (size_t i = 0; i < kShards; ++i) {
    shards_.push_back(std::make_unique<Shard>());
  }
}

FlightTable::~FlightTable() = default;

FlightTable::Shard& FlightTable::ShardOf(const FlightKey& key) const {
  // All flights of a key are in one, so that Detach finds them.
  return *shards_[key.key.high % kShards];
}

Verdict FlightTable::Enter(const FlightCallerPtr& caller, absl::Time now) {
  Shard& shard = ShardOf(caller->key_);
  MutexLock lock(&shard.mutex);
  shard.Purge(now);
  caller->number_ = next_number_.fetch_add(1, std::memory_order_relaxed);
  const auto found = shard.flights.find(caller->key_);
  if (found != shard.flights.end()) {
    caller->role_ = FlightCaller::Role::kJoined;
    caller->flight_ = found->second;
    caller->stale_ |= found->second->stale;
    found->second->joined.emplace(caller->number_, caller);
    if (std::exchange(found->second->abandonment, 0) != 0) {
      FreeSlot(found->second.get());
      instruments_.AbandonedRunning(-1);
    }
    instruments_.CallerJoined();
    return Verdict::kWait;
  }
  if (shard.uncollapsed.contains(caller->key_)) {
    caller->role_ = FlightCaller::Role::kReleased;
    return gate_.Enter(caller) ? Verdict::kRun : Verdict::kWait;
  }
  shard.flights.emplace(caller->key_, Open(caller));
  return Verdict::kLead;
}

FlightTable::Refresh FlightTable::EnterToRefresh(const FlightCallerPtr& leader,
                                                 absl::Time now) {
  Shard& shard = ShardOf(leader->key_);
  MutexLock lock(&shard.mutex);
  shard.Purge(now);
  if (shard.flights.contains(leader->key_) ||
      shard.uncollapsed.contains(leader->key_)) {
    return Refresh::kNotNeeded;
  }
  if (!TakeSlot()) return Refresh::kFull;
  auto flight = Open(leader);
  flight->unattended = true;
  shard.flights.emplace(leader->key_, std::move(flight));
  return Refresh::kLead;
}

std::shared_ptr<Flight> FlightTable::Open(const FlightCallerPtr& leader) {
  auto flight = std::make_shared<Flight>(leader->key_, leader->stale_);
  flight->leader = leader;
  leader->role_ = FlightCaller::Role::kLeader;
  leader->flight_ = flight;
  instruments_.FlightOpened();
  return flight;
}

bool FlightTable::TakeSlot() {
  int taken = unattended_.load(std::memory_order_relaxed);
  while (taken < options_.max_unattended) {
    if (unattended_.compare_exchange_weak(taken, taken + 1,
                                          std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

void FlightTable::FreeSlot(Flight* flight) {
  if (std::exchange(flight->unattended, false)) ReturnSlot();
}

void FlightTable::Close(Flight* flight) {
  flight->closed = true;
  FreeSlot(flight);
  if (std::exchange(flight->abandonment, 0) != 0) {
    instruments_.AbandonedRunning(-1);
  }
  instruments_.FlightClosed();
}

std::shared_ptr<Flight> FlightTable::Launched(FlightCaller* leader,
                                              std::shared_ptr<FlightCall> call,
                                              bool outlives) {
  Shard& shard = ShardOf(leader->key_);
  MutexLock lock(&shard.mutex);
  if (leader->role_ != FlightCaller::Role::kLeader) return nullptr;
  leader->flight_->call = std::move(call);
  leader->flight_->outlives = outlives;
  return leader->flight_;
}

void FlightTable::FinishFound(FlightCaller* leader,
                              cache::store::EntryRef entry, absl::Time now) {
  std::shared_ptr<Flight> flight;
  {
    Shard& shard = ShardOf(leader->key_);
    MutexLock lock(&shard.mutex);
    if (leader->role_ != FlightCaller::Role::kLeader) return;
    flight = leader->flight_;
  }
  Finish(flight, FlightEnd::kShared, std::move(entry), now, /*found=*/true);
}

void FlightTable::Finish(const std::shared_ptr<Flight>& flight, FlightEnd end,
                         cache::store::EntryRef entry, absl::Time now,
                         bool found, int code) {
  Actions actions;
  std::map<uint64_t, FlightCallerPtr> joined;
  Shard& shard = ShardOf(flight->key);
  MutexLock lock(&shard.mutex);
  if (flight->closed) return;
  if (flight->abandonment != 0 && end == FlightEnd::kShared) {
    instruments_.AbandonedFinished();
  }
  Close(flight.get());
  const bool listed = shard.Remove(*flight);
  if (flight->leader != nullptr) {
    flight->leader->role_ = FlightCaller::Role::kNone;
    flight->leader->flight_ = nullptr;
    actions.gone = std::move(flight->leader);
  }
  flight->call = nullptr;
  joined.swap(flight->joined);

  if (end == FlightEnd::kDeadline && !joined.empty()) {
    // The waiting caller with the latest deadline leads: that deadline ends no
    // other caller's wait before that caller's own does.
    auto longest = joined.begin();
    for (auto it = joined.begin(); it != joined.end(); ++it) {
      if (it->second->deadline_ > longest->second->deadline_) longest = it;
    }
    auto next = std::make_shared<Flight>(flight->key, flight->stale);
    next->leader = std::move(longest->second);
    joined.erase(longest);
    next->leader->role_ = FlightCaller::Role::kLeader;
    next->leader->flight_ = next;
    for (auto& [number, caller] : joined) caller->flight_ = next;
    next->joined = std::move(joined);
    instruments_.CallerLeft();
    instruments_.FlightOpened();
    actions.Tell(next->leader, LeadSignal());
    // Its call has not started: others may join, unless the key has another
    // flight by now.
    if (!shard.flights.emplace(flight->key, next).second) {
      shard.detached.emplace(next.get(), next);
    }
    return;
  }

  const bool alone = end == FlightEnd::kAlone || end == FlightEnd::kFailed;
  // The end of a flight from before a purge says nothing about later flights.
  if (alone && listed) {
    shard.Uncollapse(flight->key, now, options_.uncollapsed);
  }
  actions.signals.reserve(joined.size());
  for (auto& [number, caller] : joined) {
    caller->flight_ = nullptr;
    instruments_.CallerLeft();
    if (end == FlightEnd::kFailed && caller->has_old_) {
      caller->role_ = FlightCaller::Role::kNone;
      actions.Tell(std::move(caller), OldSignal(code));
      continue;
    }
    if (alone) {
      caller->role_ = FlightCaller::Role::kReleased;
      instruments_.CallerReleased();
      if (gate_.Enter(caller))
        actions.Tell(std::move(caller), RunSignal(/*queued=*/false));
      continue;
    }
    caller->role_ = FlightCaller::Role::kNone;
    FlightSignal answer;
    answer.verdict = Verdict::kAnswer;
    answer.entry = entry;
    answer.found = found;
    actions.Tell(std::move(caller), std::move(answer));
  }
}

bool FlightTable::Leave(FlightCaller* caller) {
  Actions actions;
  Shard& shard = ShardOf(caller->key_);
  MutexLock lock(&shard.mutex);
  const auto role = std::exchange(caller->role_, FlightCaller::Role::kNone);
  const std::shared_ptr<Flight> flight = std::move(caller->flight_);
  caller->flight_ = nullptr;
  switch (role) {
    case FlightCaller::Role::kNone:
      return false;
    case FlightCaller::Role::kReleased: {
      FlightCallerPtr next = gate_.Leave(caller);
      if (next != nullptr)
        actions.Tell(std::move(next), RunSignal(/*queued=*/true));
      return false;
    }
    case FlightCaller::Role::kJoined: {
      const auto it = flight->joined.find(caller->number_);
      actions.gone = std::move(it->second);
      flight->joined.erase(it);
      instruments_.CallerLeft();
      if (flight->leader != nullptr) return true;
      break;
    }
    case FlightCaller::Role::kLeader: {
      actions.gone = std::move(flight->leader);
      flight->leader = nullptr;
      if (flight->call != nullptr || flight->joined.empty()) break;
      // A leader that left before it called is replaced by a caller that has
      // joined.
      flight->leader = std::move(flight->joined.begin()->second);
      flight->joined.erase(flight->joined.begin());
      flight->leader->role_ = FlightCaller::Role::kLeader;
      instruments_.CallerLeft();
      actions.Tell(flight->leader, LeadSignal());
      return false;
    }
  }
  // The leader has left. While others wait, its call continues.
  const bool joined = role == FlightCaller::Role::kJoined;
  if (!flight->joined.empty()) return joined;
  if (flight->outlives) {
    if (flight->call->MayBeAbandoned() && TakeSlot()) {
      flight->unattended = true;
      flight->abandonment =
          next_abandonment_.fetch_add(1, std::memory_order_relaxed);
      actions.abandoned = flight->call;
      actions.abandonment = flight->abandonment;
      instruments_.CallAbandoned();
      instruments_.AbandonedRunning(1);
      return joined;
    }
    instruments_.AbandonedRefused();
  }
  Close(flight.get());
  shard.Remove(*flight);
  actions.cancel = std::move(flight->call);
  actions.ended = flight;
  return joined;
}

void FlightTable::EndAbandoned(const std::shared_ptr<Flight>& flight,
                               uint64_t abandonment) {
  Actions actions;
  Shard& shard = ShardOf(flight->key);
  MutexLock lock(&shard.mutex);
  if (flight->closed || flight->abandonment != abandonment) return;
  Close(flight.get());
  shard.Remove(*flight);
  actions.cancel = std::move(flight->call);
}

size_t FlightTable::Detach(const cache::key::Key& key) {
  Shard& shard = ShardOf(key);
  MutexLock lock(&shard.mutex);
  size_t count = 0;
  for (auto it = shard.flights.begin(); it != shard.flights.end();) {
    const auto next = it++;
    if (!(next->first.key == key)) continue;
    const Flight* const flight = next->second.get();
    shard.detached.emplace(flight, std::move(next->second));
    shard.flights.erase(next);
    ++count;
  }
  return count;
}

size_t FlightTable::DetachAll() {
  size_t count = 0;
  for (const auto& shard : shards_) {
    MutexLock lock(&shard->mutex);
    count += shard->flights.size();
    for (auto& [key, flight] : shard->flights) {
      const Flight* const is = flight.get();
      shard->detached.emplace(is, std::move(flight));
    }
    shard->flights.clear();
  }
  return count;
}

void FlightTable::SetMaxReleased(int max_released) {
  Actions actions;
  for (FlightCallerPtr& caller : gate_.SetMaxRunning(max_released)) {
    actions.Tell(std::move(caller), RunSignal(/*queued=*/true));
  }
}

FlightTable::Stats FlightTable::GetStats() const {
  Stats stats;
  for (const auto& shard : shards_) {
    MutexLock lock(&shard->mutex);
    stats.flights += shard->flights.size() + shard->detached.size();
    stats.uncollapsed += shard->uncollapsed.size();
    const auto count = [&stats](const Flight& flight) {
      stats.callers += flight.joined.size();
      if (flight.leader != nullptr) ++stats.callers;
    };
    for (const auto& [key, flight] : shard->flights) count(*flight);
    for (const auto& [is, flight] : shard->detached) count(*flight);
  }
  stats.running = gate_.running();
  stats.queued = gate_.queued();
  stats.unattended = unattended_.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace fncache::proxy::serving
