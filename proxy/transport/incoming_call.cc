// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/incoming_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proxy/transport/codec.h"
#include "proxy/transport/foreign_request.h"
#include "proxy/transport/metadata.h"

namespace fncache::proxy::transport {
namespace {

// Keep 1 KiB of the window open to detect data after the message.
constexpr uint32_t kSpareWindow = 1 << 10;

// Interval of the poll whether others wait for the memory of a stalled call.
constexpr absl::Duration kLookAgain = absl::Seconds(1);

// Memory of a relayed call: two streams and their usual fields. Further bytes
// are charged in steps, rounded up.
constexpr size_t kRelayedCall = 8 << 10;
constexpr size_t kRelayedStep = 4 << 10;

// Calls of a connection that use at most 64 KiB together are accepted without a
// look at the memory that others use.
constexpr size_t kUnchecked = 64 << 10;

// Memory of a call besides its message while it waits for the function: also
// that of the call to the function.
constexpr size_t kCallAtFunction = 12 << 10;

// zlib's memory for one request, and the cost of its set-up: zlib makes this
// many bytes in the same time.
constexpr size_t kUnpacker = 40 << 10;
constexpr size_t kBeginning = 1 << 10;

// Takes the fields of a call that is not served. The stream keeps none of them,
// and no trailers, however long it stays open.
http2::Fields TakeFields(http2::Stream& stream) {
  stream.KeepTrailers(false);
  return stream.TakeFields();
}

http2::StreamUser* Refuse(http2::Stream& stream, CallHandler* handler,
                          Refusal why, const grpc::Status& status) {
  handler->OnRefused(why, status);
  handler->OnAnswered(status);
  const http2::Fields request = TakeFields(stream);
  const absl::string_view content_type = request.Find("content-type");
  http2::Fields fields;
  fields.Add(":status", "200");
  fields.Add("content-type",
             content_type.empty() ? "application/grpc" : content_type);
  AddStatus(status, &fields);
  stream.Answer(fields, /*end=*/true);
  return nullptr;
}

// The bytes of a request that may arrive without a grant.
size_t Unasked(const http2::Stream& stream) {
  return stream.first_window() - kSpareWindow;
}

// True if the calls of a connection may keep `bytes`.
bool MayKeep(size_t bytes, const limits::ReadGrants& grants) {
  return bytes <= kUnchecked || grants.cap().MayKeep(bytes);
}

}  // namespace

http2::StreamUser* IncomingCall::Accept(http2::Stream& stream, Worker* worker,
                                        const CallLimits* limits) {
  const http2::Fields& fields = stream.fields();
  const absl::string_view content_type = fields.Find("content-type");
  limits::Budget* const inflight = limits->grants->budget();
  limits->grants->ShrinkWindow(stream.connection());
  if (stream.oversized()) {
    return Refuse(stream, limits->handler, Refusal::kMetadata,
                  grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                               "the request's metadata is larger than "
                               "max_metadata_bytes"));
  }
  const bool is_post = fields.Find(":method") == "POST";
  if (!is_post || !IsGrpc(content_type)) {
    TakeFields(stream);
    return AnswererOfForeign(is_post);
  }
  if (HasLoop(fields)) {
    return Refuse(stream, limits->handler, Refusal::kLoop,
                  grpc::Status(grpc::StatusCode::FAILED_PRECONDITION,
                               "the call has passed this proxy before: its "
                               "upstream leads back to it"));
  }
  const size_t calls = stream.connection().streams() * kCallItself;
  if (!MayKeep(
          std::max(*stream.connection().account(), calls) + WeightOf(fields),
          *limits->grants)) {
    inflight->CountRefused();
    return Refuse(stream, limits->handler, Refusal::kRoom, OverCap());
  }
  // The call deletes itself when its stream is closed and it has no owner.
  auto* const call = new IncomingCall(stream, worker, limits);
  limits->handler->StartCall(Ptr(call));
  // The handler may have released it already; its stream still needs it.
  return call;
}

