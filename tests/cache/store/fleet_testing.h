// SPDX-License-Identifier: Apache-2.0
// A fleet of three replicas in simulated time, for random schedules: each has
// its memory over the shared tier, with its own clock, on one simulated server.
//
// FleetRecord is the test's own record of what happened. It knows what was
// filled and when that really began, which purges there were, and which of them
// a replica has learned. From that it judges each entry that is served.
//
// One thread at a time.
#ifndef FNCACHE_TESTS_CACHE_STORE_FLEET_TESTING_H_
#define FNCACHE_TESTS_CACHE_STORE_FLEET_TESTING_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cache/store/bans.h"
#include "cache/store/entry.h"
#include "cache/store/memory_and_lower.h"
#include "cache/store/shared_store.h"
#include "cache/store/stored_bans.h"
#include "common/clock.h"
#include "resp/server.h"

namespace fncache::cache::store::testing {

constexpr int kReplicas = 3;
// Keys by their number. Key n is of the function n % 2, whose only generation
// is "g" and that number.
constexpr uint64_t kKeys = 4;
constexpr int kFunctions = 2;

constexpr char kFleetSecret[] = "a secret of the fleet, of 32 bytes or more";

inline FunctionId FunctionOf(uint64_t n) { return n % kFunctions; }
std::string FunctionName(FunctionId function);
std::string GenerationName(FunctionId function);

// A clock that is apart from another one. It never runs backwards.
class SkewedClock : public Clock {
 public:
  explicit SkewedClock(Clock* base) : base_(base) {}
  absl::Time Now() override;
  void SetSkew(absl::Duration skew) { skew_ = absl::ToInt64Nanoseconds(skew); }
  absl::Duration skew() const { return absl::Nanoseconds(skew_.load()); }

 private:
  Clock* const base_;
  std::atomic<int64_t> skew_{0};
  std::atomic<int64_t> last_{0};
};

// Mistakes of a daemon, or of its server, that the schedules must find.
enum class Mistake {
  kNone,
  kFillsOverLater,   // the server's fill does not compare starts
  kWritesAnyRecord,  // the server does not compare the record's beginning
  kLosesMarks,       // the mark of a purged key is not written
  kPurgesToNow,      // a purge does not reach past the server's time
  kKeepsMemory,      // memory is not emptied after a long absence
  kSleepsUnnoticed,  // the clock of the 10 s does not count suspension
  kIgnoresBans,      // what is found is served without a look at the bans
  kIgnoresClocks,    // the server always says that the clocks agree
};

struct Replica {
  int number = 0;
  std::unique_ptr<SkewedClock> clock;
  // For how long it was suspended altogether.
  absl::Duration slept;
  bool suspended = false;
  // A command of it is in progress.
  std::atomic<bool> busy{false};
  std::shared_ptr<Bans> bans;
  SharedStore* shared = nullptr;  // of `store`
  std::unique_ptr<MemoryAndLower> store;

  const BanScope& Scope(uint64_t n) const {
    return bans->Of(FunctionName(FunctionOf(n)), GenerationName(FunctionOf(n)));
  }
};

struct Purged {
  Bans::Kind kind = Bans::Kind::kAll;
  FunctionId function = 0;
  uint64_t n = 0;  // kKey
  bool soft = false;
  absl::Time before;
  absl::Time made;  // really
  // It was answered with OK, and no data was lost since.
  bool firm = false;
  // Its time may be limited, because the server's clock was set meanwhile.
  bool limited = false;
  // The record has it, as far as the test knows.
  bool recorded = false;

  bool Concerns(uint64_t of) const;
};

struct Filled {
  uint64_t n = 0;
  absl::Time started;
  absl::Time really_started;
  // The clock of the replica was within the limit then.
  bool in_time = false;
};

class FleetRecord {
 public:
  using Id = size_t;  // of a purge

  // ------------------------------------------------------------------- Events

  // Returns its version.
  uint64_t Fill(const Filled& filled) {
    filled_.push_back(filled);
    return filled_.size() - 1;
  }
  Id Purge(const Purged& purge) {
    purges_.push_back(purge);
    return purges_.size() - 1;
  }
  Purged& purge(Id id) { return purges_[id]; }
  size_t purges() const { return purges_.size(); }
  // Replica `r` knows the purge from now on.
  void Learn(int r, Id id) { known_[r].insert(id); }
  // It knows what a record says.
  void LearnRecord(int r, const StoredBans& record);
  // The purges that the record has, as far as the test knows.
  std::set<Id> Recorded() const;
  // A round of `r` ended with OK. Those of `recorded`, which is from before it,
  // that are recorded still are known, and all that it knows are recorded.
  void Synced(int r, const std::set<Id>& recorded, absl::Time really);
  void Restarted(int r) { known_[r].clear(); }
  const std::set<Id>& Known(int r) const { return known_[r]; }
  // Values may be gone or older: no purge is firm or recorded.
  void LoseData();
  // The record may be gone or older. Until it is written again, the hour of a
  // key's ban may end for those that have not learned it.
  void LoseRecord();
  // The mark of a purged key may be gone.
  void LoseMark(uint64_t n) {
    for (Purged& purge : purges_) purge.firm &= purge.n != n;
  }
  // The server has another clock.
  void MoveServerClock(absl::Time now) {
    for (Filled& filled : filled_) filled.in_time = false;
    for (Purged& purge : purges_) purge.limited |= purge.before > now;
  }
  // The key has no value on the server now.
  void SawAbsence(uint64_t n) { ++absences_[n]; }

  // ----------------------------------------------------------------- Judgement

  // Why it must not be that `r` serves this entry under key `n` at its time
  // `now`, really `really`; empty if it may.
  std::string WhyNot(int r, uint64_t n, const Entry& entry, absl::Time now,
                     absl::Time really) const;
  // The same of an entry that came from the tier, before the bans are asked.
  std::string WhyNotRead(int r, uint64_t n, const Entry& entry);
  // Whether a purge is too old for the bans and marks that keep it.
  static bool IsOver(const Purged& purge, absl::Time really);

 private:
  std::vector<Filled> filled_;
  std::vector<Purged> purges_;
  std::array<std::set<Id>, kReplicas> known_;
  std::array<uint64_t, kKeys> absences_ = {};
  struct Last {
    absl::Time started = absl::InfinitePast();
    uint64_t absences = 0;
  };
  std::array<std::array<Last, kKeys>, kReplicas> last_;
};

// Whether the same entries are banned. (A ban that a wider one covers makes no
// difference.)
bool SameBans(const StoredBans& a, const StoredBans& b);

// Whether the bans of this process include a purge.
bool HasPurge(const Replica& replica, const Purged& purge);

// The daemon's purge (proxy/purge.h), without flights. `to_now`: it does not
// reach past the server's time. Sets `purge->before`; true if it was answered
// with OK.
bool DoPurge(Replica* replica, bool to_now, Purged* purge);

}  // namespace fncache::cache::store::testing

#endif  // FNCACHE_TESTS_CACHE_STORE_FLEET_TESTING_H_
