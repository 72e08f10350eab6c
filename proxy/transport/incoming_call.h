// SPDX-License-Identifier: Apache-2.0
// IncomingCall: one call that a listener accepted, as its CallHandler gets it,
// and CallHandler, through which whoever serves the calls is told of them.
//
// A call lives on its worker's thread and is used there only. It is served in
// one of two ways: its one request is read (Read) and answered (Answer,
// Finish), or its bytes are relayed (Attach), by whoever takes over its stream.
// What a relayed call holds is counted here until its stream has gone, as its
// caller may take long to take the last of it.
//
// Ownership: by IncomingCallPtr. Letting go of an unfinished call resets it at
// its caller.
#ifndef FNCACHE_PROXY_TRANSPORT_INCOMING_CALL_H_
#define FNCACHE_PROXY_TRANSPORT_INCOMING_CALL_H_

#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/method.h"
#include "grpcpp/support/status.h"
#include "http2/connection.h"
#include "http2/fields.h"
#include "proxy/transport/codec.h"
#include "proxy/transport/deadline.h"
#include "proxy/transport/inflight.h"
#include "proxy/transport/message.h"
#include "proxy/transport/read_room.h"
#include "proxy/transport/refusal.h"
#include "proxy/transport/steps.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::transport {

class CallHandler;

// Somebody who relays the bytes of a call. Called on the call's worker, until
// the call is let go of or OnCallerGone was called.
class CallTap {
 public:
  virtual void OnCallerData(absl::string_view bytes) = 0;
  // The caller sends no more.
  virtual void OnCallerEnd() = 0;
  // What was sent to it has gone, so far that more may be sent.
  virtual void OnCallerSent() = 0;
  // It has reset the call with this code, or has vanished.
  virtual void OnCallerGone(uint32_t code) = 0;

 protected:
  ~CallTap() = default;
};

// Bounds of what a listener's calls may hold on one worker, and whoever serves
// them. These outlive the calls.
struct CallLimits {
  size_t max_request_bytes = 256 << 20;
  ReadRoom* room = nullptr;
  Steps* unpacking = nullptr;
  CallHandler* handler = nullptr;
};
// Of packed requests, so much is unpacked in a turn.
constexpr size_t kUnpackedATurn = 512 << 10;
// A connection of which more than so much waits to be unpacked is not read.
constexpr size_t kMostToUnpack = 4 << 20;