IncomingCall::IncomingCall(http2::Stream& stream, Worker* worker,
                           const CallLimits* limits)
    : Activity(Kind::kUnary),
      worker_(worker),
      limits_(*limits),
      stream_(&stream),
      method_(MethodOf(stream.fields().Find(":path"))),
      fields_(stream.TakeFields()),
      arrived_(absl::Now()),
      collector_(limits->max_request_bytes, Unasked(stream)),
      itself_(limits->grants->budget(), limits::Budget::Quota::kKept,
              worker->index(), stream.connection().account().get()),
      charged_(limits->grants->budget(), limits::Budget::Quota::kKept,
               worker->index(), stream.connection().account().get()) {
  const absl::string_view timeout = fields_.Find("grpc-timeout");
  if (!timeout.empty()) {
    deadline_ = Deadline::OfCaller(timeout, Deadline::Now());
  }
  stream.KeepTrailers(false);
  itself_.Set(WeightOf(fields_));
  if (stream.connection().streams() * kCallItself > kUnchecked) ChargeItself();
  worker_->Enter(this);
}

IncomingCall::~IncomingCall() {
  limits_.grants->Forget(this);
  StopWatching();
  ForgetUnpacking();
  worker_->loop()->Forget(this);
  if (passing()) {
    inflight()->Yield(limits::Budget::Quota::kRelayed, this);
  }
  if (deadline_timer_.has_value()) worker_->Cancel(*deadline_timer_);
  worker_->Leave(this);
}

bool IncomingCall::OnCancelled(Notice notice) {
  if (stream_ == nullptr || IsLate()) return false;
  waiter_ = std::move(notice);
  ArmDeadline();
  ChargeItself(kCallAtFunction);
  return true;
}

void IncomingCall::ArmDeadline() {
  if (deadline_.none() || deadline_timer_.has_value()) return;
  deadline_timer_ =
      worker_->After(deadline_.Left(Deadline::Now()), [this] { OnDeadline(); });
}

void IncomingCall::OnDeadline() {
  deadline_timer_.reset();
  if (reading()) {
    return TellReader(
        grpc::Status(grpc::StatusCode::CANCELLED, "Deadline Exceeded"));
  }
  NotifyCancelled();
}

void IncomingCall::NotifyCancelled() {
  if (!std::holds_alternative<Notice>(waiter_)) return;
  Notice notice = std::get<Notice>(std::exchange(waiter_, std::monostate()));
  notice();
}

void IncomingCall::Read(ReadDone done) {
  waiter_ = std::move(done);
  // A call without any byte of its message uses memory, too.
  worker_->loop()->AtIterationEnd(this);
}

void IncomingCall::OnData(http2::Stream& stream, absl::string_view bytes) {
  if (tap() != nullptr) return tap()->OnCallerData(bytes);
  if (!reading()) {
    stream.Consume(bytes.size());
    return;
  }
  const MessageCollector::State state = collector_.Take(bytes);
  charged_.Set(std::max(collector_.held(), granted()));
  switch (state) {
    case MessageCollector::State::kNone:
      ArmDeadline();
      watchdog_.Saw(worker_->loop()->now(), collector_.held(),
                    std::max(collector_.held(), granted()));
      // Usually the rest arrives in this event-loop iteration.
      if (!watch_timer_.has_value()) worker_->loop()->AtIterationEnd(this);
      if (granted() > 0) return;
      if (KeepsWithinCap()) return AskForRest(stream);
      return RefuseForMemory();
    case MessageCollector::State::kWhole:
      if (granted() == 0 && !KeepsWithinCap()) return RefuseForMemory();
      // Usually the end of the stream is in the same bytes.
      worker_->loop()->AtIterationEnd(this);
      return;
    case MessageCollector::State::kTooLarge:
      return RefuseRequest(
          Refusal::kSize,
          absl::StrCat("the request is larger than max_request_bytes, ",
                       limits_.max_request_bytes));
    case MessageCollector::State::kSecond:
      return TellReader(grpc::Status(grpc::StatusCode::UNIMPLEMENTED,
                                     "RunFunction needs one request message"));
    case MessageCollector::State::kBroken:
      return TellReader(
          grpc::Status(grpc::StatusCode::INTERNAL,
                       "the request is not framed as gRPC's are"));
  }
}

