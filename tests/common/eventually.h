// SPDX-License-Identifier: Apache-2.0
// Waiting for something that another thread or process does.
#ifndef FNCACHE_TESTS_COMMON_EVENTUALLY_H_
#define FNCACHE_TESTS_COMMON_EVENTUALLY_H_

#include <functional>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace fncache {

// Waits, without guessing how long, until `condition` is so, and says that it
// is; false: it was not within `limit`, which is far beyond what it takes.
inline bool Eventually(const std::function<bool()>& condition,
                       absl::Duration limit = absl::Seconds(60)) {
  const absl::Time until = absl::Now() + limit;
  while (!condition()) {
    if (absl::Now() > until) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

}  // namespace fncache

#endif  // FNCACHE_TESTS_COMMON_EVENTUALLY_H_
