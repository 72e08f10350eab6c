// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/stream.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "http2/connection.h"
#include "http2/recycler.h"
#include "http2/slice.h"
#include "proxy/limits/watchdog.h"
#include "proxy/transport/codec.h"
#include "proxy/transport/message.h"
#include "proxy/transport/metadata.h"
#include "proxy/transport/refusal.h"

namespace fncache::proxy::serving {
namespace {

// The time after its first complete answer in which a call with one request may
// prove to be unary. A graceful stop waits for unary calls only.
constexpr absl::Duration kMaybeUnary = absl::Milliseconds(200);

// Windows of relayed streams begin with the usual size. A window is doubled, up
// to kLargestWindow, when four windows have passed, the reader keeps up, and
// relayed calls use less than half of their limit.
constexpr uint32_t kFirstWindow = http2::kUsualWindow;
constexpr uint32_t kLargestWindow = 1 << 20;

// Bytes. A kept start of a request above this size is dropped while other calls
// wait for capacity.
constexpr size_t kSmallStart = 4 << 10;
// The interval at which waiting bytes are checked for progress.
constexpr absl::Duration kLook = absl::Seconds(1);

void End(const transport::IncomingCall& call, int code, bool upstream,
         const telemetry::FunctionInstruments& instruments) {
  telemetry::CallRecord record;
  record.method = call.method();
  record.outcome = telemetry::Outcome::kBypass;
  record.reason = cache::Reason::kMethod;
  record.code = code;
  record.upstream = upstream;
  record.latency = absl::Now() - call.arrived();
  instruments.End(record);
}

// One direction of a relayed call: bytes from one stream are sent on the other.
// The sender's window opens as they are sent.
class Direction {
 public:
  // `inflight` may be null: then there is no limit.
  explicit Direction(const limits::Budget* inflight) : inflight_(inflight) {}

  // These bytes have arrived, and will be sent on.
  void Take(absl::string_view bytes) {
    messages_.Take(bytes);
    total_ += bytes.size();
    passed_ += bytes.size();
    unconsumed_ += bytes.size();
  }
  // If `to` keeps up with its bytes, `from` may send more.
  void Passed(http2::Stream& from, const http2::Stream& to) {
    if (to.unsent() < kFirstWindow) Release(from);
  }
  // `to` has sent most of its bytes.
  void Release(http2::Stream& from) {
    from.Consume(std::exchange(unconsumed_, 0));
    if (passed_ < 4 * uint64_t{window_} || window_ == kLargestWindow) return;
    passed_ = 0;
    if (!MayGrow()) return;
    window_ *= 2;
    from.GrowWindow(window_);
  }
  uint64_t messages() const { return messages_.begun(); }
  // A message has begun to arrive and is not complete.
  bool amid() const { return messages_.amid(); }
  // The bytes that the call is charged for: those that wait to be sent, or the
  // window that it granted beyond the first one, whichever is more.
  size_t Charged(size_t waits) const {
    return std::max<size_t>(waits, window_ - kFirstWindow);
  }
  // From now on `waits` bytes are watched, which are not sent yet.
  void Watch(int64_t now, size_t waits) {
    watchdog_.Restart(now, total_ - waits);
  }
  // `waits` bytes are not sent yet.
  void Look(int64_t now, size_t waits) {
    if (waits == 0) return Watch(now, waits);
    watchdog_.Saw(now, total_ - waits, waits);
  }
  bool Stalls(int64_t now) const { return watchdog_.Stalls(now); }

 private:
  bool MayGrow() const {
    using Quota = limits::Budget::Quota;
    return inflight_ == nullptr ||
           inflight_->Fits(Quota::kRelayed,
                           inflight_->limit(Quota::kRelayed) / 2 + window_);
  }

