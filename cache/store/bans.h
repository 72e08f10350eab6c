// SPDX-License-Identifier: Apache-2.0
// Bans: the record of the purges; DESIGN's "Purge".
//
// A ban of everything, of a function or of one of its generations never ends:
// an entry whose call started at or before it is neither served nor stored. A
// ban of a key only has to stop operations in progress, since the entry itself
// is deleted. It ends when every operation that began before it (a call to a
// function, a look-up below memory) has ended.
//
//   purge:  Ban or BanKey, then the flights, then the entries in the tiers, and
//           Save; only then it is answered
//   hit:    BanScope::Covers, for each entry that is found
//   fill:   Enter before the call to the function starts, and
//           BanScope::FillUnlessBanned with its answer
//
// A soft purge makes entries stale instead: BanScope::FreshFor. Such a ban of a
// key lasts until the entry is gone. With `vary: on` every ban of a key lasts,
// since other keys of a request may have entries of it (varied_call.h).
//
// Beside a disk tier bans are kept in its directory (stored_bans.h): Attach
// reads them before anything is served. A file that cannot be read bans every
// stored entry. A ban that cannot be written is in force nevertheless: Save
// returns the error, and Retry writes the ban as soon as it can.
//
// The replicas of a fleet share their bans (Share, Learn). There the ban of a
// key lasts for a fixed time, since another replica may still fill an older
// entry.
//
// Time is the one Clock's, and comes in as an argument. Thread-safe.
#ifndef FNCACHE_CACHE_STORE_BANS_H_
#define FNCACHE_CACHE_STORE_BANS_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/key/key.h"
#include "cache/store/stored_bans.h"
#include "common/mutex.h"

namespace fncache::cache::store {

class Bans;

// The bans that apply to one generation of one function. Bans::Of makes it, and
// the Bans own it.
class alignas(64) BanScope {
 public:
  BanScope(const BanScope&) = delete;
  BanScope& operator=(const BanScope&) = delete;

  // Whether the entry under `key` whose call started then is purged: it must
  // not be served.
  bool Covers(const key::Key& key, absl::Time started) const;

  // The same for the bans of this key alone, soft ones, too.
  bool CoversKey(const key::Key& key, absl::Time started) const;
  // False: CoversKey(key, started) is false for all keys.
  bool MayCoverKeys(absl::Time started) const;

  // For how long from `now` such an entry is fresh, which by policy is
  // `served_for`. After a soft purge it has not been since that.
  absl::Duration FreshFor(const key::Key& key, absl::Time started,
                          absl::Duration served_for, absl::Time now) const;

  // The latest soft purge that such an entry is under; InfinitePast if none.
  absl::Time SoftBefore(const key::Key& key, absl::Time started) const;

  // Calls `fill` unless an answer of a call that started then is purged.
  // Returns whether it called it. No purge of the key comes in between: it
  // finds what was filled, or the fill finds it. (A fill in progress at a soft
  // purge of its key is not stored either, so that the ban can end with the
  // present entry.)
  bool FillUnlessBanned(const key::Key& key, absl::Time started,
                        absl::FunctionRef<void()> fill) const;

 private:
  friend class Bans;
  explicit BanScope(Bans* bans) : bans_(bans) {}

  Bans* const bans_;
  // The latest of the bans of everything, the function and the generation.
  std::atomic<int64_t> purged_{kNeverBanned};
  std::atomic<int64_t> stale_{kNeverBanned};
};

class Bans {
 public:
  // Limits of the bans of keys and of generations. Beyond one, whole functions
  // are banned instead.
  static constexpr size_t kMostKeys = 10'000;
  static constexpr size_t kMostGenerations = 10'000;

  Bans();
  ~Bans();
  Bans(const Bans&) = delete;
  Bans& operator=(const Bans&) = delete;

