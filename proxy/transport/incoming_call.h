// SPDX-License-Identifier: Apache-2.0
// IncomingCall: one call that a listener accepted, as its CallHandler gets it,
// and CallHandler, through which whoever serves the calls is told of them.
//
// A call lives on its worker's thread and is used there only. At most one Read
// and one of the writing operations (SendHeaders, Write, WriteAndFinish,
// Finish) may be outstanding at a time; each tells its event once, with ok =
// false when the call is dead, and never before the operation has returned.
// After Finish or WriteAndFinish no further operation is allowed.
//
// Ownership: by IncomingCallPtr. Its owner may let go of it whenever no
// operation is outstanding; an unfinished call is then cancelled. The object
// itself is deleted when nothing of it is under way any more.
//
// It is made of gRPC's C interface: an answer is one batch of operations there,
// the news of the call's end included, and nothing is allocated or started that
// a hit does not need. (The C++ interface asks for that news of every call in a
// batch of its own, and copies metadata into a map.)
#ifndef FNCACHE_PROXY_TRANSPORT_INCOMING_CALL_H_
#define FNCACHE_PROXY_TRANSPORT_INCOMING_CALL_H_

#include <map>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/method.h"
#include "grpc/grpc.h"
#include "grpc/slice.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"
#include "grpcpp/support/string_ref.h"
#include "proxy/transport/worker.h"

// Sanitizers are to see every use of a call that is gone, so with them the
// memory of calls is not used again.
#if !defined(__SANITIZE_ADDRESS__) && !defined(FNCACHE_TSAN)
#define FNCACHE_KEEPS_CALLS
#endif

namespace fncache::proxy::transport {

// Headers or trailers that a function sent. Keys are lower case; values of keys
// that end in -bin are raw bytes.
using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

inline absl::string_view View(const grpc_slice& slice) {
  return absl::string_view(
      reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)),
      GRPC_SLICE_LENGTH(slice));
}

class IncomingCall final : public Activity {
 public:
  // Whoever accepts calls from a gRPC server by lending it objects to put them
  // into.
  class Acceptor {
   public:
    // `call` has a caller now; on the thread of the worker that was named as
    // `accepting`. Its owner is the acceptor.
    virtual void OnAccepted(IncomingCall* call) = 0;

   protected:
    ~Acceptor() = default;
  };
  // Lends `server` an object for its next caller, which will be served on
  // `worker`; the news comes to `accepting`, whose queue is the server's. A
  // server that shuts down gives the object back, and it is deleted unheard.
  static void Lend(grpc_server* server, Worker* worker, Worker* accepting,
                   Acceptor* acceptor);

  // IncomingCallPtr's deleter.
  struct LetGo {
    void operator()(IncomingCall* call) const { call->Drop(); }
  };

  Worker* worker() const { return worker_; }
  Method method() const { return method_; }
  // As on the wire: /package.Service/Method.
  std::string path() const { return std::string(View(details_.method)); }
  // The :authority that the caller asked for.
  std::string host() const { return std::string(View(details_.host)); }
  // In the order of arrival. Keys and values as in Metadata; they live as long
  // as this.
  absl::Span<const grpc_metadata> metadata() const {
    return absl::MakeConstSpan(metadata_.metadata, metadata_.count);
  }
  // Infinite if the caller gave none.
  absl::Time deadline() const;
  // When the listener learned of the call (wall clock, for latencies only).
  absl::Time arrived() const { return arrived_; }

  // Has `notice` called when the caller goes, its deadline passes, or its
  // connection is lost: at most once, while the call is owned, and in place of
  // an earlier notice. False if that is known to have happened already: then
  // `notice` is not called, and whoever calls this has to act himself.
  [[nodiscard]] bool OnCancelled(absl::AnyInvocable<void()> notice);

  // Add headers and trailers for the caller; before the headers, or the end,
  // are sent. The key of a static header is not copied.
  void AddStaticHeader(const char* key, absl::string_view value);
  void AddHeader(absl::string_view key, absl::string_view value);
  void AddTrailer(absl::string_view key, absl::string_view value);