void IncomingCall::AskForRest(http2::Stream& stream) {
  if (waits()) return;
  const size_t whole = collector_.announced() + kMessagePrefix;
  if (whole <= Unasked(stream)) return;
  limits_.grants->Ask(this, &stream.connection(), collector_.announced());
}

bool IncomingCall::KeepsWithinCap() const {
  return MayKeep(*stream_->connection().account(), *limits_.grants);
}

bool IncomingCall::KeepRequest() {
  if (granted() == 0 || stream_ == nullptr) return true;
  // A request beyond is not yet taken off the free memory.
  const bool beyond = charged_.quota() == limits::Budget::Quota::kBeyond;
  const size_t bytes = charged_.bytes() * (beyond ? 2 : 1);
  if (!MayKeep(*stream_->connection().account() + bytes, *limits_.grants)) {
    return false;
  }
  charged_.Move(limits::Budget::Quota::kKept);
  limits_.grants->Forget(this);
  return true;
}

void IncomingCall::OnGranted(limits::Budget::Quota quota) {
  if (stream_ == nullptr) return;
  watchdog_.Restart(worker_->loop()->now(), collector_.held());
  collector_.Expect();
  charged_.Move(quota);
  charged_.Set(collector_.announced());
  stream_->Grant(collector_.announced() + kMessagePrefix - Unasked(*stream_));
}

void IncomingCall::StopWatching() {
  if (watch_timer_.has_value()) worker_->Cancel(*watch_timer_);
  watch_timer_.reset();
}

// Ends a request that stalls while others wait for its memory.
void IncomingCall::WatchReading(absl::Duration after) {
  watch_timer_ = worker_->After(after, [this] {
    watch_timer_.reset();
    if (!reading() || request_.valid()) return;
    // A request that has filled its window without a grant waits itself.
    const bool full =
        waits() && collector_.held() + kMessagePrefix >= Unasked(*stream_);
    const absl::Duration idle = watchdog_.Idle(worker_->loop()->now());
    if (idle < limits::Watchdog::kPatience) {
      return WatchReading(limits::Watchdog::kPatience - idle);
    }
    if (full || inflight() == nullptr ||
        !inflight()->OthersWait(charged_.quota())) {
      return WatchReading(kLookAgain);
    }
    RefuseRequest(
        Refusal::kStalled,
        "the request stopped coming while others wait for inflight.bytes");
  });
}

void IncomingCall::OnPeerEnd(http2::Stream& /*stream*/) {
  if (tap() != nullptr) return tap()->OnCallerEnd();
  if (!reading() || request_.valid()) return;
  if (collector_.state() == MessageCollector::State::kWhole) {
    worker_->loop()->Forget(this);
    return RequestIsThere();
  }
  TellReader(grpc::Status(grpc::StatusCode::UNIMPLEMENTED,
                          "RunFunction needs one request message"));
}

void IncomingCall::OnIterationEnd() {
  if (!owned_) {
    if (stream_ == nullptr) return;
    return passing() ? WeighRest() : AnswerIsNotTaken();
  }
  if (!reading() || request_.valid()) return;
  if (collector_.state() == MessageCollector::State::kWhole) {
    return RequestIsThere();
  }
  if (inflight() == nullptr) return;
  ChargeItself();
  if (!KeepsWithinCap()) return RefuseForMemory();
  if (!watch_timer_.has_value()) WatchReading(limits::Watchdog::kPatience);
}

void IncomingCall::RequestIsThere() {
  StopWatching();
  const bool granted = this->granted() > 0;
  request_ = collector_.Release();
  limits_.grants->Complete(this);
  KeepRequest();
  if (granted && request_.size() > http2::kUsualWindow) {
    limits_.grants->GrowWindow(stream_->connection());
  }
  if (!CanBeKeyed(fields_)) return TellReader(grpc::Status::OK);
  if (!request_.compressed()) {
    plain_ = request_;
    return TellReader(grpc::Status::OK);
  }
  ArmDeadline();
  unpacks_of_ = &stream_->connection();
  limits_.unpacking->Add(this, request_.size(), unpacks_of_);
}