  const BanScope& Of(absl::string_view function, absl::string_view generation);
  // The number of generations in which Of was called for this function.
  size_t Generations(absl::string_view function) const;
  // Whether Of was called for this generation.
  bool Knows(absl::string_view function, absl::string_view generation) const;

  // ------------------------------------------------------- Running operations

  // Marks an operation in progress that may return or store an entry older than
  // a later purge. Take it before the start time of the operation.
  class Entered {
   public:
    Entered() = default;
    Entered(Entered&& other) noexcept
        : bans_(std::exchange(other.bans_, nullptr)), epoch_(other.epoch_) {}
    Entered& operator=(Entered&& other) noexcept {
      std::swap(bans_, other.bans_);
      std::swap(epoch_, other.epoch_);
      return *this;
    }
    ~Entered() {
      if (bans_ != nullptr) bans_->Leave(epoch_);
    }
    bool holds() const { return bans_ != nullptr; }

   private:
    friend class Bans;
    Entered(Bans* bans, uint64_t epoch) : bans_(bans), epoch_(epoch) {}
    Bans* bans_ = nullptr;
    uint64_t epoch_ = 0;
  };
  Entered Enter();

  // ----------------------------------------------------------------- Purging

  enum class Kind { kAll, kFunction, kGeneration, kKey };

  // Bans for good the entries whose calls started at or before `before`. Every
  // later fill sees the ban. `kind` is not kKey. A `function` or `generation`
  // that the kind does not need is ignored. Returns the kind of the ban:
  // kFunction for the generation that would be one too many.
  Kind Ban(Kind kind, absl::string_view function, absl::string_view generation,
           absl::Time before, bool soft);

  // Bans a key, at least for as long as the result lives, and in any case until
  // `until`: when the entries that it is about will be gone. Absent if there
  // are too many already: ban the function.
  absl::optional<Entered> BanKey(const key::Key& key, absl::Time before,
                                 bool soft, absl::Time until);

  // Keeps and saves the ban of a key until Deleted. For an entry that could not
  // be deleted from a tier that outlives the process.
  void KeepKey(const key::Key& key);
  void Deleted(const key::Key& key, absl::Time before);
  // The keys whose entries are still to be deleted, and their bans.
  std::vector<std::pair<key::Key, absl::Time>> Kept() const;

  // --------------------------------------------------------------- Outliving

  // Reports that a directory is configured but cannot be used yet.
  void Await();
  using Writer = std::function<absl::Status(absl::string_view content)>;
  // Reports that the directory is open. `content` is the file that was read,
  // absent if there is none. `write` replaces the whole file. No stored entry
  // started after `latest`, or after any time seen so far.
  void Attach(const absl::StatusOr<absl::optional<std::string>>& content,
              Writer write, absl::Time latest);
  // Stops all further writes.
  void Detach();
  // Whether bans are to outlive the process.
  bool lasting() const;

  // Returns OK once every ban would survive the process, or none has to.
  // Unavailable with the reason otherwise: the bans are in force nevertheless.
  absl::Status Save();
  // Saves if that is due. The owner calls it every few seconds.
  void Retry();
  bool saved() const;

  // ----------------------------------------------------------------- Sharing

  // Reports that the bans are those of a fleet, whose record `write` writes
  // (shared_store.h): Save calls it, and it writes Shared(). From now on the
  // ban of a key lasts `keys_last` from its purge, and is in the record so
  // long.
  void Share(std::function<absl::Status()> write, absl::Duration keys_last);

  // The bans of a record that were not known here.
  struct Learned {
    bool all = false;
    std::vector<std::string> functions;
    std::vector<std::pair<std::string, std::string>> generations;
    // Keys of hard bans, each with the time up to which it is purged.
    std::vector<std::pair<key::Key, absl::Time>> keys;
    // Keys of soft bans. (The wide ones above are of either kind.)
    std::vector<key::Key> soft_keys;
    // Whether any of the wide ones above is hard.
    bool hard = false;
    // Up to when entries are purged by the hard ones of these, at most.
    absl::Time before = absl::InfinitePast();