  const limits::Budget* const inflight_;
  transport::MessageCounter messages_;
  uint32_t window_ = kFirstWindow;
  uint64_t passed_ = 0;  // bytes since the window got its size
  uint64_t total_ = 0;
  limits::Watchdog watchdog_;  // of the bytes that wait
  // Bytes that arrived, not yet given back to the window.
  size_t unconsumed_ = 0;
};

// The start of a request, which may have to be sent again. Large pieces are
// shared with the stream that sends them. Small pieces are joined, so that they
// take no more memory than their bytes.
class KeptStart {
 public:
  static bool Joins(absl::string_view bytes) { return bytes.size() <= kJoined; }
  void Add(http2::Slice piece) {
    size_ += piece.size();
    pieces_.push_back(std::move(piece));
    open_ = false;
  }
  void AddCopy(absl::string_view bytes) {
    if (!Joins(bytes)) return Add(http2::Slice::Copy(bytes));
    size_ += bytes.size();
    if (open_ && tail_.capacity() - tail_.size() >= bytes.size()) {
      tail_.Append(bytes);
      pieces_.back().Extend(bytes.size());
      return;
    }
    tail_ = http2::Buffer();
    tail_.Reserve(std::clamp(size_, bytes.size(), 4 * kJoined));
    tail_.Append(bytes);
    pieces_.push_back(tail_.Share());
    open_ = true;
  }
  void Clear() { *this = KeptStart(); }
  size_t size() const { return size_; }
  const std::vector<http2::Slice>& pieces() const { return pieces_; }