void IncomingCall::ForgetUnpacking() {
  if (unpacks_of_ == nullptr) return;
  limits_.unpacking->Forget(this, std::exchange(unpacks_of_, nullptr));
}

bool IncomingCall::HoldUnpacked(size_t bytes) {
  using Quota = limits::Budget::Quota;
  const size_t both = request_.size() + bytes;
  const bool small = std::max(request_.size(), bytes) <= kUnpackedPerIteration;
  // It exceeds the quota already. If it grew much, others would lack memory.
  if (charged_.quota() == Quota::kBeyond) return small;
  http2::Connection& connection = stream_->connection();
  if (small) {
    return granted() > 0 ||
           MayKeep(*connection.account() - charged_.bytes() + both,
                   *limits_.grants);
  }
  if (!limits_.grants->Hold(this, &connection, both)) return false;
  charged_.Move(Quota::kReading);
  return true;
}

void IncomingCall::HoldPacked(size_t more) {
  if (charged_.quota() == limits::Budget::Quota::kReading) {
    limits_.grants->Hold(this, &stream_->connection(), request_.size());
  }
  charged_.Set(request_.size() + more);
}

// Decompression runs in steps, because a few kilobytes may become a gigabyte
// and the worker must serve other calls meanwhile.
IncomingCall::Step IncomingCall::OnStep() {
  if (unpacker_ == nullptr) {
    auto unpacker =
        Unpacker::Create(fields_.Find("grpc-encoding"), request_.bytes());
    if (!unpacker.ok()) {
      unpacks_of_ = nullptr;
      TellReader(grpc::Status::OK);
      return {0, /*more=*/false};
    }
    unpacker_ = *std::move(unpacker);
  }
  const size_t before = unpacker_->worked();
  const absl::Status status =
      unpacker_->Step(kUnpackedPerIteration, limits_.max_request_bytes);
  const size_t done = unpacker_->worked() - before + kBeginning;
  const bool more = status.ok() && !unpacker_->done();
  if (status.ok() && unpacker_->keeps()) {
    const size_t made = unpacker_->size() + (more ? kUnpacker : 0);
    // A request that does not fit gets no key, and is forwarded as it arrived.
    if (HoldUnpacked(made)) {
      charged_.Set(request_.size() + made);
    } else {
      unpacker_->StopKeeping();
      HoldPacked(kUnpacker);
    }
  }
  if (more) return {done, more};
  if (status.ok() && unpacker_->keeps()) plain_ = Message(unpacker_->Release());
  unpacker_ = nullptr;
  unpacks_of_ = nullptr;
  if (!plain_.valid()) HoldPacked(0);
  KeepRequest();
  if (absl::IsResourceExhausted(status)) {
    RefuseRequest(
        Refusal::kSize,
        absl::StrCat("the decompressed request exceeds max_request_bytes, ",
                     limits_.max_request_bytes));
  } else {
    TellReader(grpc::Status::OK);
  }
  return {done, more};
}

void IncomingCall::TellRefusal(Refusal why, const grpc::Status& status) const {
  limits_.handler->OnRefused(why, status);
}

void IncomingCall::RefuseRequest(Refusal why, const std::string& words) {
  const grpc::Status status(grpc::StatusCode::RESOURCE_EXHAUSTED, words);
  TellRefusal(why, status);
  TellReader(status);
}

grpc::Status IncomingCall::OverCap() {
  return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, kOverCap);
}

void IncomingCall::CountOverCap() const {
  inflight()->CountRefused();
  TellRefusal(Refusal::kRoom, OverCap());
}

void IncomingCall::RefuseForMemory() {
  if (inflight() != nullptr) inflight()->CountRefused();
  RefuseRequest(Refusal::kRoom, kOverCap);
}

void IncomingCall::TellReader(const grpc::Status& status) {
  StopWatching();
  ForgetUnpacking();
  ReadDone done = std::get<ReadDone>(std::exchange(waiter_, std::monostate()));
  done(status);
}

