// SPDX-License-Identifier: Apache-2.0
#include "cache/store/hidden_keys.h"

#include <algorithm>

namespace fncache::cache::store {

void HiddenKeys::Hide(const key::Key& key, absl::Time started) {
  MutexLock lock(&mutex_);
  hiding_ = true;
  const auto [it, added] = keys_.emplace(key, started);
  if (!added) it->second = std::max(it->second, started);
  if (keys_.size() <= kMost) return;
  for (const auto& [hidden, until] : keys_) floor_ = std::max(floor_, until);
  keys_.clear();
}

bool HiddenKeys::IsHidden(const key::Key& key, absl::Time started) const {
  if (!hiding_) return false;
  MutexLock lock(&mutex_);
  if (started <= floor_) return true;
  const auto it = keys_.find(key);
  return it != keys_.end() && started <= it->second;
}

void HiddenKeys::Unhide(const key::Key& key) {
  if (!hiding_) return;
  MutexLock lock(&mutex_);
  keys_.erase(key);
  if (keys_.empty() && floor_ == absl::InfinitePast()) hiding_ = false;
}

}  // namespace fncache::cache::store
