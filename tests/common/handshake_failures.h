// SPDX-License-Identifier: Apache-2.0
// Keeps the handshakes that fail while it lives, in the order of their reports.
//
// Thread-safe.
#ifndef FNCACHE_TESTS_COMMON_HANDSHAKE_FAILURES_H_
#define FNCACHE_TESTS_COMMON_HANDSHAKE_FAILURES_H_

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/handshake_failure.h"
#include "common/mutex.h"

namespace fncache::testing {

class HandshakeFailures {
 public:
  std::vector<HandshakeFailure> All() {
    MutexLock lock(&mutex_);
    return failures_;
  }
  // The same, and forgets them.
  std::vector<HandshakeFailure> Take() {
    MutexLock lock(&mutex_);
    return std::exchange(failures_, {});
  }

 private:
  Mutex mutex_;
  std::vector<HandshakeFailure> failures_ ABSL_GUARDED_BY(mutex_);
  const HandshakeObserver observer_{[this](const HandshakeFailure& failure) {
    MutexLock lock(&mutex_);
    failures_.push_back(failure);
  }};
};

}  // namespace fncache::testing

#endif  // FNCACHE_TESTS_COMMON_HANDSHAKE_FAILURES_H_