void IncomingCall::ForgetRequest() {
  request_.Clear();
  plain_.Clear();
  using Quota = limits::Budget::Quota;
  if (charged_.quota() != Quota::kRunning &&
      charged_.quota() != Quota::kRelayed) {
    charged_.Set(0);
  }
  limits_.grants->Forget(this);
}

void IncomingCall::ForgetMetadata() {
  if (itself_.bytes() == 0) return;
  const http2::Fields gone = std::move(fields_);
  fields_.Clear();
  itself_.Set(std::min(itself_.bytes(), kCallItself));
}

void IncomingCall::GiveUpAnswer(Refusal why, const char* words) {
  TellRefusal(why, grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, words));
  // Free the memory now, so that no other call is ended for it in this
  // event-loop iteration.
  itself_.Set(0);
  if (!passing()) charged_.Set(0);
  stream_->Reset(http2::kEnhanceYourCalm);
}

void IncomingCall::WatchAnswer() {
  // Run after the connection's own OnIterationEnd, which sends the answer.
  worker_->loop()->Forget(this);
  worker_->loop()->AtIterationEnd(this);
}

void IncomingCall::AnswerIsNotTaken() {
  if (stream_->end_sent() || watch_timer_.has_value()) return;
  ChargeItself();
  watch_timer_ = worker_->After(kLookAgain, [this] {
    watch_timer_.reset();
    KeepWatching(Unsent());
  });
}

void IncomingCall::KeepWatching(size_t unsent) {
  if (!passing()) ChargeAnswer(HoldsAnswer() ? unsent : 0);
  WatchSending(unsent);
}

// The memory tier owns an entry's bytes for now. Once it drops the entry, only
// the calls that send it keep them.
bool IncomingCall::HoldsAnswer() const {
  return relayed_ || stream_->unsent() == 0 || !stream_->last_unsent().kept();
}

bool IncomingCall::OthersWait() const {
  if (inflight() == nullptr) return false;
  return passing() || HoldsAnswer() ? inflight()->OthersWait(charged_.quota())
                                    : inflight()->LittleIsLeft();
}

// A connection sends answers one after the other. So an answer also moves if
// its connection writes enough and the caller's window does not block it.
bool IncomingCall::Moves(size_t unsent, uint64_t written) const {
  const size_t least = limits::Watchdog::Least(unsent);
  if (Unsent() + least <= unsent) return true;
  const http2::Connection& connection = stream_->connection();
  return !stream_->blocked() &&
         connection.bytes_written() - written >= least * connection.streams();
}

// Cancels an answer that its caller does not take while others wait for its
// memory, or for that of its call.
void IncomingCall::WatchSending(size_t unsent) {
  const uint64_t written = stream_->connection().bytes_written();
  watch_timer_ =
      worker_->After(limits::Watchdog::kPatience, [this, unsent, written] {
        watch_timer_.reset();
        if (stream_ == nullptr) return;
        if (OthersWait() && !Moves(unsent, written)) {
          return GiveUpAnswer(
              Refusal::kStalled,
              "the answer was not taken while others wait for inflight.bytes");
        }
        KeepWatching(Unsent());
      });
}

bool IncomingCall::HoldRelayed() {
  const size_t bytes = kRelayedCall + WeightOf(fields_);
  if (inflight() != nullptr && inflight()->RefuseRelayed(bytes)) return false;
  itself_.Set(0);
  charged_.Move(limits::Budget::Quota::kRelayed);
  charged_.Set(bytes);
  return true;
}

bool IncomingCall::HoldRelayed(size_t bytes) {
  const size_t before = charged_.bytes();
  const size_t steps =
      bytes > kFree ? (bytes + kRelayedStep - 1) / kRelayedStep : 0;
  charged_.Set(kRelayedCall + WeightOf(fields_) +
               WeightOf(stream_->trailers()) + steps * kRelayedStep);
  return charged_.bytes() > before;
}

size_t IncomingCall::Unsent() const {
  return stream_->unsent() + WeightOf(stream_->unsent_trailers());
}

