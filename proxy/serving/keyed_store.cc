// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/keyed_store.h"

namespace fncache::proxy::serving {
namespace {

cache::key::KeyScope Scope(const settings::FunctionOptions& options,
                           const char* path) {
  return {options.name, path, options.generation, options.key,
          options.key_hash};
}

}  // namespace

KeyedStore::KeyedStore(const settings::FunctionOptions& options,
                       cache::store::TieredStore* store)
    : store_(*store),
      v1_(store->seed(), Scope(options, kRunFunctionV1), options.masks),
      v1beta1_(store->seed(), Scope(options, kRunFunctionV1beta1),
               options.masks) {}

KeyedStores::KeyedStores(const settings::FunctionOptions& options,
                         cache::store::TieredStore* store)
    : options_(options) {
  auto first = std::make_unique<const KeyedStore>(options, store);
  newest_ = first.get();
  MutexLock lock(&mutex_);
  all_.push_back(std::move(first));
}

const KeyedStore& KeyedStores::Follow() {
  MutexLock lock(&mutex_);
  while (cache::store::TieredStore* const next =
             all_.back()->store().successor()) {
    all_.push_back(std::make_unique<const KeyedStore>(options_, next));
  }
  newest_.store(all_.back().get(), std::memory_order_release);
  return *all_.back();
}

}  // namespace fncache::proxy::serving
