// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/incoming_call.h"

#include <new>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "grpc/support/log.h"
#include "grpc/support/time.h"
#include "proxy/transport/channel_arguments.h"
#include "proxy/transport/core_buffer.h"

namespace fncache::proxy::transport {
namespace {

// The trailer in which the C++ interface carries a status's details.
constexpr char kDetails[] = "grpc-status-details-bin";

grpc_slice Copy(absl::string_view text) {
  return grpc_slice_from_copied_buffer(text.data(), text.size());
}

grpc_op MakeOp(grpc_op_type type) {
  grpc_op op{};
  op.op = type;
  return op;
}

#ifdef FNCACHE_KEEPS_CALLS

// A thread keeps the memory of so many calls: as many as a worker lends its
// server.
constexpr size_t kMostKept = kAcceptsPerWorker;

struct KeptMemory {
  ~KeptMemory() {
    for (void* memory : blocks) ::operator delete(memory);
  }
  std::vector<void*> blocks;
};
thread_local KeptMemory kept;

#endif

}  // namespace

#ifdef FNCACHE_KEEPS_CALLS

void* IncomingCall::operator new(size_t size) {
  if (kept.blocks.empty()) return ::operator new(size);
  void* const memory = kept.blocks.back();
  kept.blocks.pop_back();
  return memory;
}

void IncomingCall::operator delete(void* memory) {
  if (kept.blocks.size() < kMostKept) {
    kept.blocks.push_back(memory);
    return;
  }
  ::operator delete(memory);
}

#endif

IncomingCall::Fields::~Fields() {
  for (const grpc_metadata& field : fields_) {
    grpc_slice_unref(field.key);
    grpc_slice_unref(field.value);
  }
}

void IncomingCall::Fields::Add(grpc_slice key, grpc_slice value) {
  grpc_metadata field{};
  field.key = key;
  field.value = value;
  fields_.push_back(field);
}

IncomingCall::IncomingCall(Worker* worker, Acceptor* acceptor)
    : Activity(Kind::kUnary), worker_(worker), acceptor_(acceptor) {
  grpc_call_details_init(&details_);
  grpc_metadata_array_init(&metadata_);
}

IncomingCall::~IncomingCall() {
  grpc_call_details_destroy(&details_);
  grpc_metadata_array_destroy(&metadata_);
  if (call_ != nullptr) grpc_call_unref(call_);
}

void IncomingCall::Lend(grpc_server* server, Worker* worker, Worker* accepting,
                        Acceptor* acceptor) {
  auto* const call = new IncomingCall(worker, acceptor);
  const grpc_call_error error = grpc_server_request_call(
      server, &call->call_, &call->details_, &call->metadata_,
      worker->queue()->cq(), accepting->queue()->cq(),
      CoreTag(&call->accepted_event_));
  GPR_ASSERT(error == GRPC_CALL_OK);
}

absl::Time IncomingCall::deadline() const {
  const gpr_timespec& deadline = details_.deadline;
  if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) >= 0) {
    return absl::InfiniteFuture();
  }
  const gpr_timespec wall =
      gpr_convert_clock_type(deadline, GPR_CLOCK_REALTIME);
  timespec out;
  out.tv_sec = wall.tv_sec;
  out.tv_nsec = wall.tv_nsec;
  return absl::TimeFromTimespec(out);
}

bool IncomingCall::OnCancelled(absl::AnyInvocable<void()> notice) {
  if (cancelled_) return false;
  notice_ = std::move(notice);
  if (watching_) return true;
  watching_ = true;
  grpc_op op = MakeOp(GRPC_OP_RECV_CLOSE_ON_SERVER);
  op.data.recv_close_on_server.cancelled = &was_cancelled_;
  StartBatch(&op, 1, &closed_event_);
  return true;
}

void IncomingCall::AddStaticHeader(const char* key, absl::string_view value) {
  headers_.Add(grpc_slice_from_static_string(key), Copy(value));
}

void IncomingCall::AddHeader(absl::string_view key, absl::string_view value) {
  headers_.Add(Copy(key), Copy(value));
}

void IncomingCall::AddTrailer(absl::string_view key, absl::string_view value) {
  trailers_.Add(Copy(key), Copy(value));
}

void IncomingCall::StartBatch(const grpc_op* ops, size_t count, Event* event) {
  const grpc_call_error error =
      grpc_call_start_batch(call_, ops, count, CoreTag(event), nullptr);
  GPR_ASSERT(error == GRPC_CALL_OK);
}

