// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/continuation.h"

#include <utility>

#include "absl/status/status.h"

namespace fncache::function {

void Continuation::Call::OnEnd(std::function<void(const CallEnd&)> on_end) {
  absl::optional<CallEnd> end;
  {
    MutexLock lock(&mutex_);
    if (!end_.has_value()) {
      on_end_.push_back(std::move(on_end));
      return;
    }
    end = end_;
  }
  on_end(*end);
}

bool Continuation::Call::watched() const {
  MutexLock lock(&mutex_);
  return !on_end_.empty();
}

void Continuation::Call::Ended(CallEnd end) {
  std::vector<std::function<void(const CallEnd&)>> callbacks;
  {
    MutexLock lock(&mutex_);
    end_ = end;
    callbacks.swap(on_end_);
  }
  for (const auto& callback : callbacks) callback(end);
}

Continuation::Continuation(std::shared_ptr<Call> call)
    : call_(std::move(call)) {}

void Continuation::Continue() const { call_->Decide(absl::OkStatus()); }

void Continuation::Finish(absl::Status status) const {
  if (status.ok()) {
    status = absl::InternalError("the interceptor ended the call as OK");
  }
  call_->Decide(status);
}

void Continuation::OnEnd(std::function<void(const CallEnd&)> on_end) const {
  call_->OnEnd(std::move(on_end));
}

}  // namespace fncache::function
