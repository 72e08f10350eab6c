// SPDX-License-Identifier: Apache-2.0
// Responder: answers a function's requests. The server (server.h) adds
// transport, costs and failures.
//
// Thread-safe: several calls run at once.
#ifndef FNCACHE_RUNNER_FUNCTION_RESPONDER_H_
#define FNCACHE_RUNNER_FUNCTION_RESPONDER_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/function_v1_fwd.h"

namespace fncache::runner::function {

using apiextensions::fn::proto::v1::RunFunctionRequest;
using apiextensions::fn::proto::v1::RunFunctionResponse;

class Responder {
 public:
  virtual ~Responder() = default;

  // Fills `response`, which is empty, including meta.tag and meta.ttl. An error
  // becomes the call's status. A mistake in the user's input is not an error
  // but a FATAL result.
  virtual absl::Status Respond(const RunFunctionRequest& request,
                               RunFunctionResponse* response) const = 0;
};

// Sets meta.ttl. `ttl` must not be negative or infinite.
void SetTtl(absl::Duration ttl, RunFunctionResponse* response);

}  // namespace fncache::runner::function

#endif  // FNCACHE_RUNNER_FUNCTION_RESPONDER_H_
