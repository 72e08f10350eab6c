// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/refresh_backoff.h"

#include <algorithm>

namespace fncache::proxy::serving {

bool RefreshBackoff::Allows(const cache::key::Key& key, absl::Time now) {
  if (keys() == 0) return true;
  MutexLock lock(&mutex_);
  const auto it = failures_.find(key);
  return it == failures_.end() || it->second.until <= now;
}

void RefreshBackoff::Failed(const cache::key::Key& key, absl::Time now) {
  MutexLock lock(&mutex_);
  Forget(now);
  Failure& failure = failures_[key];
  failure.delay = failure.delay == absl::ZeroDuration()
                      ? kFirst
                      : std::min(2 * failure.delay, kLongest);
  failure.until = now + failure.delay;
  failure.forgotten = failure.until + kLongest;
  order_.emplace_back(failure.forgotten, key);
  Forget(now);
}

void RefreshBackoff::Succeeded(const cache::key::Key& key) {
  if (keys() == 0) return;
  MutexLock lock(&mutex_);
  failures_.erase(key);
  size_.store(failures_.size(), std::memory_order_relaxed);
}

void RefreshBackoff::Forget(absl::Time now) {
  while (!order_.empty() &&
         (order_.front().first <= now || order_.size() > kMostKeys)) {
    const auto it = failures_.find(order_.front().second);
    if (it != failures_.end() && it->second.forgotten == order_.front().first) {
      failures_.erase(it);
    }
    order_.pop_front();
  }
  size_.store(failures_.size(), std::memory_order_relaxed);
}

}  // namespace fncache::proxy::serving
