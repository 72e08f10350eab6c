// SPDX-License-Identifier: Apache-2.0
// The state of an intercepted call, which its Continuations and the call share.
// The call may end, and be deleted, while Continuations are still there.
//
// Thread-safe.
#ifndef FNCACHE_SDK_SERVE_CONTINUATION_H_
#define FNCACHE_SDK_SERVE_CONTINUATION_H_

#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "common/mutex.h"
#include "fncache/function/serve.h"

namespace fncache::function {

class Continuation::Call {
 public:
  // One of the two is called at most once, by the first decision: OK means that
  // the call continues.
  explicit Call(std::function<void(absl::Status)> decide)
      : decide_(std::move(decide)) {}

  // Decides if nothing has. The deciding thread calls `decide`.
  void Decide(const absl::Status& status) {
    if (!decided_.exchange(true)) decide_(status);
  }
  // For a call that ends otherwise: true if nothing has decided, and then
  // nothing will.
  bool Withdraw() { return !decided_.exchange(true); }

  void OnEnd(std::function<void(const CallEnd&)> on_end);
  // Whether an end is of interest to a callback.
  bool watched() const;
  void Ended(CallEnd end);

 private:
  const std::function<void(absl::Status)> decide_;
  std::atomic<bool> decided_{false};
  mutable Mutex mutex_;
  std::vector<std::function<void(const CallEnd&)>> on_end_
      ABSL_GUARDED_BY(mutex_);
  absl::optional<CallEnd> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::function

#endif  // FNCACHE_SDK_SERVE_CONTINUATION_H_