 private:
  static constexpr size_t kJoined = 1 << 10;
  std::vector<http2::Slice> pieces_;
  http2::Buffer tail_;
  bool open_ = false;  // the last piece ends where `tail_` does
  size_t size_ = 0;
};

// A call whose fields and bytes pass in both directions. It keeps itself alive
// until both streams are closed.
//
// Its bytes are counted at the end of an event-loop iteration: by then most of
// those that arrived in it have been sent.
class ForwardedCall final : public transport::CallTap,
                            public transport::Activity,
                            private transport::Connecting,
                            private http2::StreamUser,
                            private http2::Loop::Ender {
 public:
  ForwardedCall(transport::IncomingCallPtr call, transport::Upstream* upstream,
                const telemetry::FunctionInstruments& instruments)
      : Activity(Kind::kInner),
        Connecting(upstream, call->worker(), call->deadline()),
        call_(std::move(call)),
        instruments_(instruments),
        inflight_(call_->inflight()),
        up_(inflight_),
        down_(inflight_) {}

  ~ForwardedCall();
  // Keeps it alive as `self` from now on.
  void Start(std::shared_ptr<ForwardedCall> self);

 private:
  // The caller's side.
  void OnCallerData(absl::string_view bytes) override;
  void OnCallerEnd() override;
  void OnCallerSent() override;
  void OnCallerGone(uint32_t code) override;
  // The function's.
  void OnAnswer(http2::Stream& stream) override;
  void OnData(http2::Stream& stream, absl::string_view bytes) override;
  void OnTrailers(http2::Stream& stream) override;
  void OnPeerEnd(http2::Stream& stream) override;
  void OnSent(http2::Stream& stream) override;
  void OnClosed(http2::Stream& stream, const http2::StreamEnd& end) override;

  void OnIterationEnd() override;
  void CancelActivity() override { GiveUpFunction(http2::kCancel); }

  void OnConnected(http2::Connection& connection) override;
  void OnUnreachable(const grpc::Status& status) override { Fail(status); }
  // From now on the request is not sent again.
  void ForgetStart();
  // The bytes that wait to be sent to the function.
  size_t UpWaits() const;
  // Whether enough bytes wait, in both directions, to check them later: no
  // event may report that they were sent.
  bool Waits() const {
    return UpWaits() + call_->stream().unsent() >
           transport::IncomingCall::kFree;
  }
  // The bytes that the call keeps: fields, and both directions.
  size_t Weight() const;
  // Counts them, and ends the call if calls keep too much.
  void Weigh();
  // Call it after the bytes that arrived were sent on.
  void WeighSoon() { worker_->loop()->AtIterationEnd(this); }
  void Look();
  void OnDeadline();
  // Ends the call at the caller with a status of fncache's own.
  void Fail(const grpc::Status& status);
  // The same, for a header block that is too large.
  void RefuseMetadata(absl::string_view whose);
  // The same, and drops the bytes that wait to be sent to the caller.
  void Evict(transport::Refusal why, absl::string_view words);
  // Resets the caller's stream, and counts the call with status `code`.
  void CutOff(int code, uint32_t reset);
  void GiveUpFunction(uint32_t code);
  // Counts the call. It comes before the status is sent, so that a caller with
  // a status finds its call counted.
  void Count(int code);
  void UpdateKind();
  void EndSoon();

  std::shared_ptr<ForwardedCall> self_;  // until both streams are closed
  transport::IncomingCallPtr call_;  // null: the caller has its answer, or left
  const telemetry::FunctionInstruments& instruments_;
  http2::Stream* function_ = nullptr;
  limits::Budget* const inflight_;  // may be null
  // The request so far, which may have to be sent again. It is kept while it is
  // complete from its start and the function has not answered. Without a
  // connection all bytes that arrive are kept; windows bound them.
  KeptStart start_;
  bool whole_ = true;  // start_ is all that came
  Direction up_;
  Direction down_;
  size_t answer_fields_ = 0;
  bool again_ = false;  // the request will be sent again
  bool half_closed_ = false;
  bool resent_ = false;
  bool counted_ = false;
  bool over_ = false;
  absl::optional<transport::TimerId> deadline_timer_;
  absl::optional<transport::TimerId> maybe_unary_timer_;
  absl::optional<transport::TimerId> look_timer_;
};

ForwardedCall::~ForwardedCall() {
  worker_->loop()->Forget(this);
  if (deadline_timer_.has_value()) worker_->Cancel(*deadline_timer_);
  if (maybe_unary_timer_.has_value()) worker_->Cancel(*maybe_unary_timer_);
  if (look_timer_.has_value()) worker_->Cancel(*look_timer_);
  if (inflight_ != nullptr) {
    inflight_->Yield(limits::Budget::Quota::kRelayed, this);
  }
  worker_->Leave(this);
}

void ForwardedCall::Start(std::shared_ptr<ForwardedCall> self) {
  self_ = std::move(self);
  worker_->Enter(this);
  call_->SetKind(transport::Activity::Kind::kStream);
  call_->Attach(this);
  if (!call_->deadline().none()) {
    deadline_timer_ =
        worker_->After(call_->deadline().Left(transport::Deadline::Now()),
                       [this] { OnDeadline(); });
  }
  StartConnecting();
}

void ForwardedCall::OnConnected(http2::Connection& connection) {
  if (call_ == nullptr) return;  // it ends with this event-loop iteration
  function_ = connection.Open(
      transport::RequestFields(
          call_->fields(),
          call_->deadline().UpstreamTimeout(transport::Deadline::Now()),
          upstream_->tls()),
      /*end=*/false, this);
  for (const http2::Slice& piece : start_.pieces()) function_->Send(piece);
  up_.Passed(call_->stream(), *function_);
  if (half_closed_) function_->EndWith(call_->stream().trailers());
  UpdateKind();
}

void ForwardedCall::OnCallerData(absl::string_view bytes) {
  up_.Take(bytes);
  if (function_ != nullptr && start_.size() + bytes.size() > kFirstWindow) {
    ForgetStart();
  }
  if (function_ == nullptr) {
    start_.AddCopy(bytes);
    return WeighSoon();
  }
  if (whole_ && !KeptStart::Joins(bytes)) {
    start_.Add(http2::Slice::Copy(bytes));
    function_->Send(start_.pieces().back());
  } else {
    if (whole_) start_.AddCopy(bytes);
    function_->SendCopy(bytes);
  }
  up_.Passed(call_->stream(), *function_);
  WeighSoon();
  UpdateKind();
}

void ForwardedCall::ForgetStart() {
  whole_ = false;
  start_.Clear();
}

size_t ForwardedCall::UpWaits() const {
  return function_ == nullptr ? start_.size() : function_->unsent();
}

size_t ForwardedCall::Weight() const {
  return (function_ == nullptr ? 0 : start_.size()) + up_.Charged(UpWaits()) +
         down_.Charged(call_->stream().unsent()) + answer_fields_;
}

void ForwardedCall::Weigh() {
  if (call_ == nullptr || inflight_ == nullptr) return;
  size_t weight = Weight();
  if (function_ != nullptr && start_.size() > kSmallStart &&
      inflight_->OthersWait(limits::Budget::Quota::kRelayed)) {
    // Other calls wait for capacity.
    ForgetStart();
    weight = Weight();
  }
  if (call_->HoldRelayed(weight) && inflight_->EndRelayed(this)) {
    return Evict(transport::Refusal::kRoom,
                 "the calls that are relayed hold too much of inflight.bytes");
  }
  if (look_timer_.has_value() || !Waits()) return;
  const int64_t now = worker_->loop()->now();
  up_.Watch(now, UpWaits());
  down_.Watch(now, call_->stream().unsent());
  look_timer_ = worker_->After(kLook, [this] { Look(); });
}

// A call that stalls is ended while others wait for capacity.
void ForwardedCall::Look() {
  look_timer_.reset();
  if (call_ == nullptr) return;
  const int64_t now = worker_->loop()->now();
  up_.Look(now, UpWaits());
  down_.Look(now, call_->stream().unsent());
  if ((up_.Stalls(now) || down_.Stalls(now)) &&
      inflight_->OthersWait(limits::Budget::Quota::kRelayed)) {
    return Evict(transport::Refusal::kStalled,
                 "the call stood still while others wait for inflight.bytes");
  }
  // Some bytes may have been sent without an event.
  call_->HoldRelayed(Weight());
  if (!Waits()) return;
  look_timer_ = worker_->After(kLook, [this] { Look(); });
}

void ForwardedCall::OnCallerEnd() {
  half_closed_ = true;
  if (call_->stream().oversized()) {
    return RefuseMetadata("the request's trailers");
  }
  if (function_ != nullptr) function_->EndWith(call_->stream().trailers());
  WeighSoon();
  UpdateKind();
}

void ForwardedCall::OnCallerSent() {
  if (function_ != nullptr) down_.Release(*function_);
  WeighSoon();
}

void ForwardedCall::OnCallerGone(uint32_t code) {
  const bool late = call_->deadline().IsOver(transport::Deadline::Now());
  Count(late ? grpc::StatusCode::DEADLINE_EXCEEDED
             : grpc::StatusCode::CANCELLED);
  call_ = nullptr;
  GiveUpFunction(code);
}

void ForwardedCall::OnAnswer(http2::Stream& stream) {
  ForgetStart();
  answer_fields_ = transport::WeightOf(stream.fields());
  if (stream.oversized()) return RefuseMetadata("the function's headers");
  // OnPeerEnd passes on an answer that ends here.
  if (call_ != nullptr && !stream.peer_ended()) {
    call_->stream().Answer(stream.fields(), /*end=*/false);
  }
  WeighSoon();
}

void ForwardedCall::OnData(http2::Stream& stream, absl::string_view bytes) {
  if (call_ == nullptr) return;
  http2::Stream& caller = call_->stream();
  down_.Take(bytes);
  caller.SendCopy(bytes);
  down_.Passed(stream, caller);
  WeighSoon();
  UpdateKind();
}

void ForwardedCall::OnTrailers(http2::Stream& stream) {
  if (stream.oversized()) RefuseMetadata("the function's trailers");
}

void ForwardedCall::OnPeerEnd(http2::Stream& stream) {
  if (call_ == nullptr) return;
  http2::Stream& caller = call_->stream();
  const bool trailers = !stream.trailers().empty();
  const grpc::Status status =
      transport::ReadStatus(trailers ? stream.trailers() : stream.fields(),
                            stream.fields().Find(":status"));
  Count(status.error_code());
  if (caller.answered()) {
    caller.EndWith(stream.trailers());
  } else {
    caller.Answer(stream.fields(), /*end=*/true);
  }
  call_ = nullptr;
  // The function may never read the rest of the request, or open the window for
  // its end.
  const bool untaken = function_ != nullptr && !function_->end_sent();
  if (!half_closed_ || untaken) GiveUpFunction(http2::kNoError);
}

void ForwardedCall::OnSent(http2::Stream& /*stream*/) {
  if (call_ == nullptr) return;
  up_.Release(call_->stream());
  WeighSoon();
}

void ForwardedCall::OnClosed(http2::Stream& /*stream*/,
                             const http2::StreamEnd& end) {
  function_ = nullptr;
  if (call_ == nullptr) return EndSoon();
  if (end.unprocessed && !resent_ && whole_) {
    resent_ = true;
    again_ = true;
    // Not from here: the connection calls this while it changes its state.
    return worker_->loop()->AtIterationEnd(this);
  }
  http2::Stream& caller = call_->stream();
  const grpc::Status status = transport::StatusOfEnd(end, resent_);
  using Kind = http2::StreamEnd::Kind;
  if (end.kind == Kind::kLost ||
      (end.kind != Kind::kPeerReset && caller.answered())) {
    return Fail(status);
  }
  Count(status.error_code());
  caller.ResetWhenSent(end.code);
  call_ = nullptr;
  EndSoon();
}

void ForwardedCall::Fail(const grpc::Status& status) {
  if (call_ == nullptr) return;
  Count(status.error_code());
  http2::Stream& caller = call_->stream();
  if (caller.answered()) {
    http2::Fields trailers;
    transport::AddStatus(status, &trailers);
    caller.EndWith(std::move(trailers));
    call_ = nullptr;
  } else {
    transport::IncomingCall::Finish(std::move(call_), status);
  }
  GiveUpFunction(http2::kCancel);
}

void ForwardedCall::RefuseMetadata(absl::string_view whose) {
  if (call_ == nullptr) return;
  const grpc::Status status(
      grpc::StatusCode::RESOURCE_EXHAUSTED,
      absl::StrCat(whose, " are larger than max_metadata_bytes"));
  call_->TellRefusal(transport::Refusal::kMetadata, status);
  Fail(status);
}

void ForwardedCall::Evict(transport::Refusal why, absl::string_view words) {
  const grpc::Status status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                            std::string(words));
  call_->TellRefusal(why, status);
  if (!call_->stream().answered()) return Fail(status);
  CutOff(status.error_code(), http2::kEnhanceYourCalm);
}

void ForwardedCall::CutOff(int code, uint32_t reset) {
  Count(code);
  call_->stream().Reset(reset);
  call_ = nullptr;
  GiveUpFunction(http2::kCancel);
}

void ForwardedCall::OnDeadline() {
  deadline_timer_.reset();
  // While the call waits for a connection, OnUnreachable reports the failure.
  if (function_ == nullptr) return;
  if (call_ != nullptr && call_->stream().answered() && down_.amid()) {
    // The caller would not read a status after an incomplete message.
    return CutOff(grpc::StatusCode::DEADLINE_EXCEEDED, http2::kCancel);
  }
  Fail(grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"));
}

void ForwardedCall::GiveUpFunction(uint32_t code) {
  if (function_ != nullptr) return function_->Reset(code);
  if (call_ == nullptr) return EndSoon();
  Fail(grpc::Status(grpc::StatusCode::CANCELLED, "Cancelled"));
}

void ForwardedCall::EndSoon() {
  over_ = true;
  worker_->loop()->AtIterationEnd(this);
}

void ForwardedCall::OnIterationEnd() {
  if (over_) {
    const std::shared_ptr<ForwardedCall> self = std::move(self_);
    StopConnecting();
    return;
  }
  if (!again_) return Weigh();
  again_ = false;
  if (call_ != nullptr) return StartConnecting();
  EndSoon();
}

void ForwardedCall::Count(int code) {
  if (std::exchange(counted_, true)) return;
  End(*call_, code, /*upstream=*/true, instruments_);
}

// A graceful stop waits for unary calls only. A call proves to be unary in
// steps: one request, which may take long to arrive, the half-close, one
// answer, and the status.
void ForwardedCall::UpdateKind() {
  if (call_ == nullptr) return;
  if ((half_closed_ || up_.amid()) && up_.messages() == 1 &&
      down_.messages() == 0) {
    if (maybe_unary_timer_.has_value()) worker_->Cancel(*maybe_unary_timer_);
    maybe_unary_timer_.reset();
    call_->SetKind(transport::Activity::Kind::kUnary);
  } else if (down_.messages() > 1) {
    call_->SetKind(transport::Activity::Kind::kStream);
  } else if (call_->kind() == transport::Activity::Kind::kUnary &&
             !down_.amid() && !maybe_unary_timer_.has_value()) {
    maybe_unary_timer_ = worker_->After(kMaybeUnary, [this] {
      maybe_unary_timer_.reset();
      if (call_ != nullptr) {
        call_->SetKind(transport::Activity::Kind::kStream);
      }
    });
  }
}

}  // namespace

void ForwardStream(transport::IncomingCallPtr call,
                   transport::Upstream* upstream,
                   const telemetry::FunctionInstruments& instruments) {
  instruments.Begin(call->method());
  if (!call->HoldRelayed()) {
    const grpc::Status status(
        grpc::StatusCode::RESOURCE_EXHAUSTED,
        "relayed calls use their quota of inflight.bytes");
    call->TellRefusal(transport::Refusal::kRoom, status);
    End(*call, status.error_code(), /*upstream=*/false, instruments);
    return transport::IncomingCall::Finish(std::move(call), status);
  }
  const auto relayed = http2::MakeRecycled<ForwardedCall>(
      std::move(call), upstream, instruments);
  relayed->Start(relayed);
}

}  // namespace fncache::proxy::serving
