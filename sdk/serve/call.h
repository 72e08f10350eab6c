// SPDX-License-Identifier: Apache-2.0
// One RunFunction, from its headers to its end:
//
//   interceptor -> request is read -> queue -> function -> response is written
//
// The stream's thread does all but the function, which runs on a thread of the
// pool.
#ifndef FNCACHE_SDK_SERVE_CALL_H_
#define FNCACHE_SDK_SERVE_CALL_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/method.h"
#include "common/mutex.h"
#include "grpcpp/support/byte_buffer.h"
#include "sdk/serve/continuation.h"
#include "sdk/serve/core.h"
#include "sdk/serve/streams.h"

namespace fncache::sdk::serve {

class Call final : public Reactor, public LiveCall {
 public:
  // `core` outlives the call.
  Call(Core* core, Method method, Stream* stream);

  void OnReadDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void Cancel() override { context()->TryCancel(); }

 private:
  void Intercept();
  void Read();
  void RunFunction();
  absl::StatusOr<std::string> TakeRequest();
  absl::Status Late() const;
  bool WantsHint() const;
  // The last step: counts and reports the end, and answers. `response` is sent
  // if the status is OK.
  void End(const absl::Status& status, std::string response = "");

  Core* const core_;
  const Method method_;
  const absl::Time started_;
  std::shared_ptr<function::Continuation::Call> intercepted_;
  grpc::ByteBuffer bytes_;  // the request, then the response
  std::string tag_;         // only if the end is of interest
};

}  // namespace fncache::sdk::serve

#endif  // FNCACHE_SDK_SERVE_CALL_H_
