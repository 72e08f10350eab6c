// SPDX-License-Identifier: Apache-2.0
// Purging, and looking a key up: what an operator does to the cache of a
// running daemon, and sees of it.
//
// A purge goes, in this order, to the bans, the flights, the entries in the
// tiers, and the disk; only then it is answered: nothing of before it is served
// to a call that comes later, by this process or the next one. (What is on its
// way to a caller already gets there.)
//
// Thread-safe; blocks on I/O. One purge at a time, look-ups beside it.
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
#include "common/method.h"
#include "common/mutex.h"
#include "insight/explain/miss_memory.h"
#include "proxy/serving/handler.h"
#include "proxy/telemetry/purge_metrics.h"

namespace fncache::proxy {

struct PurgeOrder {
  cache::store::Bans::Kind what = cache::store::Bans::Kind::kKey;
  cache::key::Key key;  // kKey
  // kFunction, kGeneration: the name; empty stands for every function, which
  // makes kFunction kAll. kKey: whose key it is, empty if that is not known.
  // Not with kAll.
  std::string function;
  // kGeneration; of whichever build. At most
  // settings::kMaxGenerationBytes.
  std::string generation;
  // Entries become stale rather than gone.
  bool soft = false;
};

struct PurgeResult {
  // Entries that are gone: of a key one for each tier, otherwise those that
  // were in memory.
  uint64_t removed = 0;
  // Entries on disk of the functions concerned, of all generations: those of
  // them that are purged are covered by a ban, and go with their files.
  uint64_t covered = 0;
  // Flights that nobody joins any more.
  uint64_t flights = 0;
  // There is a tier that outlives the process, and so does this purge.
  bool durable = false;
  // Too many keys, or generations, were purged for now: these have been
  // instead, in words, "function a" or "everything".
  std::vector<std::string> widened_to;
  // Of a generation: no function has been in it since the process started.
  bool unknown_generation = false;
};

struct LookUpOrder {
  // The key, or the request that it is made of (a RunFunctionRequest's bytes).
  absl::optional<cache::key::Key> key;
  std::string request;
  // The function that the request is for; empty stands for the only one.
  std::string function;
  Method method = Method::kV1;  // kV1 or kV1beta1
};

// An entry as one tier has it. Never its body.
struct EntryReport {
  cache::key::Key key;
  cache::Tier tier = cache::Tier::kMemory;
  // Empty where they are not known: of a function that is not in the settings
  // any more, or in memory, where more than one generation was served.
  std::string function;
  std::string generation;
  absl::Duration age;        // since its answer arrived
  absl::Duration remaining;  // for how long it is fresh; may be negative
  uint64_t size = 0;         // in bytes, as the tier counts it
  absl::optional<absl::Duration> ttl;  // what the function gave
  absl::Duration lifetime;             // fixed at fill
  // What a hit would tell the runner now; absent if nothing.
  absl::optional<absl::Duration> told_ttl;
  // Hits lately, in memory: the tier counts to 3, and forgets as it evicts.
  int hits = 0;
  bool secrets = false;
  // The ban that it is under: it is not served, or not as fresh.
  absl::optional<cache::store::Bans::Covering> ban;
  // Whether a call that makes this key now is answered from it; and why not, or
  // under which condition.
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
  // All that `deps` refer to outlives this.
  explicit Purger(Deps deps) : deps_(std::move(deps)) {}

  // NotFound where the function is not in the settings, InvalidArgument where
  // the order is none, FailedPrecondition where a soft purge meets functions
  // that serve nothing stale; then nothing is purged. Unavailable if it is
  // purged, but a restart would forget that: it is written down as soon as that
  // is possible.
  absl::StatusOr<PurgeResult> Purge(const PurgeOrder& order);

  // The key that an order is about. NotFound, InvalidArgument: the function is
  // not known, or which one is meant; the request cannot be keyed.
  absl::StatusOr<cache::key::Key> KeyOf(const LookUpOrder& order) const;

  // What the tiers have under that key, memory first, whether or not it may be
  // served. Changes nothing, and counts nowhere.
  absl::StatusOr<std::vector<EntryReport>> LookUp(
      const LookUpOrder& order) const;

 private:
  using Functions = std::vector<cache::FunctionId>;

  // The functions that a name stands for.
  absl::StatusOr<Functions> Named(const std::string& name) const;
  // Of a key: the function that was named has it, if anybody has.
  absl::Status CheckOwner(const PurgeOrder& order) const;
  absl::Status CheckSoft(const PurgeOrder& order,
                         const Functions& functions) const;
  void PurgeWide(const PurgeOrder& order, const Functions& functions,
                 absl::Time before, PurgeResult* result);
  // True if it is to be written down.
  bool PurgeKey(const PurgeOrder& order, const Functions& functions,
                absl::Time before, PurgeResult* result);
  const std::string& NameOf(cache::FunctionId function) const;
  // Whose entry it is, where that is a function of the settings.
  absl::optional<cache::FunctionId> OwnerOf(
      const cache::store::Inspection& there) const;

  const Deps deps_;
  Mutex mutex_;  // one purge at a time
};

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_PURGE_H_
