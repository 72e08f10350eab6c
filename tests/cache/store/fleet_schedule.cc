// SPDX-License-Identifier: Apache-2.0
#include "tests/cache/store/fleet_schedule.h"

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
#include "tests/cache/store/store_testing.h"

namespace fncache::cache::store::testing {
namespace {

// A client with the mistakes of the server that only some commands see.
class MistakenClient final : public resp::Server {
 public:
  MistakenClient(std::unique_ptr<resp::Server> server, Mistake mistake,
                 Clock* clock)
      : server_(std::move(server)), mistake_(mistake), clock_(clock) {}

  resp::Answer Run(const resp::Command& command) override {
    static const size_t mark_size =
        EncodeMark(Seal(kFleetSecret, "fncache"), KeyOf(0), clock_->Now())
            .size();
    const auto& words = command.words;
    const bool evaluates = words.size() > 4;
    if (mistake_ == Mistake::kLosesMarks && evaluates &&
        words[1] == kFillScript && words[4].size() == mark_size) {
      resp::Answer stored;
      stored.outcome = resp::Outcome::kReply;
      stored.reply.kind = resp::Reply::Kind::kInteger;
      stored.reply.integer = 1;
      return stored;
    }
    resp::Answer answer = server_->Run(command);
    if (mistake_ == Mistake::kIgnoresClocks && evaluates &&
        words[1] == kLookScript && answer.reply.elements.size() == 3) {
      const int64_t now = absl::ToUnixMicros(clock_->Now());
      answer.reply.elements[1].text = absl::StrCat(now / 1'000'000);
      answer.reply.elements[2].text = absl::StrCat(now % 1'000'000);
    }
    return answer;
  }
  resp::Node NodeOf(absl::string_view key) const override {
    return server_->NodeOf(key);
  }
  resp::ServerFigures figures() const override { return server_->figures(); }

