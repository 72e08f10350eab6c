// SPDX-License-Identifier: Apache-2.0
// ConnectionCap: how much the calls of one connection may keep of the memory
// budget. A connection may keep at most as much as it leaves free, so a later
// connection always finds some: with n greedy connections, each has 1/(n+1) of
// the budget (dynamic thresholds: Choudhury and Hahne, "Dynamic queue length
// thresholds for shared-memory packet switches", 1998).
//
// Thread-safety: any thread.
#ifndef FNCACHE_PROXY_LIMITS_CONNECTION_CAP_H_
#define FNCACHE_PROXY_LIMITS_CONNECTION_CAP_H_

#include <cstddef>

#include "proxy/limits/budget.h"

namespace fncache::proxy::limits {

class ConnectionCap {
 public:
  // `budget` may be null: then there is no cap. It outlives this.
  explicit ConnectionCap(const Budget* budget) : budget_(budget) {}

  // True if a connection may keep `kept` bytes, which are charged already.
  bool MayKeep(size_t kept) const {
    return budget_ == nullptr || kept <= budget_->free();
  }
  // True if a connection that keeps `granted` bytes of its large requests may
  // keep `more`, which are not charged yet.
  bool MayGrant(size_t granted, size_t more) const {
    return budget_ == nullptr || granted + 2 * more <= budget_->free_to_grant();
  }

 private:
  const Budget* const budget_;
};

}  // namespace fncache::proxy::limits

#endif  // FNCACHE_PROXY_LIMITS_CONNECTION_CAP_H_
