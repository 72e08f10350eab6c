// SPDX-License-Identifier: Apache-2.0
// IncomingCall: one call that a listener accepted. CallHandler: the interface
// that receives the calls of a listener.
//
// The handler either reads the one request (Read) and answers it (Answer,
// Finish), or relays the bytes (Attach: a CallTap takes over the stream). The
// memory of a relayed call is counted here until its stream is closed, because
// its caller may take long to read the rest.
//
// It is one thing: reading, decompression, answer and relay of a call use the
// same stream, the same timer against stalls, and the same charges for memory.
// Each stage changes the charges of the stage before.
//
// Thread-safety: a call is used only on its worker's thread.
// Ownership: IncomingCallPtr owns a call. Releasing an unfinished call resets
// it at its caller.
#ifndef FNCACHE_PROXY_TRANSPORT_INCOMING_CALL_H_
#define FNCACHE_PROXY_TRANSPORT_INCOMING_CALL_H_

#include <memory>
#include <string>
#include <variant>

#include "absl/functional/any_invocable.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/method.h"
#include "grpcpp/support/status.h"
#include "http2/connection.h"
#include "http2/fields.h"
#include "proxy/limits/read_grants.h"
#include "proxy/limits/watchdog.h"
#include "proxy/transport/codec.h"
#include "proxy/transport/deadline.h"
#include "proxy/transport/message.h"
#include "proxy/transport/refusal.h"
#include "proxy/transport/steps.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::transport {

class CallHandler;

// Relays the bytes of a call. Called on the call's worker, until the call is
// released or OnCallerGone was called.
class CallTap {
 public:
  virtual void OnCallerData(absl::string_view bytes) = 0;
  // The caller sends no more.
  virtual void OnCallerEnd() = 0;
  // Enough of the sent bytes has left that more may be sent.
  virtual void OnCallerSent() = 0;
  // The caller has reset the call with this code, or its connection is lost.
  virtual void OnCallerGone(uint32_t code) = 0;

 protected:
  ~CallTap() = default;
};

// Limits of a listener's calls on one worker, and their handler. The pointers
// outlive the calls.
struct CallLimits {
  size_t max_request_bytes = 256 << 20;
  limits::ReadGrants* grants = nullptr;
  Steps* unpacking = nullptr;
  CallHandler* handler = nullptr;
};
// Bytes of compressed requests that a worker decompresses in one event-loop
// iteration. Beyond it, the rest waits for the next one.
constexpr size_t kUnpackedPerIteration = 512 << 10;
// A connection is not read while more than this many of its bytes wait for
// decompression.
constexpr size_t kMostToUnpack = 4 << 20;

