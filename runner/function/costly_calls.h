// SPDX-License-Identifier: Apache-2.0
// CostlyCalls: what a call of `fncache function` costs before its function runs
// (sleep, then CPU time), which calls fail, and a count of how they end.
//
// Lifecycle: it outlives the server that has its Interceptor. Its end waits for
// calls that are still in it. Thread-safe.
#ifndef FNCACHE_RUNNER_FUNCTION_COSTLY_CALLS_H_
#define FNCACHE_RUNNER_FUNCTION_COSTLY_CALLS_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"
#include "common/thread_pool.h"
#include "fncache/function/serve.h"
#include "runner/function/call_cost.h"

namespace fncache::runner::function {

struct CostOptions {
  CallCost cost;
  // Fraction (0 to 1) of the calls that end with UNAVAILABLE. Which ones
  // depends on `seed` and the number of the call only.
  double fail_rate = 0;
  uint64_t seed = 1;
  // Logs a line for each call, before it is answered.
  bool log_calls = false;
};

struct CallCounts {
  uint64_t calls = 0;      // started, i.e. the function's runs
  uint64_t answered = 0;   // with status OK
  uint64_t failed = 0;     // with another status
  uint64_t cancelled = 0;  // by the caller or its deadline
};

class CostlyCalls {
 public:
  explicit CostlyCalls(const CostOptions& options) : options_(options) {}
  ~CostlyCalls();

  ::fncache::function::Interceptor Interceptor();
  CallCounts counts() const;

 private:
  class Call;

  const CostOptions options_;
  std::atomic<uint64_t> calls_{0}, answered_{0}, failed_{0}, cancelled_{0};
  Mutex mutex_;
  CondVar gone_;
  int inside_ ABSL_GUARDED_BY(mutex_) = 0;
  // Only where calls cost CPU time, which must not keep gRPC's threads. The
  // first call makes it: until then the process can still block signals.
  std::unique_ptr<ThreadPool> workers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::runner::function

#endif  // FNCACHE_RUNNER_FUNCTION_COSTLY_CALLS_H_