class IncomingCall final : public Activity,
                           public http2::Recycled,
                           private http2::StreamUser,
                           private http2::Loop::Ender,
                           private ReadRoom::Reader,
                           private Steps::Task {
 public:
  // Starts the call of a request whose header block is there, and gives it to
  // its handler; returns who uses its stream. Requests that are no gRPC are
  // answered here: null is returned.
  static http2::StreamUser* Accept(http2::Stream& stream, Worker* worker,
                                   const CallLimits* limits);

  // IncomingCallPtr's deleter.
  struct LetGo {
    void operator()(IncomingCall* call) const { call->Drop(); }
  };
  using Ptr = std::unique_ptr<IncomingCall, LetGo>;

  Worker* worker() const { return worker_; }
  Method method() const { return method_; }
  // As on the wire: /package.Service/Method.
  absl::string_view path() const { return fields_.Find(":path"); }
  // The request's header block, in the order of arrival.
  const http2::Fields& fields() const { return fields_; }
  const Deadline& deadline() const { return deadline_; }
  // When the call came (wall clock, for latencies only).
  absl::Time arrived() const { return arrived_; }

  // Has `notice` called when the caller goes, its deadline passes, or its
  // connection is lost: at most once, while the call is owned, and in place of
  // an earlier notice. False if that is known to have happened already: then
  // `notice` is not called, and whoever calls this has to act himself.
  [[nodiscard]] bool OnCancelled(absl::AnyInvocable<void()> notice);

  // Calls `done` once the request is there, or cannot come: its status says
  // which. Never before it has returned.
  void Read(absl::AnyInvocable<void(const grpc::Status&)> done);
  // The request as it came, and unpacked; the same where it was not packed.
  // `plain` is not valid where it cannot be unpacked.
  const Message& request() const { return request_; }
  const Message& plain() const { return plain_; }
  // Lets go of the request's bytes.
  void ForgetRequest();

  // Adds a header for the caller, before it is answered.
  void AddHeader(absl::string_view name, absl::string_view value) {
    headers_.Add(name, value);
  }
  void AddTrailer(absl::string_view name, absl::string_view value) {
    trailers_.Add(name, value);
  }
  // The answer's fields are the function's, before what is added, and say its
  // status.
  void Relay(const http2::Fields& headers, const http2::Fields& trailers);

  // From now on `tap` gets what comes and uses stream(), which is there until
  // OnCallerGone.
  void Attach(CallTap* tap);
  http2::Stream& stream() { return *stream_; }

  // Tells the handler that it is refused with this status, by whoever serves
  // it.
  void TellRefusal(Refusal why, const grpc::Status& status) const;

  // Counts what every relayed call takes; false, and counted as refused, where
  // there is no room for one more.
  [[nodiscard]] bool HoldRelayed();
  // It holds, or has granted, so many bytes besides, of which up to kFree are
  // not counted. True if that is more than it did.
  bool HoldRelayed(size_t bytes);
  static constexpr size_t kFree = 1 << 10;
  Inflight* inflight() const { return limits_.room->inflight(); }
  // No call more can be relayed; then one that stands still is ended.
  bool RelayedWait() const;
  static constexpr absl::Duration kStandsStill = absl::Seconds(10);
  // Some two thirds of what a call takes besides its bytes: stream, session and
  // call. It is counted for those whose request is not there when the turn ends
  // in which they began, and until it is; and for those of a connection that
  // has many, while their answer is not taken.
  static constexpr size_t kCallItself = 4 << 10;

  // These end the call, and let go of it.
  static void Answer(Ptr call, Message message, const grpc::Status& status);
  static void Finish(Ptr call, const grpc::Status& status);

  // Says how a graceful stop treats the call; as kUnary until this is called.
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
  void OnTurnEnd() override;
  void OnRoom(Inflight::Share share) override;

  // Asks for room for what of the request does not come unasked.
  void AskForRest(http2::Stream& stream);
  // Counts what came, and was not granted; false if that is too much. Where the
  // connection's calls hold no more than `free`, it never is.
  bool HoldUnasked(size_t bytes, size_t free);
  // A packed request holds so much besides; false where there is no room.
  bool HoldUnpacked(size_t bytes);
  // It holds no more than it did as it came, and `more`.
  void HoldPacked(size_t more);
  // At the connection; metadata besides.
  void CountUnasked(size_t bytes);
  void WatchReading(absl::Duration after);
  void StopWatching();
  size_t SlowestComing() const;
  void GiveUpAnswer(Refusal why, const char* words);
  // Its fields are needed no more.
  void ForgetMetadata();
  // Its answer is as complete as it will be. If not all of it is taken in this
  // turn, AnswerIsNotTaken follows.
  void WatchAnswer();
  void AnswerIsNotTaken();
  // What of it is not taken takes memory that nobody else has use for.
  bool HoldsAnswer() const;
  // Others wait for the room that its answer, or the call itself, takes.
  bool OthersWait() const;
  void KeepWatching(size_t unsent);
  // Enough has moved since `unsent` bytes waited and its connection had written
  // `written`.
  bool Moves(size_t unsent, uint64_t written) const;
  void WatchSending(size_t unsent);
  void WeighRest();
  // What waits for the caller to take it.
  size_t Unsent() const;
  void RequestIsThere();
  // Unpacks some more of the request.
  Step OnStep() override;
  void ForgetUnpacking();
  void TellReader(const grpc::Status& status);
  // RESOURCE_EXHAUSTED, of which the handler is told, too.
  void RefuseRequest(Refusal why, const std::string& words);
  void RefuseForRoom();
  // Its deadline has passed.
  bool IsLate() const {
    return !deadline_.none() &&
           deadline_.Left(Deadline::Now()) == absl::ZeroDuration();
  }
  void ArmDeadline();
  void OnDeadline();
  void Cancel();
  void Drop();
  // The first fields of every answer of ours.
  http2::Fields Head() const;
  void SendStatus(const grpc::Status& status);

  Worker* const worker_;
  const CallLimits limits_;
  http2::Stream* stream_;  // null: it has gone
  const Method method_;
  bool owned_ = true;
  bool relayed_ = false;
  bool asked_ = false;  // for room, where the request is large
  bool lasts_ = false;  // its request was not there when its turn ended
  const bool crowded_;  // its connection has many calls
  CallTap* tap_ = nullptr;
  http2::Fields fields_;
  absl::Time arrived_;
  Deadline deadline_;
  absl::AnyInvocable<void()> notice_;
  absl::AnyInvocable<void(const grpc::Status&)> reader_;
  absl::optional<TimerId> deadline_timer_;
  const size_t unasked_;  // bytes that come without being asked for
  MessageCollector collector_;
  size_t held_unasked_ = 0;  // as counted at the connection
  size_t granted_ = 0;       // bytes of the request that may come
  int64_t moved_ = 0;        // when enough came; the loop's time
  size_t came_ = 0;          // by then, of one that was granted
  Message request_;
  Message plain_;
  std::unique_ptr<Unpacker> unpacker_;  // of `request_`
  // Its connection, while it is unpacked.
  http2::Connection* unpacks_of_ = nullptr;
  http2::Fields headers_;
  http2::Fields trailers_;
  Held metadata_;  // fields beyond the usual, of a call that is not relayed
  Held itself_;    // the call, where its connection has many
  Held reading_;
  Held sending_;        // an answer that is nobody else's
  http2::Slice entry_;  // some of one that is not taken: the memory tier's
  Held passing_;        // of a relayed call
  // While it is read: whether it moves. Once it is answered: the same of that.
  absl::optional<TimerId> watch_timer_;
};

using IncomingCallPtr = IncomingCall::Ptr;

// Whoever serves the calls of one listener, whatever their method. Thread-safe
// where the listener has several workers.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  // A request is refused with this status. Reading the call, if there is one,
  // ends with it.
  virtual void OnRefused(Refusal /*why*/, const grpc::Status& /*status*/) {}
  // A call that is refused was answered at once, and is not started.
  virtual void OnAnswered(const grpc::Status& /*status*/) {}
  // A connection is not read for a while (kMostToUnpack).
  virtual void OnHeldUp() {}
  // Takes over the call, from which nothing has been read yet. On
  // call->worker()'s thread.
  virtual void StartCall(IncomingCallPtr call) = 0;
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_INCOMING_CALL_H_