    bool empty() const {
      return !all && functions.empty() && generations.empty() && keys.empty() &&
             soft_keys.empty();
    }
  };
  // Adds the bans of a record, also beyond the limits above. Bans of keys whose
  // time is over at `now` are left out. Every fill after it sees the bans.
  Learned Learn(const StoredBans& record, absl::Time now);
  // All bans that the record of the fleet must have at `now`.
  StoredBans Shared(absl::Time now);
  // A number that grows after each ban that was not learned.
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

  // ----------------------------------------------------------------- Looking

  // Whether a stored entry of this function and generation is purged.
  bool CoversStored(absl::string_view function, absl::string_view generation,
                    const key::Key& key, absl::Time started) const;

  struct Covering {
    Kind kind = Kind::kAll;
    bool soft = false;
    absl::Time before;
  };
  // The ban that such an entry is under, the widest first, hard before soft.
  absl::optional<Covering> Find(absl::string_view function,
                                absl::string_view generation,
                                const key::Key& key, absl::Time started) const;

  // A ban that never ends.
  struct Listed {
    Kind kind = Kind::kAll;
    std::string generation;  // kGeneration
    bool soft = false;
    absl::Time before;
  };
  // The bans that cover a function, the widest first, at most `most` of them.
  std::vector<Listed> List(absl::string_view function, size_t most) const;

  // How many bans there are.
  struct Figures {
    size_t all = 0;
    size_t functions = 0;
    size_t generations = 0;
    size_t keys = 0;
  };
  Figures figures() const;

 private:
  friend class BanScope;

  struct KeyBan {
    BanTimes times;
    // When they end, in nanoseconds since the Unix epoch.
    int64_t until = 0;
    // Neither ban ends before every operation that entered in this epoch or an
    // earlier one has left. 0: all have left.
    uint64_t epoch = 0;
    // The hard ban does not end while this is true.
    bool kept = false;
  };
  // Orders the fills of a key with its purges.
  struct alignas(64) Stripe {
    mutable Mutex mutex;
    absl::flat_hash_map<key::Key, KeyBan> keys ABSL_GUARDED_BY(mutex);
  };
  static constexpr size_t kStripes = 64;

  using Generation = std::pair<std::string, std::string>;

  static size_t StripeAt(const key::Key& key) { return key.high % kStripes; }
  Stripe& StripeOf(const key::Key& key) { return stripes_[StripeAt(key)]; }
  const Stripe& StripeOf(const key::Key& key) const {
    return stripes_[StripeAt(key)];
  }
  // Whether a key of the same stripe is banned at that time or later. A younger
  // entry needs no further check.
  bool MayCover(const key::Key& key, int64_t at) const {
    return at <= newest_key_[StripeAt(key)].load(std::memory_order_acquire);
  }
  void SetNewest(size_t stripe)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(stripes_[stripe].mutex);

  bool shared() const { return keys_last_.load() != 0; }
  // A fill that has not seen an earlier ban has ended when this returns.
  void AwaitFills();
  // Begins a new epoch, and returns the one before.
  uint64_t NextEpoch();
  void Leave(uint64_t epoch);
  // Forgets the bans of keys that have ended. Operations that entered in epoch
  // `oldest` or later may still run.
  void EndKeys(uint64_t oldest);
  uint64_t OldestEpoch() const;
  // The bans of a key; none if there is none.
  BanTimes KeyTimes(const key::Key& key) const;

  BanTimes TimesOf(const Generation& generation) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Merge(const StoredBans& bans) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Updates the scopes after a ban was added, and forgets bans that others
  // cover.
  void Spread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the bans that the key had before.
  BanTimes AddKey(const key::Key& key, const KeyBan& ban);
  // `now`: of a fleet's record, in nanoseconds since the Unix epoch.
  StoredBans ToStore(int64_t now) const;
  void Saw(absl::Time time);

