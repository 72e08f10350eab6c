// SPDX-License-Identifier: Apache-2.0
// The faults of a schedule, and its end.
#include <algorithm>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cache/store/shared_scripts.h"
#include "cache/store/shared_store.h"
#include "cache/store/shared_value.h"
#include "tests/cache/store/fleet_schedule.h"
#include "tests/cache/store/store_testing.h"

namespace fncache::cache::store::testing {

void FleetSchedule::Disturb() {
  if (rates_.lost == 0) return;  // a calm schedule
  switch (Draw(12)) {
    case 0:
    case 1:
      return server_.SetReachable(Draw(kReplicas), Draw(2) == 0);
    case 2:
      return server_.SetUp(Draw(3) != 0);
    case 3:
      return server_.SetFull(Draw(3) == 0);
    case 4:
    case 5:
      server_.DeliverLate();
      return;
    case 6: {
      const uint64_t n = Draw(kKeys);
      record_.LoseMark(n);
      record_.SawAbsence(n);
      server_.Evict(names_[n]);
      return;
    }
    case 7:
      ++totals_.lost_data;
      record_.LoseRecord();
      server_.Evict(seal_.NameOfBans());
      return;
    case 8:
      ++totals_.lost_data;
      record_.LoseData();
      return server_.Clear();
    case 9:
      copy_ = server_.Take();
      return;
    case 10:
      if (!copy_.has_value()) return;
      ++totals_.lost_data;
      record_.LoseData();
      server_.Promote(*copy_);
      if (Draw(3) == 0) {
        ++server_clocks_;
        server_clock_.SetSkew(DrawSkew());
        record_.MoveServerClock(server_clock_.Now());
      }
      return;
    default:
      if (!hostile_) return;
      record_.LoseData();
      totals_.meddled +=
          server_.Meddle(&random_, [](const std::string&) { return true; });
      return;
  }
}

void FleetSchedule::Nest(int r, bool is_lookup) {
  if (nested_) return;
  nested_ = true;
  // Replicas are processes: locks of one are not locked inside another's.
  std::thread([&] { Happen(r, is_lookup); }).join();
  nested_ = false;
}

void FleetSchedule::Happen(int r, bool is_lookup) {
  ++totals_.nested;
  const int other = Draw(kReplicas);
  Replica& replica = replicas_[other];
  const int dice = Draw(8);
  if (!replica.suspended && (!replica.busy || (is_lookup && other == r))) {
    const bool was_busy = replica.busy;
    if (dice < 3) {
      Purge(&replica);
    } else if (dice < 5) {
      Sync(&replica);
    } else if (!was_busy && dice < 7) {
      Call(&replica, Draw(kKeys));
    } else if (!was_busy && !runs_.empty() &&
               !replicas_[runs_.front().replica].busy &&
               !replicas_[runs_.front().replica].suspended) {
      Run run = std::move(runs_.front());
      runs_.erase(runs_.begin());
      End(std::move(run));
    }
    replica.busy = was_busy;
  }
}

SimulatedServer::Fault FleetSchedule::Before(int r,
                                             const resp::Command& command) {
  if (!replicas_[r].busy || healed_) return Fault::kNone;
  NoteAbsences();
  const bool is_lookup = command.is_lookup;
  if (Draw(4) == 0) Pass(DrawUpTo(kTransit));
  if (Draw(30) == 0) Nest(r, is_lookup);
  NoteAbsences();
  const Fault fault = DrawFault(rates_, &random_);
  totals_.faults += fault != Fault::kNone;
  visible_[r] = fault == Fault::kNone;
  if (UsesEntries(command)) CheckMayUse(r);
  sent_[r] = world_.Now();
  return fault;
}

void FleetSchedule::After(int r, const resp::Command& command) {
  if (!replicas_[r].busy) return;
  if (visible_[r] && IsScript(command, kLookScript)) {
    looks_[r] = sent_[r];
    look_skews_[r] = replicas_[r].clock->Now() - server_clock_.Now();
  }
  if (visible_[r] && command.words[0] == "GET" &&
      command.words[1] == seal_.NameOfBans()) {
    const auto record = server_.Read(seal_.NameOfBans());
    auto bans = DecodeRecord(seal_, record.has_value() ? record->bytes : "");
    if (bans.ok()) read_[r] = *std::move(bans);
  }
  if (healed_) return;
  if (Draw(4) == 0) Pass(DrawUpTo(kTransit));
  if (Draw(30) == 0) Nest(r, command.is_lookup);
  if (Draw(400) == 0 && !nested_) {
    // The process stops before it sees the reply.
    ++totals_.pauses;
    replicas_[r].suspended = true;
    for (int i = Draw(4); i > 0; --i) {
      Pass(DrawUpTo(slow_ && Draw(2) == 0 ? absl::Minutes(70)
                                          : absl::Seconds(15)));
      Nest(r, /*is_lookup=*/false);
    }
    replicas_[r].suspended = false;
  }
}

void FleetSchedule::CheckMayUse(int r) {
  const absl::Duration age = world_.Now() - looks_[r];
  if (age > SharedStore::kRecordLimit + 2 * kTransit) {
    Fail(absl::StrCat("replica ", r, " uses the tier, and its bans are of ",
                      absl::FormatDuration(age), " ago"));
  }
  if (absl::AbsDuration(look_skews_[r]) >
      SharedStore::kClockLimit + 2 * kTransit) {
    Fail(absl::StrCat("replica ", r, " uses the tier with a clock that is ",
                      absl::FormatDuration(look_skews_[r]), " ahead"));
  }
}

void FleetSchedule::NoteAbsences() {
  for (uint64_t n = 0; n < kKeys; ++n) {
    if (!server_.Read(names_[n]).has_value()) record_.SawAbsence(n);
  }
}

void FleetSchedule::Converge() {
  healed_ = true;
  server_.DeliverLate();
  server_.SetUp(true);
  server_.SetFull(false);
  server_clock_.SetSkew(absl::ZeroDuration());
  for (Replica& replica : replicas_) {
    replica.suspended = false;
    server_.SetReachable(replica.number, true);
    replica.clock->SetSkew(DrawUpTo(absl::Milliseconds(500)));
  }
  // Clocks that were ahead wait.
  world_.Advance(absl::Seconds(5));
  const auto record = [this] { return server_.Read(seal_.NameOfBans()); };
  absl::optional<SimulatedServer::Value> before;
  for (int round = 0; round < 4; ++round) {
    before = record();
    for (Replica& replica : replicas_) Sync(&replica);
  }
  if (!(before == record()))
    Fail("the replicas do not stop writing the record");
  const absl::Time now = world_.Now() + absl::Seconds(2);
  const StoredBans bans = replicas_[0].bans->Shared(now);
  std::set<FleetRecord::Id> known;
  for (Replica& replica : replicas_) {
    const SharedFigures figures = replica.shared->figures();
    if (!figures.up || !figures.bans_written) {
      return Fail(absl::StrCat("the tier stays down: ", figures.why));
    }
    const StoredBans others = replica.bans->Shared(now);
    if (!SameBans(bans, others)) Fail("the bans differ in the end");
    known.insert(record_.Known(replica.number).begin(),
                 record_.Known(replica.number).end());
  }
  for (Replica& replica : replicas_) {
    for (const FleetRecord::Id id : known) {
      const Purged& purge = record_.purge(id);
      if (FleetRecord::IsOver(purge, now) || HasPurge(replica, purge)) {
        continue;
      }
      Fail(absl::StrCat("replica ", replica.number, " lacks purge ", id));
    }
  }
  // A record that did not open was a purge of what starts in the next second.
  world_.Advance(absl::Seconds(3));
  for (Replica& replica : replicas_) Sync(&replica);
  if (failure_.empty()) Share();
}

void FleetSchedule::Share() {
  runs_.clear();
  for (uint64_t n = 0; n < kKeys && failure_.empty(); ++n) {
    Replica& filler = replicas_[Draw(kReplicas)];
    Filled filled;
    filled.n = n;
    filled.started = filler.clock->Now();
    filled.really_started = world_.Now();
    EntrySpec spec;
    spec.version = record_.Fill(filled);
    spec.started = filled.started;
    spec.took = absl::ZeroDuration();
    spec.function = FunctionOf(n);
    bool filled_it =
        filler.Scope(n).FillUnlessBanned(KeyOf(n), spec.started, [&] {
          filler.store->Fill(KeyOf(n), EntryOf(n, spec), true,
                             filler.clock->Now());
        });
    if (!filled_it) return Fail("a new entry counts as purged");
    filler.store->Flush();
    for (Replica& replica : replicas_) {
      if (!LookBelow(&replica, n, spec.started - absl::Nanoseconds(1)).entry) {
        return Fail(absl::StrCat("replica ", replica.number,
                                 " does not find what ", filler.number,
                                 " filled"));
      }
    }
  }
}

}  // namespace fncache::cache::store::testing
