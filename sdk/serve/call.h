// SPDX-License-Identifier: Apache-2.0
// One RunFunction, from its headers to its end:
//
//   interceptor -> request is read -> queue -> function -> response is written
//
// gRPC's threads do all but the function, which runs on a thread of the pool.
// The call owns itself: gRPC's last reaction deletes it.
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
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/support/byte_buffer.h"
#include "sdk/serve/continuation.h"
#include "sdk/serve/core.h"

namespace fncache::sdk::serve {

class Call final : public grpc::ServerGenericBidiReactor, public LiveCall {
 public:
  // `core` and `context` outlive the call.
  Call(Core* core, Method method, grpc::GenericCallbackServerContext* context);

  void OnReadDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void Cancel() override { context_->TryCancel(); }

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
  grpc::GenericCallbackServerContext* const context_;
  const absl::Time started_;
  std::shared_ptr<function::Continuation::Call> intercepted_;
  grpc::ByteBuffer bytes_;  // the request, then the response
  std::string tag_;         // only if the end is of interest
};

}  // namespace fncache::sdk::serve

#endif  // FNCACHE_SDK_SERVE_CALL_H_
