// SPDX-License-Identifier: Apache-2.0
// FunctionCaller: the engine's interface to the functions. The real one is
// FunctionClient; tests and the context steps of the command line have others.
#ifndef FNCACHE_RUNNER_CLIENT_FUNCTION_CALLER_H_
#define FNCACHE_RUNNER_CLIENT_FUNCTION_CALLER_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proto/function_v1.pb.h"

namespace fncache::runner::client {

struct CallResult {
  // If it is not ok, its message is the runner's text, such as `rpc error: code
  // = Internal desc = boom`, and its code is the call's.
  absl::Status status;
  apiextensions::fn::proto::v1::RunFunctionResponse response;
  // The whole header cache-status of a cache in front of the function.
  // Empty where there was none. Example: `fncache; hit; ttl=37`.
  std::string cache_status;
  // The trailing metadata `fncache-depends`: what the response depends on, as
  // the function says (docs/depends.md). Several fields are joined by commas.
  absl::optional<std::string> hint;
  // From the end of encoding the request to the arrival of the response's
  // bytes: the time of the network and the function, without encoding and
  // decoding. Zero where nothing was sent.
  absl::Duration round_trip = absl::ZeroDuration();
};

// Thread-safe.
class FunctionCaller {
 public:
  using Done = std::function<void(CallResult)>;

  virtual ~FunctionCaller() = default;
  // Calls the function that a Composition names `function`. The request is read
  // before Call returns. Calls `done` exactly once, on any thread, perhaps
  // before Call returns, and by `deadline` at the latest.
  virtual void Call(
      const std::string& function,
      const apiextensions::fn::proto::v1::RunFunctionRequest& request,
      absl::Time deadline, Done done) = 0;
};

}  // namespace fncache::runner::client

#endif  // FNCACHE_RUNNER_CLIENT_FUNCTION_CALLER_H_
