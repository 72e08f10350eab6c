// IncomingCall: a call that a listener accepted, on its way to whoever answers
// it: the RunFunction path (call.h) or the forwarder (stream.h).
//
// It lives on its worker's thread and is used there only. At most one Read and
// one of the writing operations (SendHeaders, Write, WriteAndFinish, Finish)
// may be outstanding at a time; each tells its event once, with ok = false when
// the call is dead. After Finish or WriteAndFinish no further operation is
// allowed.
//
// Ownership: by IncomingCallPtr. Letting go of it is allowed whenever no
// operation is outstanding; an unfinished call is then cancelled. The object
// itself goes when gRPC has reported the call's end.
#ifndef FNCACHE_PROXY_INCOMING_CALL_H_
#define FNCACHE_PROXY_INCOMING_CALL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "cache/entry.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/support/byte_buffer.h"
#include "proxy/method.h"
#include "proxy/worker.h"

namespace fncache::proxy {

class Listener;

// Keys are lower case; values of keys that end in -bin are raw bytes.
using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

class IncomingCall final : public Activity {
 public:
  struct Release {
    void operator()(IncomingCall* call) const { call->Drop(); }
  };

  Worker* worker() const { return worker_; }
  cache::FunctionId function() const { return function_; }
  Method method() const { return method_; }
  // As on the wire: /package.Service/Method.
  const std::string& path() const { return context_.method(); }
  // The :authority that the caller asked for.
  const std::string& host() const { return context_.host(); }
  const Metadata& metadata() const { return context_.client_metadata(); }
  // Infinite if the caller gave none.
  absl::Time deadline() const;
  // When the listener learned of the call (wall clock, for latencies only).
  absl::Time arrived() const { return arrived_; }

  // The caller has gone, its deadline has passed, or its connection is lost.
  bool cancelled() const { return cancelled_; }
  // `notice` is called when that happens, at most once, while the call is
  // owned; at once if it has happened already. Replaces an earlier notice.
  void OnCancelled(absl::AnyInvocable<void()> notice);

  // Headers and trailers for the caller; before the headers, or the end, are
  // sent.
  void AddHeader(const std::string& key, const std::string& value) {
    context_.AddInitialMetadata(key, value);
  }
  void AddTrailer(const std::string& key, const std::string& value) {
    context_.AddTrailingMetadata(key, value);
  }

  // `message` must live until the event.
  void Read(grpc::ByteBuffer* message, Event* event) {
    stream_.Read(message, Tag(event));
  }
  // After a Read that gave no message: the caller was cut off, rather than
  // having said that no more will come.
  bool ReadWasCutOff();
  void SendHeaders(Event* event) { stream_.SendInitialMetadata(Tag(event)); }
  void Write(const grpc::ByteBuffer& message, Event* event) {
    stream_.Write(message, Tag(event));
  }
  void WriteAndFinish(const grpc::ByteBuffer& message,
                      const grpc::Status& status, Event* event) {
    finished_ = true;
    stream_.WriteAndFinish(message, grpc::WriteOptions(), status, Tag(event));
  }
  void Finish(const grpc::Status& status, Event* event) {
    finished_ = true;
    stream_.Finish(status, Tag(event));
  }
  // Ends the call at the caller without a status of ours.
  void Cancel() { context_.TryCancel(); }

  // Finishes and lets go, for whoever has nothing left to do after it.
  static void FinishAndForget(std::unique_ptr<IncomingCall, Release> call,
                              const grpc::Status& status);
  static void WriteFinishAndForget(std::unique_ptr<IncomingCall, Release> call,
                                   const grpc::ByteBuffer& message,
                                   const grpc::Status& status);

  // What a graceful stop makes of it; kUnary at first.
  void SetKind(Kind kind) { worker_->SetKind(this, kind); }
  void CancelActivity() override { context_.TryCancel(); }

  IncomingCall(const IncomingCall&) = delete;
  IncomingCall& operator=(const IncomingCall&) = delete;

 private:
  friend class Listener;
  IncomingCall(Listener* listener, Worker* worker, cache::FunctionId function);
  ~IncomingCall() = default;

  void OnAccepted(bool ok);
  void OnDone(bool ok);
  void OnForgotten(bool ok);
  void Drop();
  void DeleteIfOver();

  Listener* const listener_;
  Worker* const worker_;
  const cache::FunctionId function_;
  Method method_ = Method::kOther;
  bool cancelled_ = false;
  bool finished_ = false;
  bool done_ = false;        // gRPC has reported the end
  bool dropped_ = false;     // nobody owns it any more
  bool forgetting_ = false;  // the last operation is under way, unowned
  absl::Time arrived_;
  absl::AnyInvocable<void()> notice_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  MemberEvent<IncomingCall, &IncomingCall::OnAccepted> accepted_event_{this};
  MemberEvent<IncomingCall, &IncomingCall::OnDone> done_event_{this};
  MemberEvent<IncomingCall, &IncomingCall::OnForgotten> forgotten_event_{this};
};

using IncomingCallPtr = std::unique_ptr<IncomingCall, IncomingCall::Release>;

// Who answers the RunFunction calls of one function.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  // On call->worker()'s thread; nothing has been read from the call yet.
  virtual void StartRunFunction(IncomingCallPtr call) = 0;
};

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_INCOMING_CALL_H_
