// SPDX-License-Identifier: Apache-2.0
// Core: what all calls of a server have in common.
//
// Thread-safe; immutable but for its members that are thread-safe.
#ifndef FNCACHE_SDK_SERVE_CORE_H_
#define FNCACHE_SDK_SERVE_CORE_H_

#include <atomic>
#include <cstddef>

#include "absl/time/time.h"
#include "common/thread_pool.h"
#include "common/threads.h"
#include "fncache/function/context.h"
#include "fncache/function/serve.h"
#include "sdk/serve/live_calls.h"
#include "sdk/serve/metrics.h"

namespace fncache::sdk::serve {

// Limit of calls that wait for a thread. Beyond it calls end with
// RESOURCE_EXHAUSTED.
inline constexpr size_t kMostWaiting = 10000;
// Further streams of a connection wait for these.
inline constexpr int kMostStreams = 1000;
// A connection with more calls than this is closed. A caller has so many only
// if it ignores kMostStreams, or resets streams faster than calls can end
// (CVE-2023-44487). gRPC 1.51 has a limit for neither.
inline constexpr int kMostCalls = 2 * kMostStreams;
// A call is cancelled if its request, or the reading of its response, takes
// longer: gRPC does not show whether a peer moves at all.
inline constexpr absl::Duration kStuck = absl::Minutes(2);
// After this time without a call, memory is returned to the system.
inline constexpr absl::Duration kQuiet = absl::Seconds(2);

struct Core {
  Core(function::ServerOptions its_options, function::Function its_function,
       int threads)
      : options(std::move(its_options)),
        function(std::move(its_function)),
        pool(threads, kMostWaiting, UsableCores()) {}

  size_t most_bytes() const {
    return static_cast<size_t>(options.max_recv_message_mb) << 20;
  }

  const function::ServerOptions options;
  const function::Function function;
  Metrics metrics;
  std::atomic<bool> stopping{false};
  LiveCalls live{{kStuck, kQuiet, kMostCalls}};
  // It runs functions. It ends first, with no call left.
  ThreadPool pool;
};

}  // namespace fncache::sdk::serve

#endif  // FNCACHE_SDK_SERVE_CORE_H_
