// SPDX-License-Identifier: Apache-2.0
// Flights: they decide which of the callers that missed one key calls the
// function, and which wait for that answer; DESIGN's "Flights". With tuning,
// they are for one key and one drift.
//
// A FlightTable keeps one function's flights and its released callers. A
// released caller waited for an answer that is not shared, and now calls
// upstream itself. The table knows no calls, queues or bytes. A caller enters
// with its key. It gets its verdict at once, or waits and gets it later through
// OnSignal. The upstream call belongs to the flight, not to the caller that
// started it.
//
//   Enter ---> kLead: look in memory once more, then FinishFound, or call
//     |               upstream, say Launched, and Finish when that call ended
//     |------> kRun:  call upstream alone, and Leave when that call ended
//     '------> kWait: OnSignal comes with kLead, kRun, kAnswer or kOld, unless
//                     the caller leaves before
//
// A caller may Leave at any time. A signal that was sent before still arrives,
// and must be ignored: the table has already given the slot to another caller.
//
// Some flights have no caller: one that refreshes an entry (EnterToRefresh),
// and one whose last caller has left while its call may continue (Launched). At
// most `max_unattended` of them run. Callers that miss their key join them.
//
// Thread-safe. Signals and cancellations are made on the thread whose call
// caused them, and no mutex of the table is locked. A signal from another
// thread may arrive before the caller's own Enter has returned. The table must
// outlive its flights; it keeps callers alive while they are in it.
#ifndef FNCACHE_PROXY_SERVING_FLIGHT_H_
#define FNCACHE_PROXY_SERVING_FLIGHT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "cache/key/key.h"
#include "cache/store/entry.h"
#include "common/mutex.h"
#include "proxy/serving/flight_key.h"

namespace fncache::proxy::telemetry {
class FunctionInstruments;
}  // namespace fncache::proxy::telemetry

namespace fncache::proxy::serving {

class Flight;
class FlightTable;

// The table's decision on what a caller that missed does next.
enum class Verdict {
  kLead,    // it opened a flight, or took over one that has no call yet
  kRun,     // not collapsed: it calls upstream for itself alone
  kWait,    // it joined a flight, or waits for one of the `max_released` slots
  kAnswer,  // signals only: the flight ended with an answer that is shared
  kOld,  // signals only: the function failed, and the caller has an old entry
};

struct FlightSignal {
  Verdict verdict = Verdict::kRun;
  // With Verdict::kRun: the caller waited for one of the `max_released` slots.
  bool queued = false;
  // With Verdict::kAnswer: the entry to answer with, and whether it was found
  // in memory rather than made by the flight's own upstream call.
  cache::store::EntryRef entry;
  bool found = false;
  // With Verdict::kOld: the status that the flight's call ended with.
  int code = 0;
};

// One caller, as the table knows it. Derive from it to receive signals.
class FlightCaller {
 public:
  // `deadline` (infinite: none) only serves to choose the next leader; the
  // caller enforces it. `stale`: the caller missed because it found an entry
  // past its time. `has_old`: it answers from that if the function fails.
  FlightCaller(const FlightKey& key, absl::Time deadline, bool stale = false,
               bool has_old = false)
      : key_(key), deadline_(deadline), has_old_(has_old), stale_(stale) {}
  virtual ~FlightCaller() = default;
  FlightCaller(const FlightCaller&) = delete;
  FlightCaller& operator=(const FlightCaller&) = delete;

  const FlightKey& key() const { return key_; }

  // After Enter: this caller is stale, or the caller that opened its flight
  // was. A look-up removes an expired entry, so the next callers would not know
  // of it.
  bool stale() const { return stale_; }

  // Is called at most once, and only if Enter returns kWait. On any thread.
  virtual void OnSignal(FlightSignal signal) = 0;

 private:
  friend class FlightTable;
  friend class ReleaseGate;
  // The caller's role in its flight. Guarded by its shard's mutex.
  enum class Role { kNone, kLeader, kJoined, kReleased };
  // The caller's state at the gate. Guarded by the gate's mutex.
  enum class GateState { kNone, kQueued, kRunning };

  const FlightKey key_;
  const absl::Time deadline_;
  const bool has_old_;
  bool stale_;           // set by Enter
  uint64_t number_ = 0;  // order of arrival; set by Enter
  Role role_ = Role::kNone;
  GateState gate_state_ = GateState::kNone;
  std::shared_ptr<Flight> flight_;  // kLeader, kJoined
};

using FlightCallerPtr = std::shared_ptr<FlightCaller>;

// The upstream call of a flight, as the table knows it.
class FlightCall {
 public:
  virtual ~FlightCall() = default;
  // Ends it soon, because no caller waits for it any more. Any thread; may come
  // after it has ended.
  virtual void Cancel() = 0;
  // Whether it may continue, and keep its memory, when its last caller leaves.
  // Called while a mutex of the table is locked.
  virtual bool MayBeAbandoned() { return true; }
  // Its last caller has left, and it continues. When its time is over, it
  // passes this number to FlightTable::EndAbandoned. Any thread; may come after
  // it has ended.
  virtual void OnAbandoned(uint64_t /*abandonment*/) {}
};

// How a flight's upstream call ended.
enum class FlightEnd {
  kShared,    // policy and the memory tier accepted the answer
  kAlone,     // any other outcome: only the first caller gets it
  kFailed,    // the same, and an old entry may be served instead of the error
  kDeadline,  // the first caller's deadline ended it
};

// Lets at most `max_running` released callers call upstream at once; more wait
// in order of arrival. Thread-safe.
class ReleaseGate {
 public:
  ReleaseGate(int max_running,
              const telemetry::FunctionInstruments& instruments)
      : instruments_(instruments), max_running_(max_running) {}

