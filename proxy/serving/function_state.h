// SPDX-License-Identifier: Apache-2.0
// FunctionState: one set of settings of a function: its policy, its masks, and
// the digesters that make its keys. A reload makes another one. A call takes
// the newest state when its request is complete, and keeps it to its end. So no
// call ever has two sets of settings.
//
// FunctionStates has the newest state. Each worker has its own reference to it
// (worker_shared.h).
//
// Thread-safe, except Of.
#ifndef FNCACHE_PROXY_SERVING_FUNCTION_STATE_H_
#define FNCACHE_PROXY_SERVING_FUNCTION_STATE_H_

#include <atomic>
#include <memory>
#include <mutex>

#include "absl/types/optional.h"
#include "cache/key/digest.h"
#include "cache/policy.h"
#include "cache/store/bans.h"
#include "cache/store/tiered_store.h"
#include "common/method.h"
#include "proxy/serving/evidence.h"
#include "proxy/serving/shadow.h"
#include "proxy/serving/worker_shared.h"
#include "proxy/settings/options.h"

namespace fncache::proxy::serving {

// A request, as the gate compares it with entries.
struct RequestKey {
  cache::key::Key key;
  // With tuning: its drift digest, and its kinds. No kinds: it only gets
  // entries of its own drift. A key by hint has no drift.
  absl::optional<cache::key::Key> drift;
  const cache::key::DriftKinds* kinds = nullptr;
};

class FunctionState {
 public:
  // `store` and `evidence` outlive this object. `trial` is the trial of the
  // settings before, if their mode was `shadow`.
  FunctionState(const settings::FunctionOptions& options,
                cache::store::TieredStore* store, Evidence* evidence,
                const std::shared_ptr<ShadowTrial>& trial = nullptr)
      : options(options),
        policy(options.policy),
        bans(store->bans().Of(options.name, options.generation)),
        store(*store),
        evidence(evidence),
        shadow(ShadowTrial::For(options, trial)),
        digesters_(options, store->seed()) {}

  // Makes the keys of requests to one of RunFunction's two versions, under the
  // seed that the store has now.
  const cache::key::Digester& digester(Method method);

  // Counts a request of the function that got a key. After the first thousand
  // it warns of masks that matched nothing.
  void TryMasks();

  // How long from `now` an entry is served as fresh, by policy and by the
  // purges of operators. Zero or less: it ceased to be fresh this long ago.
  absl::Duration ServedFor(const cache::key::Key& key,
                           const cache::store::Entry& entry,
                           absl::Time now) const {
    return bans.FreshFor(key, entry.started(),
                         policy.ServedFor(entry.info(), now), now);
  }
  // The gate: the use that this request may make of an entry with its key at
  // `now`. Every finder of an entry asks here, and nowhere else. `judged`, if
  // not null, is set if their drift is not the same.
  cache::Freshness FreshnessOf(
      const RequestKey& request, const cache::store::Entry& entry,
      absl::Time now, absl::optional<Judgement>* judged = nullptr) const {
    const cache::Freshness freshness =
        FreshnessForItself(request.key, entry, now);
    if (!tunes() || freshness == cache::Freshness::kSpent ||
        entry.drift() == request.drift) {
      return freshness;
    }
    const Judgement judgement = JudgeDrift(request, entry, now);
    if (judged != nullptr) *judged = judgement;
    return judgement.verdict == DriftVerdict::kHit ? freshness
                                                   : cache::Freshness::kSpent;
  }
  // The use that the request with which it was filled may make of an entry.
  cache::Freshness FreshnessForItself(const cache::key::Key& key,
                                      const cache::store::Entry& entry,
                                      absl::Time now) const {
    if (!MayUse(key, entry)) return cache::Freshness::kSpent;
    const cache::Freshness freshness =
        policy.FreshnessAfter(ServedFor(key, entry, now));
    if (freshness != cache::Freshness::kFresh && entry.superseded()) {
      return cache::Freshness::kSpent;
    }
    return freshness;
  }
  // True if `found` has an entry, and it is fresh for this request.
  bool IsFresh(const RequestKey& request, const cache::store::EntryRef& found,
               absl::Time now) const {
    return found &&
           FreshnessOf(request, *found, now) == cache::Freshness::kFresh;
  }
  // The same for the request with which it was filled.
  bool IsFreshForItself(const cache::key::Key& key,
                        const cache::store::EntryRef& found,
                        absl::Time now) const {
    return found &&
           FreshnessForItself(key, *found, now) == cache::Freshness::kFresh;
  }
  // Entries may answer across drift.
  bool tunes() const { return evidence != nullptr && options.tunes(); }
  // Neither an operator nor the settings forbid it, however young it is.
  bool MayUse(const cache::key::Key& key,
              const cache::store::Entry& entry) const {
    return !Purged(key, entry) && policy.MayServe(entry);
  }
  // An operator has purged it.
  bool Purged(const cache::key::Key& key,
              const cache::store::Entry& entry) const {
    return bans.Covers(key, entry.started());
  }

  const settings::FunctionOptions options;
  const cache::Policy policy;
  // The purges of the function's entries.
  const cache::store::BanScope& bans;
  cache::store::TieredStore& store;
  Evidence* const evidence;                   // null: there is no tuning
  const std::shared_ptr<ShadowTrial> shadow;  // null unless `mode: shadow`

 private:
  Judgement JudgeDrift(const RequestKey& request,
                       const cache::store::Entry& entry, absl::Time now) const;

  struct Digesters {
    Digesters(const settings::FunctionOptions& options,
              const cache::key::Seed& seed);

    const cache::key::Seed& seed;
    const cache::key::Digester v1;
    const cache::key::Digester v1beta1;
  };

  const Digesters digesters_;
  // For the seed of a disk tier that opened later; see TieredStore::seed.
  absl::optional<Digesters> late_digesters_;
  std::once_flag late_;
  std::atomic<int> tried_masks_{0};
};

using FunctionStatePtr = std::shared_ptr<FunctionState>;

class FunctionStates {
 public:
  // `store` and `evidence` outlive this object.
  FunctionStates(const settings::FunctionOptions& options,
                 cache::store::TieredStore* store, Evidence* evidence);

  // The newest state, as the reference of the worker with this index. Call it
  // on that worker's thread only; it is valid until the next call there.
  const FunctionStatePtr& Of(int worker) { return states_.Of(worker); }
  // The newest state. On any thread.
  FunctionStatePtr Newest() const { return states_.Newest(); }
  bool IsNewest(const FunctionStatePtr& state) const {
    return states_.IsNewest(state.get());
  }

  // Calls whose requests are complete from now on have these settings. Name,
  // listen and upstream must not change.
  void Replace(const settings::FunctionOptions& options);

 private:
  cache::store::TieredStore* const store_;
  Evidence* const evidence_;
  WorkerShared<FunctionState> states_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_FUNCTION_STATE_H_
