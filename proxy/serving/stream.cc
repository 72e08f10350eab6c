#include "proxy/serving/stream.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "proxy/transport/metadata.h"

namespace fncache::proxy::serving {
namespace {

// For how long after its first answer a call with one request may still turn
// out to be unary, which a graceful stop waits for.
constexpr absl::Duration kMaybeUnary = absl::Milliseconds(200);

// One forwarded call: two pumps that know little of each other.
//
//   up:    read from the caller -> write to the function -> read ... ->
//   half-close down:  headers -> send headers -> (read from the function ->
//   write to the
//          caller)* -> the function's status -> finish
//
// The downward pump decides when the call is over; what is left of the upward
// one then fails by itself. Deletes itself when both have come to rest.
class ForwardedCall {
 public:
  ForwardedCall(transport::IncomingCallPtr call, transport::Upstream* upstream,
                absl::AnyInvocable<void(const StreamEnd&)> ended,
                absl::string_view cache_status)
      : call_(std::move(call)),
        upstream_(upstream),
        ended_(std::move(ended)),
        cache_status_(cache_status) {}

  void Start();

 private:
  // Up.
  void OnStarted(bool ok);
  void OnCallerRead(bool ok);
  void OnFunctionWritten(bool ok);
  void OnHalfClosed(bool ok);
  void PassUp();
  // Down.
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
  absl::AnyInvocable<void(const StreamEnd&)> ended_;
  const std::string cache_status_;

  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> function_;
  std::unique_ptr<transport::ConnectLimit> limit_;
  grpc::ByteBuffer up_;
  grpc::ByteBuffer down_;
  grpc::Status status_;

  bool started_ = false;      // the upstream call accepts messages
  bool up_waiting_ = false;   // up_ holds what was read before that
  bool half_closed_ = false;  // the caller said that no more will come
  bool up_over_ = false;      // the upward pump is at rest for good
  bool over_ = false;         // the caller has got its status
  bool finished_ = false;     // ... and gRPC is done with telling it
  bool headers_copied_ = false;
  uint64_t up_messages_ = 0;
  uint64_t down_messages_ = 0;
  bool start_pending_ = false;
  bool timer_armed_ = false;
  transport::TimerId timer_;

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
  transport::Worker* const worker = call_->worker();
  const absl::Time deadline = call_->deadline();
  upstream_->Prepare(*call_, deadline, &context_);
  function_ = upstream_->Stub(worker)->PrepareCall(&context_, call_->path(),
                                                   worker->queue());
  call_->SetKind(transport::Activity::Kind::kStream);
  start_pending_ = true;
  function_->StartCall(transport::Tag(&on_started_));
  function_->ReadInitialMetadata(transport::Tag(&on_headers_));
  limit_ = upstream_->LimitConnecting(worker, deadline, &context_);
  call_->Read(&up_, &on_caller_read_);
  call_->OnCancelled([this] { context_.TryCancel(); });
}

void ForwardedCall::OnStarted(bool ok) {
  start_pending_ = false;
  // Not ok: the call is dead, and the downward pump hears of it too.
  started_ = true;
  if (!up_waiting_) {
    EndIfOver();
    return;
  }
  up_waiting_ = false;
  PassUp();  // the end of this, if all the rest is over
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
    EndIfOver();
    return;
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
    EndIfOver();
    return;
  }
  call_->Read(&up_, &on_caller_read_);
}

void ForwardedCall::OnHalfClosed(bool ok) {
  up_over_ = true;
  EndIfOver();
}

void ForwardedCall::OnHeaders(bool ok) {
  if (!ok) {
    AskStatus();
    return;
  }
  transport::CopyHeaders(context_.GetServerInitialMetadata(), call_.get());
  if (!cache_status_.empty())
    call_->AddHeader(transport::kCacheStatus, cache_status_);
  headers_copied_ = true;
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
  if (!ok) {
    AskStatus();
    return;
  }
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
  if (!headers_copied_ && !cache_status_.empty()) {
    call_->AddHeader(transport::kCacheStatus, cache_status_);
  }
  transport::CopyTrailers(context_.GetServerTrailingMetadata(), call_.get());
  over_ = true;
  // Before its caller can know: who has the status finds the call counted.
  if (ended_ != nullptr) {
    ended_(
        StreamEnd{status_, call_->cancelled(), absl::Now() - call_->arrived()});
  }
  call_->Finish(status_, &on_finished_);
}

void ForwardedCall::OnFinished(bool ok) {
  finished_ = true;
  EndIfOver();
}

// A graceful stop waits for unary calls only. What is one shows by and by: one
// request and the half-close, then one answer and the status.
void ForwardedCall::UpdateKind() {
  if (half_closed_ && up_messages_ == 1 && down_messages_ == 0) {
    call_->SetKind(transport::Activity::Kind::kUnary);
  } else if (down_messages_ > 1) {
    call_->SetKind(transport::Activity::Kind::kStream);
  } else if (call_->kind() == transport::Activity::Kind::kUnary &&
             !timer_armed_) {
    timer_armed_ = true;
    timer_ = call_->worker()->After(kMaybeUnary, [this] {
      timer_armed_ = false;
      call_->SetKind(transport::Activity::Kind::kStream);
    });
  }
}

void ForwardedCall::EndIfOver() {
  if (!finished_ || !up_over_ || start_pending_) return;
  if (timer_armed_) call_->worker()->Cancel(timer_);
  delete this;
}

}  // namespace

void ForwardStream(transport::IncomingCallPtr call,
                   transport::Upstream* upstream,
                   absl::AnyInvocable<void(const StreamEnd&)> ended,
                   absl::string_view cache_status) {
  // Deletes itself.
  (new ForwardedCall(std::move(call), upstream, std::move(ended), cache_status))
      ->Start();
}

}  // namespace fncache::proxy::serving