 private:
  const std::unique_ptr<resp::Server> server_;
  const Mistake mistake_;
  Clock* const clock_;
};

}  // namespace

FleetSchedule::FleetSchedule(uint32_t seed, Mistake mistake,
                             FleetTotals* totals)
    : random_(seed), mistake_(mistake), totals_(*totals) {
  slow_ = Draw(4) == 0;
  hostile_ = Draw(5) == 0;
  if (Draw(4) != 0) {
    rates_ = {Draw(30), Draw(30), Draw(40), Draw(10),
              Draw(10), Draw(20), Draw(10)};
  }
  if (mistake == Mistake::kFillsOverLater) {
    server_.SetDefect(SimulatedServer::Defect::kFillsOverLater);
  } else if (mistake == Mistake::kWritesAnyRecord) {
    server_.SetDefect(SimulatedServer::Defect::kWritesAnyRecord);
  }
  server_.SetHooks(
      {[this](int r, const resp::Command& c) { return Before(r, c); },
       [this](int r, const resp::Command& c) { After(r, c); }});
  for (uint64_t n = 0; n < kKeys; ++n) names_.push_back(seal_.NameOf(KeyOf(n)));
  if (Draw(3) == 0) server_clock_.SetSkew(DrawSkew());
  for (int r = 0; r < kReplicas; ++r) {
    replicas_[r].number = r;
    Start(&replicas_[r]);
  }
}

FleetSchedule::~FleetSchedule() {
  server_.SetHooks({});
  runs_.clear();
}

std::string FleetSchedule::Go() {
  const int steps = 30 + Draw(90);
  for (int i = 0; i < steps && failure_.empty(); ++i) {
    Advance(DrawGap());
    Step();
  }
  if (failure_.empty()) Converge();
  return failure_;
}

absl::Duration FleetSchedule::DrawGap() {
  switch (Draw(slow_ ? 12 : 10)) {
    case 0:
    case 1:
      return DrawUpTo(absl::Seconds(3));
    case 2:
      return DrawUpTo(absl::Seconds(15));
    case 10:
      return DrawUpTo(absl::Minutes(150));
    case 11:
      return DrawUpTo(absl::Minutes(10));
    default:
      return DrawUpTo(absl::Milliseconds(400));
  }
}

void FleetSchedule::Start(Replica* replica) {
  const int r = replica->number;
  replica->clock = std::make_unique<SkewedClock>(&world_);
  replica->clock->SetSkew(DrawSkew());
  replica->bans = std::make_shared<Bans>();
  TieredOptions options;
  options.memory_bytes = 1 << 20;
  options.max_entry_bytes = 64 << 10;
  options.shared_timeout = absl::Hours(1);
  options.read_threads = 1;
  options.bans = replica->bans;
  for (FunctionId function = 0; function < kFunctions; ++function) {
    options.functions.push_back(
        {FunctionName(function), GenerationName(function), false});
  }
  const auto open =
      [this, r](
          const TieredOptions& given, Clock* clock,
          Observer* observer) -> absl::StatusOr<std::unique_ptr<LowerStore>> {
    SharedStoreOptions shared;
    shared.server =
        std::make_unique<MistakenClient>(server_.Connect(r), mistake_, clock);
    shared.secret = kFleetSecret;
    shared.functions = given.functions;
    shared.timeout = given.shared_timeout;
    shared.learned = [this, r](const Bans::Learned& learned) {
      Apply(&replicas_[r], learned);
    };
    shared.boottime = [this, r] {
      return world_.Now() - start_ -
             (mistake_ == Mistake::kSleepsUnnoticed ? replicas_[r].slept
                                                    : absl::ZeroDuration());
    };
    shared.sync_by_itself = false;
    auto store = SharedStore::Create(std::move(shared), given.bans.get(), clock,
                                     observer);
    replicas_[r].shared = store.get();
    return store;
  };
  replica->busy = true;
  replica->store = std::make_unique<MemoryAndLower>(
      options, open, replica->clock.get(), nullptr);
  if (!replica->store->Open().ok()) Fail("the store does not open");
  replica->busy = false;
}

void FleetSchedule::Restart(Replica* replica) {
  ++totals_.restarts;
  runs_.erase(std::remove_if(runs_.begin(), runs_.end(),
                             [replica](const Run& run) {
                               return run.replica == replica->number;
                             }),
              runs_.end());
  replica->busy = true;
  replica->store = nullptr;
  record_.Restarted(replica->number);
  Start(replica);
}

void FleetSchedule::Apply(Replica* replica, const Bans::Learned& learned) {
  ++totals_.learned;
  MemoryAndLower* const store = replica->store.get();
  if (store == nullptr) return;
  const absl::Time now = replica->clock->Now();
  if (learned.hard && learned.all) {
    if (mistake_ != Mistake::kKeepsMemory) {
      store->Sweep(kNoFunction, learned.before);
    }
  }
  for (FunctionId function = 0; learned.hard && function < kFunctions;
       ++function) {
    const std::string name = FunctionName(function);
    const auto is = [&name](const auto& of) { return of == name; };
    const auto of = [&name](const auto& of) { return of.first == name; };
    if (std::any_of(learned.functions.begin(), learned.functions.end(), is) ||
        std::any_of(learned.generations.begin(), learned.generations.end(),
                    of)) {
      store->Sweep(function, learned.before);
    }
  }
  for (const auto& [key, until] : learned.keys) {
    store->Forget(key, until, now);
  }
}

void FleetSchedule::Sync(Replica* replica) {
  const int r = replica->number;
  ++totals_.rounds;
  const std::set<FleetRecord::Id> recorded = record_.Recorded();
  read_[r].reset();
  replica->busy = true;
  const absl::Status status = replica->shared->Sync();
  replica->busy = false;
  if (read_[r].has_value()) record_.LearnRecord(r, *read_[r]);
  if (!status.ok()) {
    ++totals_.failed_rounds;
    return;
  }
  // A replica that knows the record's beginning does not see that the rest is
  // garbled. One that reads it does not open it.
  const auto there = server_.Read(seal_.NameOfBans());
  if (garbled_.has_value() && there.has_value() &&
      absl::StartsWith(there->bytes, *garbled_)) {
    return;
  }
  record_.Synced(r, recorded, world_.Now());
  synced_clock_[r] = server_clocks_;
  for (const FleetRecord::Id id : record_.Known(r)) {
    const Purged& purge = record_.purge(id);
    if (FleetRecord::IsOver(purge, world_.Now())) continue;
    if (!HasPurge(*replica, purge)) {
      return Fail(absl::StrCat("replica ", r, " has not learned purge ", id));
    }
  }
}

bool FleetSchedule::Serve(Replica* replica, uint64_t n, const EntryRef& entry) {
  const absl::Time now = replica->clock->Now();
  if (entry->deadline() <= now) return false;
  const BanScope& scope = replica->Scope(n);
  if (mistake_ != Mistake::kIgnoresBans &&
      (scope.Covers(KeyOf(n), entry->started()) ||
       scope.FreshFor(KeyOf(n), entry->started(), entry->deadline() - now,
                      now) <= absl::ZeroDuration())) {
    return false;
  }
  const std::string why =
      record_.WhyNot(replica->number, n, *entry, now, world_.Now());
  if (!why.empty()) {
    Fail(absl::StrCat("replica ", replica->number, " serves key ", n, ": ",
                      why));
  }
  return true;
}

Found FleetSchedule::LookBelow(Replica* replica, uint64_t n, absl::Time than) {
  std::promise<Found> found;
  replica->busy = true;
  replica->store->GetLower(
      KeyOf(n), FunctionOf(n), than, replica->clock->Now(),
      [&found](Found result) { found.set_value(std::move(result)); });
  Found result = found.get_future().get();
  replica->busy = false;
  if (result.entry && result.entry->started() <= than) {
    Fail("a look-up below found no younger entry");
  }
  return result;
}

void FleetSchedule::Call(Replica* replica, uint64_t n) {
  ++totals_.calls;
  const int r = replica->number;
  const EntryRef old =
      replica->store->GetMemory(KeyOf(n), replica->clock->Now()).entry;
  if (old && Serve(replica, n, old)) {
    ++totals_.memory_hits;
    return;
  }
  const Found below =
      LookBelow(replica, n, old ? old->started() : absl::InfinitePast());
  if (below.entry) {
    const std::string why = record_.WhyNotRead(r, n, *below.entry);
    if (!why.empty() && !hostile_) {
      Fail(absl::StrCat("replica ", r, " reads key ", n, ": ", why));
    }
    if (Serve(replica, n, below.entry)) {
      ++totals_.tier_hits;
      return;
    }
  }
  ++totals_.runs;
  Run run;
  run.replica = r;
  run.n = n;
  run.bans = replica->bans;
  run.entered = run.bans->Enter();
  run.filled.n = n;
  run.filled.started = replica->clock->Now();
  run.filled.really_started = world_.Now();
  // A measured difference is wrong by up to half of the round trip.
  run.filled.in_time =
      absl::AbsDuration(run.filled.started - server_clock_.Now()) <=
      SharedStore::kClockLimit - 2 * kTransit;
  run.ends = world_.Now() +
             DrawUpTo(Draw(8) == 0 ? absl::Seconds(30) : absl::Seconds(2));
  runs_.push_back(std::move(run));
}

void FleetSchedule::End(Run run) {
  Replica& replica = replicas_[run.replica];
  const absl::Time now = replica.clock->Now();
  const uint64_t n = run.n;
  const absl::Time started = run.filled.started;
  replica.busy = true;
  if (Draw(8) == 0) {
    ++totals_.superseded;
    replica.store->Supersede(KeyOf(n), started, FunctionOf(n), now);
  } else {
    EntrySpec spec;
    spec.version = record_.Fill(run.filled);
    spec.size = 16 + Draw(60);
    spec.started = started;
    spec.took = now - started;
    spec.lifetime = slow_ && Draw(2) == 0 ? absl::Hours(3) + absl::Seconds(1)
                                          : absl::Seconds(2 + Draw(60));
    spec.function = FunctionOf(n);
    const EntryRef entry = EntryOf(n, spec);
    const bool lower = Draw(12) != 0;
    ++totals_.fills;
    replica.Scope(n).FillUnlessBanned(KeyOf(n), started, [&] {
      replica.store->Fill(KeyOf(n), entry, lower, now);
    });
  }
  run.entered = Bans::Entered();
  replica.store->Flush();
  replica.busy = false;
}

void FleetSchedule::Purge(Replica* replica) {
  ++totals_.purges;
  Purged purge;
  const int dice = Draw(10);
  purge.kind = dice == 0   ? Bans::Kind::kAll
               : dice <= 2 ? Bans::Kind::kFunction
               : dice <= 4 ? Bans::Kind::kGeneration
                           : Bans::Kind::kKey;
  purge.function = Draw(kFunctions);
  purge.n = Draw(kKeys);
  if (purge.kind == Bans::Kind::kKey) purge.function = FunctionOf(purge.n);
  purge.soft = Draw(4) == 0;
  purge.made = world_.Now();
  replica->busy = true;
  const bool ok = DoPurge(replica, mistake_ == Mistake::kPurgesToNow, &purge);
  replica->busy = false;
  purge.recorded = ok;
  purge.limited = synced_clock_[replica->number] != server_clocks_;
  purge.firm = ok && !purge.limited;
  totals_.firm += purge.firm;
  record_.Learn(replica->number, record_.Purge(purge));
}

void FleetSchedule::Advance(absl::Duration by) {
  while (by > absl::Minutes(40) && failure_.empty()) {
    Advance(absl::Minutes(39));
    by -= absl::Minutes(39);
  }
  const absl::Time to = world_.Now() + by;
  while (failure_.empty()) {
    auto next = runs_.end();
    for (auto it = runs_.begin(); it != runs_.end(); ++it) {
      if (it->ends > to || replicas_[it->replica].suspended) continue;
      if (next == runs_.end() || it->ends < next->ends) next = it;
    }
    if (next == runs_.end()) break;
    Run run = std::move(*next);
    runs_.erase(next);
    Pass(run.ends - world_.Now());
    End(std::move(run));
  }
  Pass(to - world_.Now());
  if (by < absl::Seconds(1)) return;
  for (Replica& replica : replicas_) {
    if (!replica.suspended && (Draw(6) != 0 || by > absl::Minutes(5))) {
      Sync(&replica);
    }
  }
}

void FleetSchedule::Pass(absl::Duration by) {
  if (by <= absl::ZeroDuration()) return;
  world_.Advance(by);
  for (Replica& replica : replicas_) {
    if (replica.suspended) replica.slept += by;
  }
}

void FleetSchedule::Step() {
  Replica& replica = replicas_[Draw(kReplicas)];
  const int dice = Draw(100);
  if (replica.suspended) {
    if (dice < 30) replica.suspended = false;
  } else if (dice < 56) {
    Call(&replica, Draw(3) == 0 ? Draw(kKeys) : 0);
  } else if (dice < 78) {
    Sync(&replica);
  } else if (dice < 84) {
    Purge(&replica);
  } else if (dice < 85) {
    Restart(&replica);
  } else if (dice < 87) {
    ++totals_.suspensions;
    replica.suspended = true;
  } else if (dice < 88) {
    // A clock that is set goes forward only.
    replica.clock->SetSkew(replica.clock->skew() +
                           DrawUpTo(absl::Milliseconds(300)));
  } else {
    Disturb();
  }
}

}  // namespace fncache::cache::store::testing
