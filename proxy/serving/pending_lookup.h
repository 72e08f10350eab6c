// SPDX-License-Identifier: Apache-2.0
// PendingLookup: keeps a worker open while a look-up in the lower tiers will be
// posted to it. A purge that comes meanwhile waits for it.
//
// Made and destroyed on the worker's thread.
#ifndef FNCACHE_PROXY_SERVING_PENDING_LOOKUP_H_
#define FNCACHE_PROXY_SERVING_PENDING_LOOKUP_H_

#include "cache/store/bans.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::serving {

class PendingLookup final : public transport::Activity {
 public:
  PendingLookup(transport::Worker* worker, cache::store::Bans* bans)
      : transport::Activity(Kind::kInner),
        worker_(worker),
        entered_(bans->Enter()) {
    worker_->Enter(this);
  }
  ~PendingLookup() { worker_->Leave(this); }
  // Nothing is cancelled, because a look-up ends soon anyway.
  void CancelActivity() override {}

 private:
  transport::Worker* const worker_;
  const cache::store::Bans::Entered entered_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_PENDING_LOOKUP_H_
