// SPDX-License-Identifier: Apache-2.0
// KeyedStore: a store together with the digesters that make keys for it.
//
// A key is worth something only in the store whose seed it was made under, and
// a function's store may change once: when a disk tier that could not be opened
// at the start is there after all (cache::TieredStore::successor). So a call
// takes the newest KeyedStore when it makes its key, and looks up and fills
// there until it ends.
//
// Thread-safe.
#ifndef FNCACHE_PROXY_SERVING_KEYED_STORE_H_
#define FNCACHE_PROXY_SERVING_KEYED_STORE_H_

#include <atomic>
#include <memory>
#include <vector>

#include "cache/key/digest.h"
#include "cache/store/tiered_store.h"
#include "common/method.h"
#include "common/mutex.h"
#include "proxy/settings/options.h"

namespace fncache::proxy::serving {

class KeyedStore {
 public:
  KeyedStore(const settings::FunctionOptions& options,
             cache::store::TieredStore* store);

  cache::store::TieredStore& store() const { return store_; }
  // The digester for one of RunFunction's two versions.
  const cache::key::Digester& digester(Method method) const {
    return method == Method::kV1 ? v1_ : v1beta1_;
  }

 private:
  cache::store::TieredStore& store_;
  const cache::key::Digester v1_;
  const cache::key::Digester v1beta1_;
};

// The stores of one function, of which there are two at most.
class KeyedStores {
 public:
  // `options` and `store` outlive it.
  KeyedStores(const settings::FunctionOptions& options,
              cache::store::TieredStore* store);

  // The one that new calls use. It stays for as long as this does.
  const KeyedStore& Newest() {
    const KeyedStore* const newest = newest_.load(std::memory_order_acquire);
    if (newest->store().successor() == nullptr) return *newest;
    return Follow();
  }

 private:
  // Makes the digesters of the store that has taken the newest one's place,
  // unless another thread has.
  const KeyedStore& Follow();

  const settings::FunctionOptions& options_;
  std::atomic<const KeyedStore*> newest_;
  Mutex mutex_;
  std::vector<std::unique_ptr<const KeyedStore>> all_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_KEYED_STORE_H_
