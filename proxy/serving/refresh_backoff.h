// SPDX-License-Identifier: Apache-2.0
// RefreshBackoff: the keys of one function (with their drift) that are not
// refreshed for now, because their refresh failed. The delay is 1 s after the
// first failure, twice as long after each further one, and at most 30 s. A key
// that does not fail for 30 s after its delay begins at 1 s again. Above
// kMostKeys the key that failed longest ago does, too.
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
#include "common/mutex.h"
#include "proxy/serving/flight_key.h"

namespace fncache::proxy::serving {

class RefreshBackoff {
 public:
  static constexpr absl::Duration kFirst = absl::Seconds(1);
  static constexpr absl::Duration kLongest = absl::Seconds(30);
  // How many keys are remembered. Beyond it the oldest failure is forgotten.
  static constexpr size_t kMostKeys = 4096;

  // Whether the key may be refreshed at `now`.
  bool Allows(const FlightKey& key, absl::Time now);
  void Failed(const FlightKey& key, absl::Time now);
  void Succeeded(const FlightKey& key);

  // How many keys may not be refreshed at `now`.
  size_t Waiting(absl::Time now);

  size_t keys() const { return size_.load(std::memory_order_relaxed); }

 private:
  struct Failure {
    absl::Time until;
    absl::Duration delay;
    absl::Time forgotten;
    uint64_t number = 0;  // its key in `order_`
  };
  void Forget(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The size of `failures_`. While it is 0, no thread locks the mutex.
  std::atomic<size_t> size_{0};
  Mutex mutex_;
  absl::flat_hash_map<FlightKey, Failure> failures_ ABSL_GUARDED_BY(mutex_);
  // Keys in the order of their last failure.
  std::map<uint64_t, FlightKey> order_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_REFRESH_BACKOFF_H_
