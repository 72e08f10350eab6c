// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/stream.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "proxy/transport/metadata.h"

namespace fncache::proxy::serving {
namespace {

// So long after its first answer a call with one request may still prove to be
// unary, which a graceful stop waits for.
constexpr absl::Duration kMaybeUnary = absl::Milliseconds(200);

// A forwarded call consists of two pumps that know little of each other.
//
//   up:    (read from the caller -> write to the function)* -> half-close
//
//   down:  the function's headers -> headers to the caller
//          -> (read from the function -> write to the caller)*
//          -> the function's status -> finish
//
// The downward pump decides when the call is over; what is left of the upward
// one then fails by itself. The object deletes itself (EndIfOver) when both
// have come to rest; every function that ends so calls it last.
class ForwardedCall {
 public:
  ForwardedCall(transport::IncomingCallPtr call, transport::Upstream* upstream,
                const telemetry::FunctionInstruments& instruments)
      : call_(std::move(call)),
        upstream_(upstream),
        instruments_(instruments) {}

  void Start();

 private:
  // These are the steps of the pump from the caller to the function.
  void OnStarted(bool ok);
  void OnCallerRead(bool ok);
  void OnFunctionWritten(bool ok);
  void OnHalfClosed(bool ok);
  void PassUp();
  // These are the steps of the pump from the function to the caller.
  void OnHeaders(bool ok);
  void OnHeadersSent(bool ok);
  void OnFunctionRead(bool ok);
  void OnCallerWritten(bool ok);
  void OnStatus(bool ok);
  void OnFinished(bool ok);

  void AskStatus();
  void ReadFunction();
  void UpdateKind();
  void EndIfOver();

  template <void (ForwardedCall::*kMethod)(bool)>
  using On = transport::MemberEvent<ForwardedCall, kMethod>;

  transport::IncomingCallPtr call_;
  transport::Upstream* const upstream_;
  const telemetry::FunctionInstruments& instruments_;

  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> function_;
  std::unique_ptr<transport::ConnectLimit> limit_;
  grpc::ByteBuffer up_;
  grpc::ByteBuffer down_;
  grpc::Status status_;

  bool started_ = false;      // the upstream call takes messages, or is dead
  bool up_waiting_ = false;   // something was read before that
  bool half_closed_ = false;  // the caller said that no more will come
  bool up_over_ = false;      // the upward pump is at rest for good
  bool over_ = false;         // the caller is being told its status
  bool finished_ = false;     // gRPC is done with telling it
  uint64_t up_messages_ = 0;
  uint64_t down_messages_ = 0;
  absl::optional<transport::TimerId> maybe_unary_timer_;