// Charges the unsent rest of a relayed call that is over otherwise.
void IncomingCall::WeighRest() {
  const size_t unsent = Unsent();
  if (HoldRelayed(unsent) && inflight()->EndRelayed(this)) {
    return GiveUpAnswer(
        Refusal::kRoom,
        "the calls that are relayed hold too much of inflight.bytes");
  }
  if (!stream_->end_sent() && !watch_timer_.has_value()) WatchSending(unsent);
}

void IncomingCall::OnSent(http2::Stream& /*stream*/) {
  if (tap() != nullptr) return tap()->OnCallerSent();
  if (!owned_ && passing()) worker_->loop()->AtIterationEnd(this);
}

void IncomingCall::OnClosed(http2::Stream& /*stream*/,
                            const http2::StreamEnd& end) {
  itself_.LeaveAccount();
  charged_.LeaveAccount();
  stream_ = nullptr;
  if (!owned_) {
    delete this;
    return;
  }
  if (CallTap* const tap = this->tap()) {
    waiter_ = std::monostate();
    const bool reset = end.kind == http2::StreamEnd::Kind::kPeerReset;
    return tap->OnCallerGone(reset ? end.code : http2::kCancel);
  }
  if (reading()) {
    return TellReader(
        grpc::Status(grpc::StatusCode::CANCELLED, "the caller has gone"));
  }
  NotifyCancelled();
}

void IncomingCall::Attach(CallTap* tap) {
  waiter_ = tap;
  stream_->set_passes();
  stream_->KeepTrailers(true);
}

void IncomingCall::Cancel() {
  if (stream_ != nullptr) stream_->Reset(http2::kCancel);
}

void IncomingCall::Drop() {
  owned_ = false;
  waiter_ = std::monostate();
  ForgetUnpacking();
  unpacker_ = nullptr;
  ForgetRequest();
  if (stream_ == nullptr) {
    delete this;
    return;
  }
  // OnClosed follows.
  if (passing() && !stream_->end_sent()) WatchAnswer();
  if (stream_->ended()) return;
  if (IsLate() && !stream_->answered()) {
    return SendStatus(
        grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"));
  }
  stream_->Reset(http2::kCancel);
}

http2::Fields IncomingCall::Head() const {
  http2::Fields head;
  head.Add(":status", "200");
  head.Add("content-type", fields_.Find("content-type"));
  for (const http2::Field field : headers_) head.Add(field);
  return head;
}

void IncomingCall::SendStatus(const grpc::Status& status) {
  http2::Fields head = relayed_ ? headers_ : Head();
  if (!relayed_) AddStatus(status, &head);
  for (const http2::Field field : trailers_) head.Add(field);
  stream_->Answer(head, /*end=*/true);
}

void IncomingCall::Relay(const http2::Fields& headers,
                         const http2::Fields& trailers) {
  relayed_ = true;
  headers_ = headers;
  trailers_ = trailers;
  ChargeAnswer(WeightOf(headers_) + WeightOf(trailers_));
}

void IncomingCall::Answer(Ptr call, Message message,
                          const grpc::Status& status) {
  http2::Stream* const stream = call->stream_;
  if (stream == nullptr) return;
  stream->Answer(call->relayed_ ? call->headers_ : call->Head(),
                 /*end=*/false);
  stream->Send(MessagePrefix(message.compressed(), message.size()));
  for (const http2::Slice& piece : message.pieces()) stream->Send(piece);
  if (!call->relayed_) AddStatus(status, &call->trailers_);
  call->headers_.Clear();
  stream->EndWith(std::move(call->trailers_));
  if (call->relayed_) call->ChargeAnswer(call->Unsent());
  call->ForgetMetadata();
  call->WatchAnswer();
}

void IncomingCall::Finish(Ptr call, const grpc::Status& status) {
  http2::Stream* const stream = call->stream_;
  if (stream == nullptr) return;
  // Like the function: all in one block, or trailers after headers.
  if (call->relayed_ && !call->trailers_.empty()) {
    stream->Answer(call->headers_, /*end=*/false);
    stream->EndWith(std::move(call->trailers_));
    call->WatchAnswer();
  } else {
    call->SendStatus(status);
  }
  call->ForgetMetadata();
}

}  // namespace fncache::proxy::transport
