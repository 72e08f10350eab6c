// SPDX-License-Identifier: Apache-2.0
// Purges the cache of a running daemon, and looks up a key in it, for an
// operator.
//
// A purge changes, in this order, the bans, the flights, the entries in the
// tiers, and the disk or the record of the fleet. Only then it is answered. So
// no later call gets an older entry, from this process or the next one. (An
// answer that is already being sent to a caller still arrives.)
//
// Thread-safe; blocks on I/O. One purge runs at a time, look-ups beside it.
#ifndef FNCACHE_PROXY_PURGE_H_
#define FNCACHE_PROXY_PURGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/key/key.h"
#include "cache/observer.h"
#include "cache/store/bans.h"
#include "cache/store/tiered_store.h"
#include "common/clock.h"
#include "common/log_limiter.h"
#include "common/method.h"
#include "common/mutex.h"
#include "insight/explain/miss_memory.h"
#include "proxy/serving/handler.h"
#include "proxy/telemetry/purge_metrics.h"

namespace fncache::proxy {

struct PurgeOrder {
  cache::store::Bans::Kind what = cache::store::Bans::Kind::kKey;
  cache::key::Key key;  // kKey
  // kFunction, kGeneration: the name. Empty means every function, and makes
  // kFunction kAll. kKey: the function that owns the key; empty if unknown. Not
  // allowed with kAll.
  std::string function;
  // kGeneration; of any build. At most settings::kMaxGenerationBytes.
  std::string generation;
  // Entries become stale instead of being removed.
  bool soft = false;
};

struct PurgeResult {
  // Entries that were removed: for a key one in each tier, otherwise those in
  // memory.
  uint64_t removed = 0;
  // Entries on disk of the purged functions, of all generations. A ban covers
  // the purged ones among them, until they are deleted with their files.
  uint64_t covered = 0;
  // Flights that no caller can join any more.
  uint64_t flights = 0;
  // A tier outlives the process, and so does this purge.
  bool durable = false;
  // The record of the fleet has this purge, or will have it.
  bool shared = false;
  // Too many keys or generations are purged at the moment, so these were purged
  // instead, in words: "function a" or "everything".
  std::vector<std::string> widened_to;
  // kGeneration: no function has had it since the process started.
  bool unknown_generation = false;
};

struct LookUpOrder {
  // The key, or the request that it is made from (a RunFunctionRequest's
  // bytes).
  absl::optional<cache::key::Key> key;
  std::string request;
  // The function that the request is for; empty means the only one.
  std::string function;
  Method method = Method::kV1;  // kV1 or kV1beta1
};

// An entry as one tier has it. The report never has its body.
struct EntryReport {
  cache::key::Key key;
  cache::Tier tier = cache::Tier::kMemory;
  // Empty if unknown: the function is not in the settings any more, or the
  // entry is in memory and more than one generation was served.
  std::string function;
  std::string generation;
  absl::Duration age;                  // since its answer arrived
  absl::Duration remaining;            // how long it is fresh; may be negative
  uint64_t size = 0;                   // in bytes, as the tier counts it
  absl::optional<absl::Duration> ttl;  // what the function gave
  absl::Duration lifetime;             // fixed at fill
  // The TTL that a hit would give the runner now; absent if there is none.
  absl::optional<absl::Duration> told_ttl;
  // Recent hits, in memory. The tier counts up to 3, and reduces the count as
  // it evicts.
  int hits = 0;
  bool secrets = false;
  // The ban that covers it: it is not served, or not as fresh.
  absl::optional<cache::store::Bans::Covering> ban;
  // Whether the entry answers a call with this key now. `served_why` says why
  // not, or under which condition.
  bool served = false;
  std::string served_why;
};

class Purger {
 public:
  struct Deps {
    cache::store::TieredStore* store = nullptr;
    // By FunctionId.
    std::vector<serving::FunctionHandler*> functions;
    Clock* clock = nullptr;
    // May be null.
    insight::explain::MissMemory* misses = nullptr;
    const telemetry::PurgeMetrics* metrics = nullptr;
  };
  // The objects that `deps` refers to outlive this object.
  explicit Purger(Deps deps) : deps_(std::move(deps)) {}

  // Purges. With these errors nothing is purged. NotFound: the function is not
  // in the settings. InvalidArgument: the order is not valid.
  // FailedPrecondition: the purge is soft, and the functions serve no stale
  // entries. With Unavailable the purge is done here, but a restart would
  // forget it, or the other replicas do not have it; that is retried.
  absl::StatusOr<PurgeResult> Purge(const PurgeOrder& order);

  // Applies what the record of the fleet says and the bans here did not know;
  // they have it already. Beside any purge.
  void OnLearned(const cache::store::Bans::Learned& learned);

  // The key of an order. NotFound or InvalidArgument: the function is unknown
  // or ambiguous, or the request cannot get a key.
  absl::StatusOr<cache::key::Key> KeyOf(const LookUpOrder& order) const;

  // The tiers' entries of this key, memory first, even if they may not be
  // served. It changes nothing, and no metric counts it.
  absl::StatusOr<std::vector<EntryReport>> LookUp(
      const LookUpOrder& order) const;

 private:
  using Functions = std::vector<cache::FunctionId>;

  // The functions that a name stands for.
  absl::StatusOr<Functions> Named(const std::string& name) const;
  // For a key purge: if a tier has the key, the named function must own it.
  absl::Status CheckOwner(const PurgeOrder& order) const;
  absl::Status CheckSoft(const PurgeOrder& order,
                         const Functions& functions) const;
  void PurgeWide(const PurgeOrder& order, const Functions& functions,
                 absl::Time before, PurgeResult* result);
  // Takes the entries of purged functions out of memory. `generation` is null
  // if all of theirs are purged.
  uint64_t Sweep(cache::FunctionId function, const std::string* generation,
                 absl::Time before);
  // True if the ban must be saved.
  bool PurgeKey(const PurgeOrder& order, const Functions& functions,
                absl::Time before, PurgeResult* result);
  const std::string& NameOf(cache::FunctionId function) const;
  // The function that owns the entry, if it is in the settings.
  absl::optional<cache::FunctionId> OwnerOf(
      const cache::store::Inspection& there) const;

  const Deps deps_;
  LogLimiter learned_lines_{absl::Seconds(10)};
  Mutex mutex_;  // one purge at a time
};

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_PURGE_H_
