// SPDX-License-Identifier: Apache-2.0
// FleetSchedule: a random schedule of a fleet (fleet_testing.h) on a simulated
// server that loses, delays and forgets. Every schedule is its seed. Stores,
// bans and record are the real ones.
//
// One thread drives it. The threads of the stores act while that one waits.
#ifndef FNCACHE_TESTS_CACHE_STORE_FLEET_SCHEDULE_H_
#define FNCACHE_TESTS_CACHE_STORE_FLEET_SCHEDULE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/store/bans.h"
#include "cache/store/entry.h"
#include "cache/store/seal.h"
#include "cache/store/shared_scripts.h"
#include "cache/store/store.h"
#include "cache/store/stored_bans.h"
#include "common/clock.h"
#include "resp/server.h"
#include "tests/cache/store/fleet_testing.h"
#include "tests/cache/store/simulated_server.h"

namespace fncache::cache::store::testing {

// Counts of the events of schedules.
struct FleetTotals {
  uint64_t calls = 0, memory_hits = 0, tier_hits = 0, runs = 0, fills = 0,
           superseded = 0, purges = 0, firm = 0, rounds = 0, failed_rounds = 0,
           faults = 0, lost_data = 0, meddled = 0, nested = 0, pauses = 0,
           restarts = 0, suspensions = 0, learned = 0;
};

class FleetSchedule {
 public:
  // `mistake` is planted.
  FleetSchedule(uint32_t seed, Mistake mistake, FleetTotals* totals);
  ~FleetSchedule();

  // Returns the first thing that must not be; empty if there was none.
  std::string Go();

 private:
  using Fault = SimulatedServer::Fault;

  // A call of a function.
  struct Run {
    int replica = 0;
    uint64_t n = 0;
    Filled filled;
    absl::Time ends;  // really
    std::shared_ptr<Bans> bans;
    Bans::Entered entered;
  };

  // How much of a command's time may pass before and after it takes effect.
  static constexpr absl::Duration kTransit = absl::Milliseconds(100);

  int Draw(int n) { return static_cast<int>(random_() % n); }
  absl::Duration DrawUpTo(absl::Duration most) {
    return most * Draw(1001) / 1000;
  }
  // Mostly within the limit.
  absl::Duration DrawSkew() {
    const absl::Duration most =
        Draw(8) == 0 ? absl::Milliseconds(1500) : absl::Milliseconds(600);
    return DrawUpTo(2 * most) - most;
  }
  absl::Duration DrawGap();
  void Fail(const std::string& why) {
    if (why.empty() || !failure_.empty()) return;
    failure_ =
        absl::StrCat(absl::FormatDuration(world_.Now() - start_), ": ", why);
  }

  // ---------------------------------------------------------------- Replicas

  void Start(Replica* replica);
  void Restart(Replica* replica);

  // Applies what a replica learns, as the daemon does.
  void Apply(Replica* replica, const Bans::Learned& learned);
  // A round, and what must be so after it.
  void Sync(Replica* replica);

  // ------------------------------------------------------------------- Calls

  // Serves an entry that was found, unless its time is over or a ban covers it.
  bool Serve(Replica* replica, uint64_t n, const EntryRef& entry);
  Found LookBelow(Replica* replica, uint64_t n, absl::Time than);
  // A request: looks in memory and below, and else begins a run.
  void Call(Replica* replica, uint64_t n);
  // The function has answered.
  void End(Run run);
  void Purge(Replica* replica);

  // -------------------------------------------------------------------- Time

  // Ends the runs that end meanwhile. Replicas that run have their rounds.
  void Advance(absl::Duration by);
  void Pass(absl::Duration by);
  void Step();

  // ------------------------------------------------------------------ Faults

  void Disturb();
  void Meddle();

  // Anything else that happens while a command of another replica, or a look-up
  // of the same one, is in progress.
  void Nest(int r, bool is_lookup);
  void Happen(int r, bool is_lookup);
  // The hooks of the server.
  Fault Before(int r, const resp::Command& command);
  void After(int r, const resp::Command& command);

  static bool IsScript(const resp::Command& command, absl::string_view script) {
    return command.words.size() > 4 && command.words[1] == script;
  }
  bool UsesEntries(const resp::Command& command) const {
    return command.is_lookup || IsScript(command, kFillScript) ||
           IsScript(command, kEraseScript);
  }
  // A replica uses the tier only while it has read the record lately, and its
  // clock is near the server's.
  void CheckMayUse(int r);
  void NoteAbsences();

  // --------------------------------------------------------------------- End

  // All faults end: the replicas agree on the bans.
  void Converge();
  // The tier works again: each key that one replica fills, the others find.
  void Share();

  std::mt19937 random_;
  const Mistake mistake_;
  FleetTotals& totals_;
  std::string failure_;
  bool slow_ = false;
  bool hostile_ = false;
  FaultRates rates_;
  const Seal seal_{kFleetSecret, "fncache"};
  std::vector<std::string> names_;  // of keys
  const absl::Time start_ = absl::FromUnixSeconds(1'800'000'000);
  SimulatedClock world_{start_};
  SkewedClock server_clock_{&world_};
  SimulatedServer server_{&server_clock_};
  absl::optional<SimulatedServer::Copy> copy_;
  // How a record begins whose rest is garbled.
  absl::optional<std::string> garbled_;
  FleetRecord record_;
  std::vector<Run> runs_;
  bool nested_ = false;
  bool healed_ = false;
  // How often the server got another clock, and of that what a replica saw.
  int server_clocks_ = 0;
  std::array<int, kReplicas> synced_clock_ = {};
  // The command in progress: its reply will arrive; when it was sent.
  std::array<bool, kReplicas> visible_ = {};
  std::array<absl::Time, kReplicas> sent_;
  // The last look at the record.
  std::array<absl::Time, kReplicas> looks_;
  std::array<absl::Duration, kReplicas> look_skews_;
  // The record that a round has read.
  std::array<absl::optional<StoredBans>, kReplicas> read_;
  // The last members: their queues call the hooks.
  std::array<Replica, kReplicas> replicas_;
};

}  // namespace fncache::cache::store::testing

#endif  // FNCACHE_TESTS_CACHE_STORE_FLEET_SCHEDULE_H_