  mutable Mutex mutex_;
  // Bans that never end.
  BanTimes all_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, BanTimes> functions_ ABSL_GUARDED_BY(mutex_);
  std::map<Generation, BanTimes> generations_ ABSL_GUARDED_BY(mutex_);
  std::map<Generation, std::unique_ptr<BanScope>> scopes_
      ABSL_GUARDED_BY(mutex_);
  // The latest ban that never ends.
  std::atomic<int64_t> newest_{kNeverBanned};

  std::array<Stripe, kStripes> stripes_;
  // The latest ban of any key of a stripe. Hits read them. Their cache lines
  // are written only at purges.
  alignas(64) std::array<std::atomic<int64_t>, kStripes> newest_key_;
  alignas(64) std::atomic<size_t> keys_{0};
  // The latest time that a purge was made at, or a record was read.
  std::atomic<int64_t> seen_{kNeverBanned};
  // In a fleet: how long the ban of a key lasts, in nanoseconds. Else 0.
  std::atomic<int64_t> keys_last_{0};
  // Bans of keys of earlier epochs than this have been looked through.
  std::atomic<uint64_t> ended_{0};

  // The number of operations that have entered and not left, by epoch. Each ban
  // of a key begins a new epoch.
  mutable Mutex entered_mutex_;
  uint64_t epoch_ ABSL_GUARDED_BY(entered_mutex_) = 1;
  std::map<uint64_t, size_t> entered_ ABSL_GUARDED_BY(entered_mutex_);

  // The number of changes to write, and of those that are written.
  std::atomic<uint64_t> changes_{0};
  std::atomic<uint64_t> written_{0};
  // One writer at a time.
  mutable Mutex save_mutex_;
  bool lasting_ ABSL_GUARDED_BY(save_mutex_) = false;
  Writer write_ ABSL_GUARDED_BY(save_mutex_);
  bool logged_ ABSL_GUARDED_BY(save_mutex_) = false;
};

inline bool BanScope::Covers(const key::Key& key, absl::Time started) const {
  const int64_t at = absl::ToUnixNanos(started);
  if (at <= purged_.load(std::memory_order_acquire)) return true;
  return bans_->MayCover(key, at) && at <= bans_->KeyTimes(key).purged;
}

inline bool BanScope::CoversKey(const key::Key& key, absl::Time started) const {
  const int64_t at = absl::ToUnixNanos(started);
  if (!bans_->MayCover(key, at)) return false;
  const BanTimes times = bans_->KeyTimes(key);
  return at <= std::max(times.purged, times.stale);
}

inline bool BanScope::MayCoverKeys(absl::Time started) const {
  if (bans_->keys_.load(std::memory_order_acquire) == 0) return false;
  const int64_t at = absl::ToUnixNanos(started);
  return std::any_of(bans_->newest_key_.begin(), bans_->newest_key_.end(),
                     [at](const std::atomic<int64_t>& newest) {
                       return at <= newest.load(std::memory_order_acquire);
                     });
}

inline absl::Time BanScope::SoftBefore(const key::Key& key,
                                       absl::Time started) const {
  const int64_t at = absl::ToUnixNanos(started);
  int64_t stale = stale_.load(std::memory_order_acquire);
  if (bans_->MayCover(key, at)) {
    stale = std::max(stale, bans_->KeyTimes(key).stale);
  }
  return at <= stale ? absl::FromUnixNanos(stale) : absl::InfinitePast();
}

inline absl::Duration BanScope::FreshFor(const key::Key& key,
                                         absl::Time started,
                                         absl::Duration served_for,
                                         absl::Time now) const {
  const absl::Time soft = SoftBefore(key, started);
  if (soft == absl::InfinitePast()) return served_for;
  // The purge may be later than `now`: another thread read the clock.
  return std::min(served_for, std::min(soft - now, absl::ZeroDuration()));
}

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_BANS_H_
