// SPDX-License-Identifier: Apache-2.0
// Policy: which responses are stored, for how long and where, when a stored one
// is served, and which TTL the runner gets. One per function; the settings of
// DESIGN's "Policy, per function" are this file's options.
//
// The life of a response has three stages:
// - Decide when it arrives. It fixes the lifetime, and for how long the
//   response is kept beyond it.
// - MissTtl for the callers that waited for it.
// - FreshnessOf and HitTtl or StaleTtl for each look-up that finds it. They
//   apply margin, windows and requeue_ttl, so a restart may change these.
//
// Thread-safe: immutable after construction.
#ifndef FNCACHE_CACHE_POLICY_H_
#define FNCACHE_CACHE_POLICY_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/response.h"
#include "cache/store/entry.h"

namespace fncache::cache {

enum class Mode {
  kOn,
  kOff,  // a pure proxy: nothing is stored, no TTL rewritten
  // A rehearsal: stored as with kOn, but every call goes to the function, and
  // its answer passes untouched.
  kShadow,
};

// Says which tiers hold responses with connection details.
enum class StoreSecrets { kMemory, kAll, kNone };

// Says which TTL the runner gets.
struct RequeueTtl {
  enum class Kind {
    kRemaining,  // what is left of it, so that a requeue meets no entry
    kOriginal,   // what the function said
    kFixed,
  };
  Kind kind = Kind::kRemaining;
  absl::Duration fixed;  // kFixed only; positive
};

// How a stored response may be used. Stale begins where serving fresh ends, at
// L * (1 - ttl.margin), and both windows count from there.
enum class Freshness {
  kFresh,            // it answers at once
  kWhileRevalidate,  // so it does, while the function is asked behind
  kIfError,          // it answers if the function fails
  kSpent,            // it answers nothing any more
};

struct PolicyOptions {
  // The longest duration that a setting takes: the whole hours (292 years) that
  // int64 nanoseconds hold.
  static constexpr absl::Duration MaxDuration() {
    return absl::Hours(2'562'047);
  }

  Mode mode = Mode::kOn;
  // No entry lives longer, whatever the other settings say; 0 = no clamp.
  absl::Duration ttl_max = absl::Hours(24);
  // The lifetime whatever the function said, a zero TTL included. Positive.
  absl::optional<absl::Duration> ttl_override;
  // The lifetime where the function said nothing; 0 = not stored, as if unset.
  absl::optional<absl::Duration> ttl_default;
  // At least, of what is stored at all; 0 as if unset. `ttl_max` wins over it.
  absl::optional<absl::Duration> ttl_min;
  // The fraction by which lifetimes are shortened at random, at most. [0, 1)
  double ttl_jitter = 0;
  // The last part of a lifetime in which an entry is no longer served. The
  // runner requeues at TTL +-10 %: with less than that, requeues meet the very
  // entry that they come to replace, and each function run costs two
  // reconciles. [0, 1)
  double ttl_margin = 0.1;
  RequeueTtl requeue_ttl;
  bool store_fatal = false;
  StoreSecrets store_secrets = StoreSecrets::kMemory;
  // Larger responses pass through. 1 byte to 2 GiB.
  uint64_t max_entry_bytes = 16ull << 20;
  // How many callers released from a flight call upstream at once. At least 1.
  int max_released = 16;
  // For how long after its time a response answers at once, while the function
  // is asked behind; and for how long it answers where the function fails.
  // 0 to MaxDuration.
  absl::Duration stale_while_revalidate;
  absl::Duration stale_if_error;
  // How much longer than its first caller's deadline a flight's call may take;
  // it continues when its last caller has left. 0 = it is cancelled then.
  absl::Duration finish_abandoned;

  // InvalidArgument naming the setting, by its YAML key, and its accepted
  // range.
  absl::Status Validate() const;
};

class Policy {
 public:
  // Precondition: the options are valid.
  explicit Policy(const PolicyOptions& options) : options_(options) {}

  // Why a response is not stored.
  enum class Refusal { kNone, kOff, kTooLarge, kFatal, kSecrets, kNoTtl };

  struct Storing {
    bool store = false;  // at all, that is: in memory
    Refusal refusal = Refusal::kNone;
    bool lower_tiers = false;  // on disk too; implies `store`
    // For how long the entry lives, if `store`: positive whole nanoseconds that
    // fit into an int64.
    absl::Duration lifetime;
    // For how long it is kept, the same or more: EntryInfo::retention.
    absl::Duration retention;
  };
  // Decides what to do with a response of `bytes` bytes that arrived with
  // status OK. `random` in [0, 1) draws the jitter.
  Storing Decide(const ResponseFacts& response, size_t bytes,
                 double random) const;

  // Whether the settings let an entry be served at all: one that was stored
  // under others may hold what these do not keep.
  bool MayServe(const store::Entry& entry) const {
    return options_.store_secrets != StoreSecrets::kNone || !entry.secrets();
  }

  // For how long from `now` an entry will still be served: positive while it
  // is, zero or less once it is not (the margin applied). A `now` before the
  // entry's arrival counts as its arrival, because a caller's `now` may be a
  // moment older than an entry that another thread just filled. Entries from
  // another process's future are the stores' to refuse.
  absl::Duration ServedFor(const store::EntryInfo& entry, absl::Time now) const;

  // How an entry may be used at `now`.
  Freshness FreshnessOf(const store::EntryInfo& entry, absl::Time now) const {
    return FreshnessAfter(ServedFor(entry, now));
  }
  // The same for an entry that is fresh for `served_for` from now. Zero or
  // less: it ceased to be fresh this long ago.
  Freshness FreshnessAfter(absl::Duration served_for) const;

  // Whether anything is ever served past its time.
  bool serves_stale() const {
    return options_.stale_while_revalidate > absl::ZeroDuration() ||
           options_.stale_if_error > absl::ZeroDuration();
  }

  // The TTL that the runner gets with a hit; absent if the function gave no
  // valid one. It is zero only if the function's TTL was zero. Otherwise it is
  // positive, whatever `now` is.
  absl::optional<absl::Duration> HitTtl(const store::EntryInfo& entry,
                                        absl::Time now) const;

  // The TTL that the runner gets with a response past its time. It is short,
  // since there will be a newer response, but long enough that the runner does
  // not spin: max(10 s, a tenth of the function's TTL), and up to a tenth of
  // that more, which `random` in [0, 1) draws. Absent if the function gave
  // none, zero if it gave zero.
  absl::optional<absl::Duration> StaleTtl(const store::EntryInfo& entry,
                                          double random) const;

  // The TTL that the runner gets with a response that just arrived, for
  // MetaWithTtl. Absent: leave the response's bytes as they are. Positive.
  absl::optional<absl::Duration> MissTtl(const ResponseFacts& response,
                                         const Storing& storing) const;

  const PolicyOptions& options() const { return options_; }

 private:
  // The lifetime L before jitter; absent if the response is not stored.
  absl::optional<absl::Duration> Lifetime(const ResponseFacts& response) const;
  // For how long of a lifetime an entry is fresh.
  absl::Duration FreshFor(absl::Duration lifetime) const;

  const PolicyOptions options_;
};

}  // namespace fncache::cache

#endif  // FNCACHE_CACHE_POLICY_H_
