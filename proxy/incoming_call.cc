#include "proxy/incoming_call.h"

#include <utility>

#include "grpc/support/time.h"
#include "grpcpp/impl/codegen/core_codegen_interface.h"
#include "proxy/listener.h"

namespace fncache::proxy {

IncomingCall::IncomingCall(Listener* listener, Worker* worker,
                           cache::FunctionId function)
    : Activity(Kind::kUnary),
      listener_(listener),
      worker_(worker),
      function_(function) {}

absl::Time IncomingCall::deadline() const {
  const gpr_timespec deadline = context_.raw_deadline();
  if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) >= 0) {
    return absl::InfiniteFuture();
  }
  return absl::TimeFromTimespec([&] {
    const gpr_timespec wall =
        gpr_convert_clock_type(deadline, GPR_CLOCK_REALTIME);
    timespec out;
    out.tv_sec = wall.tv_sec;
    out.tv_nsec = wall.tv_nsec;
    return out;
  }());
}

void IncomingCall::OnCancelled(absl::AnyInvocable<void()> notice) {
  if (cancelled_) {
    notice();
    return;
  }
  notice_ = std::move(notice);
}

bool IncomingCall::ReadWasCutOff() {
  return grpc::g_core_codegen_interface->grpc_call_failed_before_recv_message(
             context_.c_call()) != 0;
}

void IncomingCall::FinishAndForget(IncomingCallPtr call,
                                   const grpc::Status& status) {
  IncomingCall* self = call.release();
  self->forgetting_ = true;
  self->dropped_ = true;
  self->notice_ = nullptr;
  self->Finish(status, &self->forgotten_event_);
}

void IncomingCall::WriteFinishAndForget(IncomingCallPtr call,
                                        const grpc::ByteBuffer& message,
                                        const grpc::Status& status) {
  IncomingCall* self = call.release();
  self->forgetting_ = true;
  self->dropped_ = true;
  self->notice_ = nullptr;
  self->WriteAndFinish(message, status, &self->forgotten_event_);
}

void IncomingCall::OnAccepted(bool ok) {
  if (!ok) {
    // The server is shutting down. The done event never comes for a call that
    // did not start.
    delete this;
    return;
  }
  arrived_ = absl::Now();
  method_ = MethodOf(context_.method());
  worker_->Enter(this);
  listener_->Dispatch(this);
}

void IncomingCall::OnDone(bool ok) {
  done_ = true;
  cancelled_ = context_.IsCancelled();
  if (dropped_) {
    DeleteIfOver();
    return;
  }
  if (!cancelled_ || notice_ == nullptr) return;
  // The notice may let go of this call.
  absl::AnyInvocable<void()> notice = std::move(notice_);
  notice_ = nullptr;
  notice();
}

void IncomingCall::OnForgotten(bool ok) {
  forgetting_ = false;
  DeleteIfOver();
}

void IncomingCall::Drop() {
  dropped_ = true;
  notice_ = nullptr;
  if (!finished_ && !done_) context_.TryCancel();
  DeleteIfOver();
}

void IncomingCall::DeleteIfOver() {
  if (!done_ || forgetting_) return;
  worker_->Leave(this);
  delete this;
}

}  // namespace fncache::proxy
