// SPDX-License-Identifier: Apache-2.0
// Bans: what operators have purged; DESIGN's "Purge".
//
// A ban of everything, of a function or of one of its generations never ends:
// an entry whose call started at or before it is neither served nor stored. A
// ban of a key only has to hold back what is under way, since the entry itself
// is deleted: it ends when all that began before it (calls to functions,
// look-ups below memory) has ended.
//
//   purge:  Ban or BanKey, then the flights, then the entries in the tiers, and
//           Save; only then it is answered
//   hit:    BanScope::Covers, for each entry that is found
//   fill:   Enter before the call to the function starts, and
//           BanScope::FillUnlessBanned with its answer
//
// A soft purge makes entries stale instead: BanScope::FreshFor. Such a ban of a
// key lasts until the entry is gone.
//
// Beside a disk tier bans are kept in its directory (stored_bans.h): Attach
// reads them before anything is served. What cannot be read bans everything
// that is stored; what cannot be written is in force all the same, Save says
// so, and Retry writes it as soon as that is possible.
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

// The bans as one function in one generation meets them. Made by Bans::Of, and
// there for as long as the Bans are.
class alignas(64) BanScope {
 public:
  BanScope(const BanScope&) = delete;
  BanScope& operator=(const BanScope&) = delete;

  // Whether the entry under `key` whose call started then is purged: it must
  // not be served.
  bool Covers(const key::Key& key, absl::Time started) const;

  // For how long from `now` such an entry is fresh, which by policy is
  // `served_for`. After a soft purge it has not been since that.
  absl::Duration FreshFor(const key::Key& key, absl::Time started,
                          absl::Duration served_for, absl::Time now) const;

  // The latest soft purge that such an entry is under; InfinitePast if none.
  absl::Time SoftBefore(const key::Key& key, absl::Time started) const;

  // Calls `fill` unless an answer of a call that started then is purged, and
  // says whether it did. No purge of the key comes in between: it finds what
  // was filled, or the fill finds it. (What is under way at a soft purge of its
  // key is not stored either, so that the ban can end with the entry there is.)
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
  // Beyond so many bans of keys, or of generations, whole functions are banned
  // instead.
  static constexpr size_t kMostKeys = 10'000;
  static constexpr size_t kMostGenerations = 10'000;

  Bans();
  ~Bans();
  Bans(const Bans&) = delete;
  Bans& operator=(const Bans&) = delete;

  const BanScope& Of(absl::string_view function, absl::string_view generation);
  // In how many generations a function was asked for so far.
  size_t Generations(absl::string_view function) const;
  // Whether it was asked for in this one.
  bool Knows(absl::string_view function, absl::string_view generation) const;

  // ------------------------------------------------------------ What goes on

  // Held by whatever may bring an entry to light that is older than a purge
  // which comes meanwhile. Take it before the time at which that starts.
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

  // Bans for good what started at or before `before`. Every fill that comes
  // later sees it. `kind` is not kKey; what it does not need of `function` and
  // `generation` is ignored. Returns what it has banned: kFunction for the
  // generation that would be one too many.
  Kind Ban(Kind kind, absl::string_view function, absl::string_view generation,
           absl::Time before, bool soft);

  // Bans a key, at least for as long as the result lives. `until`, of a soft
  // ban: when the entry will be gone. Absent if there are too many already:
  // ban the function.
  absl::optional<Entered> BanKey(const key::Key& key, absl::Time before,
                                 bool soft, absl::Time until);

  // The key's entry could not be deleted from a tier that outlives the process:
  // its ban is kept, and written down, until Deleted.
  void KeepKey(const key::Key& key);
  void Deleted(const key::Key& key, absl::Time before);
  // The keys whose entries are still to be deleted, and their bans.
  std::vector<std::pair<key::Key, absl::Time>> Kept() const;

  // --------------------------------------------------------------- Outliving