  // `message` must live until the event.
  void Read(grpc::ByteBuffer* message, Event* event);
  // After a Read that gave no message: the caller was cut off, rather than
  // having said that no more will come.
  bool ReadWasCutOff();
  void SendHeaders(Event* event);
  void Write(const grpc::ByteBuffer& message, Event* event);
  void WriteAndFinish(grpc::ByteBuffer&& message, const grpc::Status& status,
                      Event* event);
  void Finish(const grpc::Status& status, Event* event);
  // Ends the call at the caller without a status of ours.
  void Cancel();

  // Finishes and lets go, for whoever has nothing left to do after it.
  static void FinishAndForget(std::unique_ptr<IncomingCall, LetGo> call,
                              const grpc::Status& status);
  static void WriteFinishAndForget(std::unique_ptr<IncomingCall, LetGo> call,
                                   grpc::ByteBuffer&& message,
                                   const grpc::Status& status);

  // Says how a graceful stop treats the call; as kUnary until this is called.
  void SetKind(Kind kind) { worker_->SetKind(this, kind); }
  void CancelActivity() override { Cancel(); }

#ifdef FNCACHE_KEEPS_CALLS
  // The memory of calls is used again by the thread that gave it back.
  static void* operator new(size_t size);
  static void operator delete(void* memory);
#endif

  IncomingCall(const IncomingCall&) = delete;
  IncomingCall& operator=(const IncomingCall&) = delete;

 private:
  // Keys and values as slices, which are dropped with this.
  class Fields {
   public:
    Fields() = default;
    Fields(const Fields&) = delete;
    Fields& operator=(const Fields&) = delete;
    ~Fields();
    void Add(grpc_slice key, grpc_slice value);
    grpc_metadata* data() { return fields_.data(); }
    size_t size() const { return fields_.size(); }

   private:
    absl::InlinedVector<grpc_metadata, 1> fields_;
  };

  IncomingCall(Worker* worker, Acceptor* acceptor);
  ~IncomingCall();

  void OnAccepted(bool ok);
  void OnRead(bool ok);
  void OnClosed(bool ok);
  void OnForgotten(bool ok);

  void StartBatch(const grpc_op* ops, size_t count, Event* event);
  // The operation of a batch that sends headers, unless they have been sent:
  // the next free place among `op`s.
  grpc_op* AddHeaders(grpc_op* op);
  // Takes the message.
  grpc_op* AddMessage(grpc_op* op, grpc::ByteBuffer* message);
  void FinishBatch(grpc_op* ops, grpc_op* next, const grpc::Status& status,
                   Event* event);
  void Drop();
  void DeleteIfOver();

  Worker* const worker_;
  Acceptor* const acceptor_;
  Method method_ = Method::kOther;
  bool headers_sent_ = false;
  bool watching_ = false;  // asked for news of the end
  bool closed_ = false;    // got them
  bool cancelled_ = false;
  bool finished_ = false;
  bool dropped_ = false;     // nobody owns it any more
  bool forgetting_ = false;  // the last operation is under way, unowned
  int was_cancelled_ = 0;    // gRPC's
  absl::Time arrived_;
  absl::AnyInvocable<void()> notice_;
  grpc_call* call_ = nullptr;
  grpc_call_details details_;
  grpc_metadata_array metadata_;
  Fields headers_;
  Fields trailers_;
  grpc::ByteBuffer* reading_ = nullptr;
  Event* reader_ = nullptr;
  grpc::ByteBuffer writing_;
  MemberEvent<IncomingCall, &IncomingCall::OnAccepted> accepted_event_{this};
  MemberEvent<IncomingCall, &IncomingCall::OnRead> read_event_{this};
  MemberEvent<IncomingCall, &IncomingCall::OnClosed> closed_event_{this};
  MemberEvent<IncomingCall, &IncomingCall::OnForgotten> forgotten_event_{this};
};

using IncomingCallPtr = std::unique_ptr<IncomingCall, IncomingCall::LetGo>;

// Whoever serves the calls of one listener, whatever their method. Thread-safe
// where the listener has several workers.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  // Takes over the call, from which nothing has been read yet. On
  // call->worker()'s thread.
  virtual void StartCall(IncomingCallPtr call) = 0;
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_INCOMING_CALL_H_
