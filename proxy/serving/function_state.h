// SPDX-License-Identifier: Apache-2.0
// FunctionState: what one set of settings makes of a function: its policy, its
// masks, the digesters that make its keys. A reload makes another one; a call
// takes the newest when its request is there and keeps it to its end, so that
// no call ever lives under two sets of settings.
//
// FunctionStates holds the newest one, of which each worker has its own share
// (worker_shared.h).
//
// Thread-safe, but for what is said at Of.
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
#include "proxy/serving/shadow.h"
#include "proxy/serving/worker_shared.h"
#include "proxy/settings/options.h"

namespace fncache::proxy::serving {

class FunctionState {
 public:
  // `store` outlives it. `trial` is what `mode: shadow` under the settings
  // before has found, if that was the mode.
  FunctionState(const settings::FunctionOptions& options,
                cache::store::TieredStore* store,
                const std::shared_ptr<ShadowTrial>& trial = nullptr)
      : options(options),
        policy(options.policy),
        bans(store->bans().Of(options.name, options.generation)),
        store(*store),
        shadow(ShadowTrial::For(options, trial)),
        digesters_(options, store->seed()) {}

  // Makes the keys of requests to one of RunFunction's two versions, under the
  // seed that the store has now.
  const cache::key::Digester& digester(Method method);

  // Another request of the function was keyed. Masks that matched nothing in
  // the first thousand are warned of.
  void TryMasks();

  const settings::FunctionOptions options;
  const cache::Policy policy;
  // What is purged of its entries.
  const cache::store::BanScope& bans;
  cache::store::TieredStore& store;
  const std::shared_ptr<ShadowTrial> shadow;  // null but in `mode: shadow`

 private:
  struct Digesters {
    Digesters(const settings::FunctionOptions& options,
              const cache::key::Seed& seed);

    const cache::key::Seed& seed;
    const cache::key::Digester v1;
    const cache::key::Digester v1beta1;
  };

  const Digesters digesters_;
  // For the seed of a disk tier that has opened since; see TieredStore::seed.
  absl::optional<Digesters> late_digesters_;
  std::once_flag late_;
  std::atomic<int> tried_masks_{0};
};

using FunctionStatePtr = std::shared_ptr<FunctionState>;

class FunctionStates {
 public:
  // `store` outlives it.
  FunctionStates(const settings::FunctionOptions& options,
                 cache::store::TieredStore* store);

  // The newest, as the worker with this index shares it. On that worker's
  // thread only; valid until the next call there.
  const FunctionStatePtr& Of(int worker) { return states_.Of(worker); }
  // The newest. On any thread.
  FunctionStatePtr Newest() const { return states_.Newest(); }
  bool IsNewest(const FunctionStatePtr& state) const {
    return states_.IsNewest(state.get());
  }

  // Calls whose requests are there from now on live under these settings. Name,
  // listen and upstream are those there were.
  void Replace(const settings::FunctionOptions& options);

 private:
  cache::store::TieredStore* const store_;
  WorkerShared<FunctionState> states_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_FUNCTION_STATE_H_