  // There is to be a directory, but it cannot be used yet.
  void Await();
  using Writer = std::function<absl::Status(absl::string_view content)>;
  // The directory is there. `content` is the file that was read, absent if
  // there is none, and `write` puts another one in its place, whole. No entry
  // that is stored started after `latest`, or anybody's time by now.
  void Attach(const absl::StatusOr<absl::optional<std::string>>& content,
              Writer write, absl::Time latest);
  // Nothing is written from now on.
  void Detach();
  // Whether bans are to outlive the process.
  bool lasting() const;

  // Returns OK once every ban would survive the process, or none has to.
  // Unavailable with the reason otherwise: the bans are in force nevertheless.
  absl::Status Save();
  // Does that if it is due. To be called every few seconds.
  void Retry();
  bool saved() const;

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
  // Those that a function is under, the widest first, at most so many.
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
    // When the soft one ends, in nanoseconds since the Unix epoch.
    int64_t until = 0;
    // Neither ends before all that entered in this epoch or before has left; 0:
    // it has,
    uint64_t epoch = 0;
    // and the hard one not before this is false.
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
  // Whether a key that shares its stripe is banned at that time or later:
  // entries that are younger than that need no closer look.
  bool MayCover(const key::Key& key, int64_t at) const {
    return at <= newest_key_[StripeAt(key)].load(std::memory_order_acquire);
  }
  void SetNewest(size_t stripe)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(stripes_[stripe].mutex);

  void Leave(uint64_t epoch);
  // Forgets the bans of keys that have ended; what entered in `oldest` or later
  // may not have left.
  void EndKeys(uint64_t oldest);
  uint64_t OldestEpoch() const;
  // The bans of a key; none if there is none.
  BanTimes KeyTimes(const key::Key& key) const;

  BanTimes TimesOf(const Generation& generation) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Merge(const StoredBans& bans) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells the scopes, after a ban was added, and forgets what others cover.
  void Spread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddKey(const key::Key& key, const KeyBan& ban);
  StoredBans ToStore() const;
  void Saw(absl::Time time);

  mutable Mutex mutex_;
  // Bans that never end.
  BanTimes all_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, BanTimes> functions_ ABSL_GUARDED_BY(mutex_);
  std::map<Generation, BanTimes> generations_ ABSL_GUARDED_BY(mutex_);
  std::map<Generation, std::unique_ptr<BanScope>> scopes_
      ABSL_GUARDED_BY(mutex_);
  // The latest of them.
  std::atomic<int64_t> newest_{kNeverBanned};

  std::array<Stripe, kStripes> stripes_;
  // The latest ban of any key of a stripe. Hits read them, and nothing is
  // written beside them but at purges.
  alignas(64) std::array<std::atomic<int64_t>, kStripes> newest_key_;
  alignas(64) std::atomic<size_t> keys_{0};
  // The latest time that a purge was made at.
  std::atomic<int64_t> seen_{kNeverBanned};

  // What has entered and not left, by epoch; each ban of a key begins another
  // one.
  mutable Mutex entered_mutex_;
  uint64_t epoch_ ABSL_GUARDED_BY(entered_mutex_) = 1;
  std::map<uint64_t, size_t> entered_ ABSL_GUARDED_BY(entered_mutex_);

  // Counts changes that are to be written, and which of them have been.
  std::atomic<uint64_t> changes_{0};
  std::atomic<uint64_t> written_{0};
  // One writer at a time.
  mutable Mutex save_mutex_;
  bool lasting_ ABSL_GUARDED_BY(save_mutex_) = false;
  Writer write_ ABSL_GUARDED_BY(save_mutex_);
  bool told_ ABSL_GUARDED_BY(save_mutex_) = false;
};

inline bool BanScope::Covers(const key::Key& key, absl::Time started) const {
  const int64_t at = absl::ToUnixNanos(started);
  if (at <= purged_.load(std::memory_order_acquire)) return true;
  return bans_->MayCover(key, at) && at <= bans_->KeyTimes(key).purged;
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
  // The purge may be of a moment after `now`, which another thread read.
  return std::min(served_for, std::min(soft - now, absl::ZeroDuration()));
}

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_BANS_H_