  // True if the caller runs now, false if it waits.
  bool Enter(const FlightCallerPtr& caller);
  // Frees the caller's slot, if it has one. Returns the caller that gets the
  // slot, and that must be sent kRun, or null.
  FlightCallerPtr Leave(FlightCaller* caller);

  // Changes how many run at once. Returns the callers that got a slot; they
  // must be sent kRun.
  std::vector<FlightCallerPtr> SetMaxRunning(int max_running);

  int running() const;
  int queued() const;

 private:
  const telemetry::FunctionInstruments& instruments_;
  mutable Mutex mutex_;
  int max_running_ ABSL_GUARDED_BY(mutex_);
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, FlightCallerPtr> queue_ ABSL_GUARDED_BY(mutex_);
};

class FlightTable {
 public:
  struct Options {
    // How many released calls run at once. Positive.
    int max_released = 16;
    // How long misses of a key are not collapsed after a flight whose answer
    // was not shared.
    absl::Duration uncollapsed = absl::Seconds(1);
    // How many flights without a caller run at once: refreshes, and calls whose
    // callers have left.
    int max_unattended = 16;
  };

  // `instruments` outlives this.
  FlightTable(const Options& options,
              const telemetry::FunctionInstruments& instruments);
  ~FlightTable();
  FlightTable(const FlightTable&) = delete;
  FlightTable& operator=(const FlightTable&) = delete;

  // A caller missed its key. Never kAnswer. Once for each caller.
  Verdict Enter(const FlightCallerPtr& caller, absl::Time now);

  // Opens a flight that refreshes an entry. Its `leader` has no client: it acts
  // as any leader does, and never leaves.
  enum class Refresh {
    kLead,
    kNotNeeded,  // a flight of the key runs, or one has just failed
    kFull,       // max_unattended run already
  };
  Refresh EnterToRefresh(const FlightCallerPtr& leader, absl::Time now);

  // The leader's upstream call has started: `call` is cancelled when the last
  // caller leaves, unless it `outlives` them. Then it continues, and callers
  // that miss its key join it. Returns the flight. Finish must be called with
  // it, even if callers have left by then. Null if `leader` does not lead (it
  // left).
  std::shared_ptr<Flight> Launched(FlightCaller* leader,
                                   std::shared_ptr<FlightCall> call,
                                   bool outlives = false);

  // The flight's upstream call ended. kShared: `entry` is the one that was
  // filled, or, with `found`, a newer one that memory had by then. kFailed:
  // with `code`. Does nothing if all callers had left, and the call did not
  // outlive them.
  void Finish(const std::shared_ptr<Flight>& flight, FlightEnd end,
              cache::store::EntryRef entry, absl::Time now, bool found = false,
              int code = 0);

  // The time that the flight's call had after that abandonment is over: it is
  // cancelled, unless a caller has joined it since.
  void EndAbandoned(const std::shared_ptr<Flight>& flight,
                    uint64_t abandonment);

  // The leader found the entry in memory: no upstream call is needed.
  void FinishFound(FlightCaller* leader, cache::store::EntryRef entry,
                   absl::Time now);

  // The caller leaves, or its own released call has ended. May be called any
  // number of times. True if the caller waited for another caller's flight.
  bool Leave(FlightCaller* caller);

  // Closes the open flights of a key, whatever their drift, or every open
  // flight, to new callers: a later caller opens another one. Callers inside
  // still belong to it. Returns the number of flights that were closed to new
  // callers.
  size_t Detach(const cache::key::Key& key);
  size_t DetachAll();

  // Takes one of the `max_unattended` slots, until ReturnSlot; false if none is
  // free. For calls of the function that are in no flight.
  bool TakeSlot();
  void ReturnSlot() { unattended_.fetch_sub(1, std::memory_order_relaxed); }
  // Released callers wait for a slot.
  bool CallersWait() const { return gate_.queued() > 0; }

  // From now on at most `max_released` released calls run at once. Calls beyond
  // that continue to their end.
  void SetMaxReleased(int max_released);

  struct Stats {
    size_t flights = 0;
    size_t callers = 0;      // in a flight, leaders included
    size_t uncollapsed = 0;  // keys that are not collapsed for now
    int running = 0;         // released callers that call upstream
    int queued = 0;          // released callers that wait
    int unattended = 0;      // flights without a caller
    bool empty() const {
      return flights == 0 && callers == 0 && running == 0 && queued == 0;
    }
  };
  Stats GetStats() const;

 private:
  struct Shard;
  struct Actions;

  Shard& ShardOf(const FlightKey& key) const;
  // Call these while the mutex of the flight's shard is locked.
  //
  // A flight that `leader` leads.
  std::shared_ptr<Flight> Open(const FlightCallerPtr& leader);
  void FreeSlot(Flight* flight);
  // From now on the table ignores reports about the flight: they are late.
  void Close(Flight* flight);

  const Options options_;
  const telemetry::FunctionInstruments& instruments_;
  std::atomic<uint64_t> next_number_{0};
  std::atomic<uint64_t> next_abandonment_{1};
  std::atomic<int> unattended_{0};
  ReleaseGate gate_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_FLIGHT_H_