  On<&ForwardedCall::OnStarted> on_started_{this};
  On<&ForwardedCall::OnCallerRead> on_caller_read_{this};
  On<&ForwardedCall::OnFunctionWritten> on_function_written_{this};
  On<&ForwardedCall::OnHalfClosed> on_half_closed_{this};
  On<&ForwardedCall::OnHeaders> on_headers_{this};
  On<&ForwardedCall::OnHeadersSent> on_headers_sent_{this};
  On<&ForwardedCall::OnFunctionRead> on_function_read_{this};
  On<&ForwardedCall::OnCallerWritten> on_caller_written_{this};
  On<&ForwardedCall::OnStatus> on_status_{this};
  On<&ForwardedCall::OnFinished> on_finished_{this};
};

void ForwardedCall::Start() {
  instruments_.Begin(call_->method());
  transport::Worker* const worker = call_->worker();
  const absl::Time deadline = call_->deadline();
  upstream_->Prepare(*call_, deadline, &context_);
  function_ = upstream_->Stub(worker)->PrepareCall(&context_, call_->path(),
                                                   worker->queue());
  call_->SetKind(transport::Activity::Kind::kStream);
  function_->StartCall(transport::Tag(&on_started_));
  function_->ReadInitialMetadata(transport::Tag(&on_headers_));
  limit_ = upstream_->LimitConnecting(worker, deadline, &context_);
  call_->Read(&up_, &on_caller_read_);
  if (!call_->OnCancelled([this] { context_.TryCancel(); })) {
    context_.TryCancel();
  }
}

void ForwardedCall::OnStarted(bool ok) {
  // If not ok the call is dead, and the downward pump hears of it too.
  started_ = true;
  if (!up_waiting_) return EndIfOver();
  up_waiting_ = false;
  PassUp();
}

void ForwardedCall::OnCallerRead(bool ok) {
  if (ok) {
    ++up_messages_;
  } else if (!over_ && !call_->ReadWasCutOff()) {
    half_closed_ = true;
    UpdateKind();
  } else {
    // Cut off, which must not look like a half-close to the function.
    if (!over_) context_.TryCancel();
    up_over_ = true;
    return EndIfOver();
  }
  if (started_) {
    PassUp();
  } else {
    up_waiting_ = true;
  }
}

// Passes on the message that was read, or the half-close.
void ForwardedCall::PassUp() {
  if (over_) {
    up_over_ = true;
    EndIfOver();
  } else if (half_closed_) {
    function_->WritesDone(transport::Tag(&on_half_closed_));
  } else {
    function_->Write(up_, transport::Tag(&on_function_written_));
    up_.Clear();
  }
}

void ForwardedCall::OnFunctionWritten(bool ok) {
  if (!ok || over_) {
    up_over_ = true;
    return EndIfOver();
  }
  call_->Read(&up_, &on_caller_read_);
}

void ForwardedCall::OnHalfClosed(bool ok) {
  up_over_ = true;
  EndIfOver();
}

void ForwardedCall::OnHeaders(bool ok) {
  if (!ok) return AskStatus();
  transport::CopyHeaders(context_.GetServerInitialMetadata(), call_.get());
  call_->SendHeaders(&on_headers_sent_);
}

void ForwardedCall::OnHeadersSent(bool ok) {
  if (!ok) context_.TryCancel();  // the caller has gone
  ReadFunction();
}

void ForwardedCall::ReadFunction() {
  function_->Read(&down_, transport::Tag(&on_function_read_));
}

void ForwardedCall::OnFunctionRead(bool ok) {
  if (!ok) return AskStatus();
  ++down_messages_;
  UpdateKind();
  call_->Write(down_, &on_caller_written_);
  down_.Clear();
}

void ForwardedCall::OnCallerWritten(bool ok) {
  if (!ok) context_.TryCancel();
  ReadFunction();
}

void ForwardedCall::AskStatus() {
  function_->Finish(&status_, transport::Tag(&on_status_));
}

void ForwardedCall::OnStatus(bool ok) {
  if (limit_ != nullptr && limit_->exceeded()) status_ = limit_->ToStatus();
  limit_ = nullptr;
  transport::CopyTrailers(context_.GetServerTrailingMetadata(), call_.get());
  over_ = true;
  // Before its caller can know: who has the status finds the call counted.
  telemetry::CallRecord record;
  record.method = call_->method();
  record.outcome = telemetry::Outcome::kBypass;
  record.code = status_.error_code();
  record.upstream = true;
  record.latency = absl::Now() - call_->arrived();
  instruments_.End(record);
  call_->Finish(status_, &on_finished_);
}

void ForwardedCall::OnFinished(bool ok) {
  finished_ = true;
  EndIfOver();
}

// A graceful stop waits for unary calls only. That a call is one shows by and
// by: one request and the half-close, then one answer and the status.
void ForwardedCall::UpdateKind() {
  if (half_closed_ && up_messages_ == 1 && down_messages_ == 0) {
    call_->SetKind(transport::Activity::Kind::kUnary);
  } else if (down_messages_ > 1) {
    call_->SetKind(transport::Activity::Kind::kStream);
  } else if (call_->kind() == transport::Activity::Kind::kUnary &&
             !maybe_unary_timer_.has_value()) {
    maybe_unary_timer_ = call_->worker()->After(kMaybeUnary, [this] {
      maybe_unary_timer_.reset();
      call_->SetKind(transport::Activity::Kind::kStream);
    });
  }
}

void ForwardedCall::EndIfOver() {
  if (!finished_ || !up_over_ || !started_) return;
  if (maybe_unary_timer_.has_value()) {
    call_->worker()->Cancel(*maybe_unary_timer_);
  }
  delete this;
}

}  // namespace

void ForwardStream(transport::IncomingCallPtr call,
                   transport::Upstream* upstream,
                   const telemetry::FunctionInstruments& instruments) {
  // Deletes itself.
  (new ForwardedCall(std::move(call), upstream, instruments))->Start();
}

}  // namespace fncache::proxy::serving
