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

#include "cache/policy.h"
#include "cache/store/bans.h"
#include "cache/store/tiered_store.h"
#include "proxy/serving/keyed_store.h"
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
        stores(this->options, store),
        shadow(ShadowTrial::For(options, trial)) {}

  // Another request of the function was keyed. Masks that matched nothing in
  // the first thousand are warned of.
  void TryMasks();

  const settings::FunctionOptions options;
  const cache::Policy policy;
  // What is purged of its entries.
  const cache::store::BanScope& bans;
  KeyedStores stores;
  const std::shared_ptr<ShadowTrial> shadow;  // null but in `mode: shadow`

 private:
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
