// SPDX-License-Identifier: Apache-2.0
// RefreshBackoff: which keys of one function are not refreshed for a while,
// because doing so failed: 1 s after the first failure, twice as long after
// each further one, 30 s at most. A key that is left alone for half a minute
// longer than it has to be begins anew, and so does the one that failed longest
// ago where there are too many.
//
// Thread-safe.
#ifndef FNCACHE_PROXY_SERVING_REFRESH_BACKOFF_H_
#define FNCACHE_PROXY_SERVING_REFRESH_BACKOFF_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "cache/key/key.h"
#include "common/mutex.h"

namespace fncache::proxy::serving {

class RefreshBackoff {
 public:
  static constexpr absl::Duration kFirst = absl::Seconds(1);
  static constexpr absl::Duration kLongest = absl::Seconds(30);
  // How many keys are remembered.
  static constexpr size_t kMostKeys = 4096;

  // Whether the key may be refreshed at `now`.
  bool Allows(const cache::key::Key& key, absl::Time now);
  void Failed(const cache::key::Key& key, absl::Time now);
  void Succeeded(const cache::key::Key& key);

  // How many keys may not be refreshed at `now`.
  size_t Waiting(absl::Time now);

  size_t keys() const { return size_.load(std::memory_order_relaxed); }

 private:
  struct Failure {
    absl::Time until;
    absl::Duration delay;
    absl::Time forgotten;
    uint64_t number = 0;  // its place in `order_`
  };
  void Forget(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Of `failures_`: where nothing fails, nobody takes the lock.
  std::atomic<size_t> size_{0};
  Mutex mutex_;
  absl::flat_hash_map<cache::key::Key, Failure> failures_
      ABSL_GUARDED_BY(mutex_);
  // In the order in which they failed last.
  std::map<uint64_t, cache::key::Key> order_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_REFRESH_BACKOFF_H_