void IncomingCall::Read(grpc::ByteBuffer* message, Event* event) {
  message->Clear();
  reading_ = message;
  reader_ = event;
  grpc_op op = MakeOp(GRPC_OP_RECV_MESSAGE);
  op.data.recv_message.recv_message = CoreBuffer(message);
  StartBatch(&op, 1, &read_event_);
}

void IncomingCall::OnRead(bool ok) {
  if (!ok) reading_->Clear();
  reader_->OnEvent(reading_->Valid());
}

bool IncomingCall::ReadWasCutOff() {
  return grpc_call_failed_before_recv_message(call_) != 0;
}

grpc_op* IncomingCall::AddHeaders(grpc_op* op) {
  if (headers_sent_) return op;
  headers_sent_ = true;
  *op = MakeOp(GRPC_OP_SEND_INITIAL_METADATA);
  op->data.send_initial_metadata.count = headers_.size();
  op->data.send_initial_metadata.metadata = headers_.data();
  return op + 1;
}

grpc_op* IncomingCall::AddMessage(grpc_op* op, grpc::ByteBuffer* message) {
  // gRPC takes the slices, and wants the rest of the buffer until the event.
  writing_.Clear();
  writing_.Swap(message);
  *op = MakeOp(GRPC_OP_SEND_MESSAGE);
  op->data.send_message.send_message = *CoreBuffer(&writing_);
  return op + 1;
}

void IncomingCall::FinishBatch(grpc_op* ops, grpc_op* next,
                               const grpc::Status& status, Event* event) {
  finished_ = true;
  if (!status.error_details().empty()) {
    trailers_.Add(grpc_slice_from_static_string(kDetails),
                  Copy(status.error_details()));
  }
  *next = MakeOp(GRPC_OP_SEND_STATUS_FROM_SERVER);
  auto& end = next->data.send_status_from_server;
  end.trailing_metadata_count = trailers_.size();
  end.trailing_metadata = trailers_.data();
  end.status = static_cast<grpc_status_code>(status.error_code());
  const std::string message = status.error_message();
  const grpc_slice text =
      grpc_slice_from_static_buffer(message.data(), message.size());
  grpc_slice details = text;
  end.status_details = message.empty() ? nullptr : &details;
  ++next;
  if (!watching_) {
    watching_ = true;
    closed_ = true;
    *next = MakeOp(GRPC_OP_RECV_CLOSE_ON_SERVER);
    next->data.recv_close_on_server.cancelled = &was_cancelled_;
    ++next;
  }
  StartBatch(ops, next - ops, event);
}

void IncomingCall::SendHeaders(Event* event) {
  grpc_op op;
  AddHeaders(&op);
  StartBatch(&op, 1, event);
}

void IncomingCall::Write(const grpc::ByteBuffer& message, Event* event) {
  grpc::ByteBuffer copy(message);  // of references to its bytes
  grpc_op ops[2];
  grpc_op* const next = AddMessage(AddHeaders(ops), &copy);
  StartBatch(ops, next - ops, event);
}

void IncomingCall::WriteAndFinish(grpc::ByteBuffer&& message,
                                  const grpc::Status& status, Event* event) {
  grpc_op ops[4];
  grpc_op* const next = AddMessage(AddHeaders(ops), &message);
  FinishBatch(ops, next, status, event);
}

void IncomingCall::Finish(const grpc::Status& status, Event* event) {
  grpc_op ops[3];
  FinishBatch(ops, AddHeaders(ops), status, event);
}

void IncomingCall::Cancel() {
  grpc_call_cancel_with_status(call_, GRPC_STATUS_CANCELLED,
                               "Cancelled on the server side", nullptr);
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
                                        grpc::ByteBuffer&& message,
                                        const grpc::Status& status) {
  IncomingCall* self = call.release();
  self->forgetting_ = true;
  self->dropped_ = true;
  self->notice_ = nullptr;
  self->WriteAndFinish(std::move(message), status, &self->forgotten_event_);
}

void IncomingCall::OnAccepted(bool ok) {
  if (!ok) {
    // The server is shutting down.
    delete this;
    return;
  }
  arrived_ = absl::Now();
  method_ = MethodOf(View(details_.method));
  acceptor_->OnAccepted(this);
}

void IncomingCall::OnClosed(bool ok) {
  closed_ = true;
  cancelled_ = !ok || was_cancelled_ != 0;
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
  if (!finished_ && !closed_) Cancel();
  DeleteIfOver();
}

void IncomingCall::DeleteIfOver() {
  if ((watching_ && !closed_) || forgetting_) return;
  worker_->Leave(this);
  delete this;
}

}  // namespace fncache::proxy::transport
