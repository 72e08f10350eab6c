// SPDX-License-Identifier: Apache-2.0
// HiddenKeys: entries of a lower tier that this process no longer finds,
// because a later fill or purge did not reach the tier.
//
// Thread-safe.
#ifndef FNCACHE_CACHE_STORE_HIDDEN_KEYS_H_
#define FNCACHE_CACHE_STORE_HIDDEN_KEYS_H_

#include <atomic>
#include <cstddef>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "cache/key/key.h"
#include "common/mutex.h"

namespace fncache::cache::store {

class HiddenKeys {
 public:
  // Limit of keys that are hidden one by one. Beyond it, one time floor hides
  // every entry that is as old.
  static constexpr size_t kMost = 65536;

  // Hides the key's entry unless its call started after `started`.
  void Hide(const key::Key& key, absl::Time started);
  bool IsHidden(const key::Key& key, absl::Time started) const;
  // A later fill has replaced the key's entry.
  void Unhide(const key::Key& key);

 private:
  mutable Mutex mutex_;
  absl::flat_hash_map<key::Key, absl::Time> keys_ ABSL_GUARDED_BY(mutex_);
  absl::Time floor_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // Whether there is anything hidden. It spares readers the lock.
  std::atomic<bool> hiding_{false};
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_HIDDEN_KEYS_H_
