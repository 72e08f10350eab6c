// SPDX-License-Identifier: Apache-2.0
#include "tests/cache/store/fleet_testing.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/cache/store/store_testing.h"

namespace fncache::cache::store::testing {
namespace {

// Bans of keys end by clocks that differ.
constexpr absl::Duration kMargin = absl::Seconds(10);

// The bans of what a purge concerns, wider ones included.
BanTimes TimesOf(const Purged& purge, const StoredBans& bans) {
  BanTimes times = bans.all;
  if (purge.kind == Bans::Kind::kAll) return times;
  const std::string function = FunctionName(purge.function);
  const auto of_function = bans.functions.find(function);
  if (of_function != bans.functions.end()) times.Add(of_function->second);
  if (purge.kind == Bans::Kind::kFunction) return times;
  const auto of_generation =
      bans.generations.find({function, GenerationName(purge.function)});
  if (of_generation != bans.generations.end()) {
    times.Add(of_generation->second);
  }
  if (purge.kind == Bans::Kind::kGeneration) return times;
  const auto of_key = bans.keys.find(KeyOf(purge.n));
  if (of_key != bans.keys.end()) times.Add(of_key->second.times);
  return times;
}

}  // namespace

std::string FunctionName(FunctionId function) {
  return absl::StrCat("function-", function);
}
std::string GenerationName(FunctionId function) {
  return absl::StrCat("g", function);
}

absl::Time SkewedClock::Now() {
  const int64_t now = absl::ToUnixNanos(base_->Now()) + skew_.load();
  int64_t last = last_.load();
  while (last < now && !last_.compare_exchange_weak(last, now)) {
  }
  return absl::FromUnixNanos(std::max(last, now));
}

bool Purged::Concerns(uint64_t of) const {
  switch (kind) {
    case Bans::Kind::kAll:
      return true;
    case Bans::Kind::kFunction:
    case Bans::Kind::kGeneration:
      return FunctionOf(of) == function;
    case Bans::Kind::kKey:
      return of == n;
  }
  return false;
}

// ------------------------------------------------------------------- Events

void FleetRecord::LearnRecord(int r, const StoredBans& record) {
  for (Id id = 0; id < purges_.size(); ++id) {
    const Purged& purge = purges_[id];
    const BanTimes times = TimesOf(purge, record);
    const int64_t at = absl::ToUnixNanos(purge.before);
    if (at <= (purge.soft ? times.stale : times.purged)) known_[r].insert(id);
  }
}

std::set<FleetRecord::Id> FleetRecord::Recorded() const {
  std::set<Id> recorded;
  for (Id id = 0; id < purges_.size(); ++id) {
    if (purges_[id].recorded) recorded.insert(id);
  }
  return recorded;
}

void FleetRecord::Synced(int r, const std::set<Id>& recorded,
                         absl::Time really) {
  for (const Id id : recorded) {
    if (purges_[id].recorded) known_[r].insert(id);
  }
  for (const Id id : known_[r]) {
    purges_[id].recorded |= !IsOver(purges_[id], really);
  }
}

void FleetRecord::LoseRecord() {
  for (Id id = 0; id < purges_.size(); ++id) {
    purges_[id].recorded = false;
    for (const std::set<Id>& known : known_) {
      purges_[id].firm &= known.count(id) > 0;
    }
  }
}

void FleetRecord::LoseData() {
  for (Purged& purge : purges_) purge.firm = purge.recorded = false;
  for (uint64_t& absences : absences_) ++absences;
}

// ---------------------------------------------------------------- Judgement

bool FleetRecord::IsOver(const Purged& purge, absl::Time really) {
  return purge.kind == Bans::Kind::kKey &&
         really > purge.made + SharedStore::kKeyLasts - kMargin;
}

std::string FleetRecord::WhyNot(int r, uint64_t n, const Entry& entry,
                                absl::Time now, absl::Time really) const {
  const int64_t version = VersionOf(n, entry.body());
  if (version < 0 || version >= static_cast<int64_t>(filled_.size())) {
    return "it is torn, or another key's";
  }
  const Filled& filled = filled_[version];
  if (filled.n != n) return absl::StrCat("it is of key ", filled.n);
  if (filled.started != entry.started()) return "it started at another time";
  if (entry.function() != FunctionOf(n)) return "it is of another function";
  if (entry.deadline() <= now) return "its time is over";
  for (const Id id : known_[r]) {
    const Purged& purge = purges_[id];
    if (!purge.Concerns(n) || purge.limited) continue;
    if ((!purge.firm || purge.soft) && IsOver(purge, really)) continue;
    if (filled.started <= purge.before) {
      return absl::StrCat("purge ", id, " covers it");
    }
    if (purge.firm && filled.in_time && filled.really_started < purge.made) {
      return absl::StrCat("it started before purge ", id);
    }
  }
  return "";
}

std::string FleetRecord::WhyNotRead(int r, uint64_t n, const Entry& entry) {
  Last& last = last_[r][n];
  const bool older =
      entry.started() < last.started && last.absences == absences_[n];
  const std::string why =
      older ? absl::StrCat("it is older than the last one, by ",
                           absl::FormatDuration(last.started - entry.started()))
            : "";
  last = {entry.started(), absences_[n]};
  return why;
}

bool SameBans(const StoredBans& a, const StoredBans& b) {
  Purged scope;
  for (scope.n = 0; scope.n < kKeys; ++scope.n) {
    scope.function = FunctionOf(scope.n);
    for (const Bans::Kind kind : {Bans::Kind::kAll, Bans::Kind::kFunction,
                                  Bans::Kind::kGeneration, Bans::Kind::kKey}) {
      scope.kind = kind;
      if (!(TimesOf(scope, a) == TimesOf(scope, b))) return false;
    }
  }
  return true;
}

bool HasPurge(const Replica& replica, const Purged& purge) {
  if (purge.limited) return true;
  for (uint64_t n = 0; n < kKeys; ++n) {
    if (!purge.Concerns(n)) continue;
    const BanScope& scope = replica.Scope(n);
    if (scope.Covers(KeyOf(n), purge.before)) continue;
    if (!purge.soft ||
        scope.SoftBefore(KeyOf(n), purge.before) < purge.before) {
      return false;
    }
  }
  return true;
}

bool DoPurge(Replica* replica, bool to_now, Purged* purge) {
  Bans& bans = *replica->bans;
  MemoryAndLower& store = *replica->store;
  purge->before = replica->clock->Now();
  if (!to_now) purge->before = std::max(purge->before, store.LatestTime());
  if (purge->kind != Bans::Kind::kKey) {
    bans.Ban(purge->kind, FunctionName(purge->function),
             GenerationName(purge->function), purge->before, purge->soft);
    if (!purge->soft) {
      store.Sweep(
          purge->kind == Bans::Kind::kAll ? kNoFunction : purge->function,
          purge->before);
    }
    return bans.Save().ok();
  }
  const key::Key key = KeyOf(purge->n);
  absl::Time until = purge->before;
  for (const Inspection& there : store.Inspect(key)) {
    until = std::max(until, there.entry->kept_until());
  }
  const auto banned = bans.BanKey(key, purge->before, purge->soft,
                                  purge->soft ? until : purge->before);
  bool lasting = true;
  if (!purge->soft) {
    lasting = store.Purge(key, purge->before, replica->clock->Now()).lasting;
    if (!lasting) bans.KeepKey(key);
  }
  return bans.Save().ok() && lasting;
}

}  // namespace fncache::cache::store::testing
