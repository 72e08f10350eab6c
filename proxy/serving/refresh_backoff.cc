// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/refresh_backoff.h"

#include <algorithm>

namespace fncache::proxy::serving {

bool RefreshBackoff::Allows(const FlightKey& key, absl::Time now) {
  if (keys() == 0) return true;
  MutexLock lock(&mutex_);
  const auto it = failures_.find(key);
  return it == failures_.end() || it->second.until <= now;
}

void RefreshBackoff::Failed(const FlightKey& key, absl::Time now) {
  MutexLock lock(&mutex_);
  Forget(now);
  Failure& failure = failures_[key];
  failure.delay = failure.delay == absl::ZeroDuration()
                      ? kFirst
                      : std::min(2 * failure.delay, kLongest);
  failure.until = now + failure.delay;
  failure.forgotten = failure.until + kLongest;
  order_.erase(failure.number);
  failure.number = ++last_;
  order_.emplace(failure.number, key);
  Forget(now);
}

void RefreshBackoff::Succeeded(const FlightKey& key) {
  if (keys() == 0) return;
  MutexLock lock(&mutex_);
  const auto it = failures_.find(key);
  if (it == failures_.end()) return;
  order_.erase(it->second.number);
  failures_.erase(it);
  size_.store(failures_.size(), std::memory_order_relaxed);
}

size_t RefreshBackoff::Waiting(absl::Time now) {
  if (keys() == 0) return 0;
  MutexLock lock(&mutex_);
  return static_cast<size_t>(std::count_if(
      failures_.begin(), failures_.end(),
      [now](const auto& failure) { return failure.second.until > now; }));
}

void RefreshBackoff::Forget(absl::Time now) {
  while (!order_.empty()) {
    const auto oldest = failures_.find(order_.begin()->second);
    if (oldest->second.forgotten > now && failures_.size() <= kMostKeys) break;
    failures_.erase(oldest);
    order_.erase(order_.begin());
  }
  size_.store(failures_.size(), std::memory_order_relaxed);
}

}  // namespace fncache::proxy::serving