class IncomingCall final : public Activity,
                           public http2::Recycled,
                           private http2::StreamUser,
                           private http2::Loop::Ender,
                           private limits::ReadGrants::Reader,
                           private Steps::Task {
 public:
  // Starts the call of a request whose header block is there, and gives it to
  // its handler. Returns the user of its stream; null if the request was
  // refused. Requests that are not gRPC get an HTTP error.
  static http2::StreamUser* Accept(http2::Stream& stream, Worker* worker,
                                   const CallLimits* limits);

  // IncomingCallPtr's deleter.
  struct LetGo {
    void operator()(IncomingCall* call) const { call->Drop(); }
  };
  using Ptr = std::unique_ptr<IncomingCall, LetGo>;

  Worker* worker() const { return worker_; }
  Method method() const { return method_; }
  // On the wire: /package.Service/Method.
  absl::string_view path() const { return fields_.Find(":path"); }
  // The request's header block, in the order of arrival.
  const http2::Fields& fields() const { return fields_; }
  const Deadline& deadline() const { return deadline_; }
  // When the call arrived (wall clock, for latencies only).
  absl::Time arrived() const { return arrived_; }

  using ReadDone = absl::AnyInvocable<void(const grpc::Status&)>;
  using Notice = absl::AnyInvocable<void()>;

  // Calls `notice` when the caller cancels, its deadline passes, or its
  // connection is lost. It does so at most once, and only while the call is
  // owned. It replaces an earlier notice. False if one of these has happened
  // already: then `notice` is not called, and the function's caller must act.
  // Not while Read waits, which reports the same.
  [[nodiscard]] bool OnCancelled(Notice notice);

  // Calls `done` when the request is complete (OK), or cannot arrive any more
  // (an error). Never before this returns.
  void Read(ReadDone done);
  // The request as it arrived, and decompressed; the same if it was not
  // compressed. plain() is not valid if the request cannot be decompressed.
  const Message& request() const { return request_; }
  const Message& plain() const { return plain_; }
  // The quota that counts the complete request. It is kReading if the request
  // exceeds its connection's cap: then it may be looked up, but not wait for
  // the function. One that is beyond the quota may wait.
  limits::Budget::Quota KeptIn() {
    KeepRequest();
    return charged_.quota();
  }
  bool MayWait() { return KeptIn() != limits::Budget::Quota::kReading; }
  // The status of such a call.
  static grpc::Status OverCap();
  // Counts and reports that it is refused.
  void CountOverCap() const;
  // Counts the bytes that the connection keeps. Null if it is closed.
  std::shared_ptr<size_t> account() const {
    return stream_ == nullptr ? nullptr : stream_->connection().account();
  }
  // Releases the request's bytes.
  void ForgetRequest();

  // Adds a header to the answer. Before Answer or Finish.
  void AddHeader(absl::string_view name, absl::string_view value) {
    headers_.Add(name, value);
  }
  void AddTrailer(absl::string_view name, absl::string_view value) {
    trailers_.Add(name, value);
  }
  // Uses the function's fields for the answer, and its status. Headers and
  // trailers that are added later follow them.
  void Relay(const http2::Fields& headers, const http2::Fields& trailers);

  // From now on `tap` gets the caller's bytes and uses stream(), which is valid
  // until OnCallerGone.
  void Attach(CallTap* tap);
  http2::Stream& stream() { return *stream_; }

  // Reports to the handler that the call is refused with this status. For the
  // code that serves the call.
  void TellRefusal(Refusal why, const grpc::Status& status) const;

  // Charges the memory that every relayed call needs. False, and counted as
  // refused, if the quota of relayed calls is full.
  [[nodiscard]] bool HoldRelayed();
  // Charges the `bytes` that the relayed call keeps, or has granted. Up to
  // kFree are free of charge. True if the charge has grown.
  bool HoldRelayed(size_t bytes);
  static constexpr size_t kFree = 1 << 10;
  limits::Budget* inflight() const { return limits_.grants->budget(); }

  // Memory of a call besides its message: stream, session and call. A call is
  // charged for it when it lasts longer than one event-loop iteration, or at
  // once if its connection has many calls.
  static constexpr size_t kCallItself = 4 << 10;

  // Both end the call and release it.
  static void Answer(Ptr call, Message message, const grpc::Status& status);
  static void Finish(Ptr call, const grpc::Status& status);

  // Sets how a graceful stop treats the call. The default is kUnary.
  void SetKind(Kind kind) { worker_->SetKind(this, kind); }
  void CancelActivity() override { Cancel(); }

  IncomingCall(const IncomingCall&) = delete;
  IncomingCall& operator=(const IncomingCall&) = delete;

 private:
  IncomingCall(http2::Stream& stream, Worker* worker, const CallLimits* limits);
  ~IncomingCall();

  void OnData(http2::Stream& stream, absl::string_view bytes) override;
  void OnPeerEnd(http2::Stream& stream) override;
  void OnSent(http2::Stream& stream) override;
  void OnClosed(http2::Stream& stream, const http2::StreamEnd& end) override;
  void OnIterationEnd() override;
  void OnGranted(limits::Budget::Quota quota) override;

  bool reading() const { return std::holds_alternative<ReadDone>(waiter_); }
  CallTap* tap() const {
    CallTap* const* const tap = std::get_if<CallTap*>(&waiter_);
    return tap == nullptr ? nullptr : *tap;
  }
  // The memory of a relayed call is charged.
  bool passing() const {
    return charged_.quota() == limits::Budget::Quota::kRelayed &&
           charged_.bytes() > 0;
  }
  // The bytes that the request was granted beyond what its connection may keep;
  // 0: none.
  size_t granted() const {
    using Quota = limits::Budget::Quota;
    const bool granted = charged_.quota() == Quota::kReading ||
                         charged_.quota() == Quota::kBeyond;
    return granted ? charged_.bytes() : 0;
  }
  // Charges the memory of the call besides its message to its connection.
  void ChargeItself(size_t bytes = kCallItself) {
    itself_.Set(WeightOf(fields_) + bytes);
  }
  void ChargeAnswer(size_t bytes) {
    charged_.Move(limits::Budget::Quota::kRunning);
    charged_.Set(bytes);
  }
  // Calls the notice, if there is one.
  void NotifyCancelled();
  // Asks for memory for the request's bytes beyond the first window.
  void AskForRest(http2::Stream& stream);
  // Charges a granted request to its connection, once it is complete. False if
  // that exceeds the cap.
  bool KeepRequest();
  // False if what the connection keeps exceeds its cap.
  bool KeepsWithinCap() const;
  // Charges `bytes` of decompressed data to a compressed request. False if they
  // do not fit.
  bool HoldUnpacked(size_t bytes);
  // Charges only the compressed request and `more`.
  void HoldPacked(size_t more);
  void WatchReading(absl::Duration after);
  void StopWatching();
  void GiveUpAnswer(Refusal why, const char* words);
  // Releases the request's fields, if they are charged.
  void ForgetMetadata();
  // The answer is complete. If its caller has not taken all of it when this
  // event-loop iteration ends, AnswerIsNotTaken follows.
  void WatchAnswer();
  void AnswerIsNotTaken();
  // True if the unsent rest of the answer uses memory of this call alone.
  bool HoldsAnswer() const;
  // True if others wait for the memory of its answer, or of the call itself.
  bool OthersWait() const;
  void KeepWatching(size_t unsent);
  // True if the answer has moved enough since `unsent` bytes waited and its
  // connection had written `written`.
  bool Moves(size_t unsent, uint64_t written) const;
  void WatchSending(size_t unsent);
  void WeighRest();
  // Bytes that the caller has not taken yet.
  size_t Unsent() const;
  void RequestIsThere();
  // Decompresses the next bytes of the request.
  Step OnStep() override;
  void ForgetUnpacking();
  void TellReader(const grpc::Status& status);
  // Ends reading with RESOURCE_EXHAUSTED and reports it to the handler.
  void RefuseRequest(Refusal why, const std::string& words);
  void RefuseForMemory();
  // True if the deadline has passed.
  bool IsLate() const {
    return !deadline_.none() &&
           deadline_.Left(Deadline::Now()) == absl::ZeroDuration();
  }
  void ArmDeadline();
  void OnDeadline();
  void Cancel();
  void Drop();
  // The first fields of every answer that fncache makes.
  http2::Fields Head() const;
  void SendStatus(const grpc::Status& status);

  Worker* const worker_;
  const CallLimits limits_;
  http2::Stream* stream_;  // null: it is closed
  const Method method_;
  bool owned_ = true;
  bool relayed_ = false;
  http2::Fields fields_;
  absl::Time arrived_;
  Deadline deadline_;
  // The one that waits for an event: for the whole request (Read), the loss of
  // the caller (OnCancelled), or everything (Attach).
  std::variant<std::monostate, ReadDone, Notice, CallTap*> waiter_;
  absl::optional<TimerId> deadline_timer_;
  MessageCollector collector_;
  limits::Watchdog watchdog_;  // of the request that arrives
  Message request_;
  Message plain_;
  std::unique_ptr<Unpacker> unpacker_;  // of `request_`
  // The connection, while the request is decompressed.
  http2::Connection* unpacks_of_ = nullptr;
  http2::Fields headers_;
  http2::Fields trailers_;
  // Fields beyond the usual, and kCallItself. Not of a relayed call.
  limits::Charge itself_;
  // The quota says whose bytes: the request's; then kRunning, of an answer that
  // only this call uses; or kRelayed, of a relayed call.
  limits::Charge charged_;
  // Checks that the request moves while it is read, and later the answer.
  absl::optional<TimerId> watch_timer_;
};

using IncomingCallPtr = IncomingCall::Ptr;

// Serves the calls of one listener, of every method. Thread-safe if the
// listener has several workers.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  // A request is refused with this status. If there is a call, reading it ends
  // with this status.
  virtual void OnRefused(Refusal /*why*/, const grpc::Status& /*status*/) {}
  // A refused call was answered at once, and StartCall does not follow.
  virtual void OnAnswered(const grpc::Status& /*status*/) {}
  // A connection is not read until its requests are decompressed
  // (kMostToUnpack).
  virtual void OnPaused() {}
  // Takes over the call. Nothing has been read from it yet. On call->worker()'s
  // thread.
  virtual void StartCall(IncomingCallPtr call) = 0;
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_INCOMING_CALL_H_
