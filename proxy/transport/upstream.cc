// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/upstream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "proxy/transport/codec.h"
#include "proxy/transport/metadata.h"
#include "proxy/transport/tls.h"

namespace fncache::proxy::transport {
namespace {

// An impatient call waits 250 ms before it checks whether connecting fails. A
// reconnect after a lost connection takes less.
constexpr absl::Duration kImpatience = absl::Milliseconds(250);
// Interval of the poll for memory for the next bytes of an answer.
constexpr absl::Duration kLookAgain = absl::Milliseconds(20);
// Interval of the look whether the function has read the request, once it has
// sent headers.
constexpr absl::Duration kLookAtRequest = absl::Seconds(1);
// Time limit of one attempt to connect, TLS and settings included.
constexpr absl::Duration kAttempt = absl::Seconds(5);
// A function that sends nothing while calls wait gets a PING after 10 s. Go's
// servers accept no more than this (grpc-go, keepalive.EnforcementPolicy).
constexpr absl::Duration kPingAfter = absl::Seconds(10);

// HTTP/2's initial window. With 65,536 haproxy 2.6 loses the trailers of some
// answers.
constexpr uint32_t kWindow = 65'535;
// The largest frame to send, if the function accepts it. gRPC's C library does.
constexpr uint32_t kLargestFrame = 64 << 10;

constexpr char kNoneEnded[] =
    "calls to functions hold inflight.bytes, and none has ended for 5s";

constexpr char kNoMemoryForFields[] =
    "other calls use inflight.bytes: no quota is left for the function's "
    "metadata";

// Keeps a worker's client until the worker stops.
class KeptClient final : public Worker::Attachment {
 public:
  KeptClient(http2::Loop* loop, http2::Target target,
             const http2::ClientOptions* options)
      : client(loop, std::move(target), options) {}
  http2::Client client;
};

grpc::Status TooLateAt(absl::string_view target, absl::string_view why) {
  return grpc::Status(
      grpc::StatusCode::DEADLINE_EXCEEDED,
      absl::StrCat("Deadline Exceeded while waiting for a connection to the "
                   "function at ",
                   target, why));
}

}  // namespace

grpc::StatusCode StatusOfReset(uint32_t code) {
  // "HTTP2 Transport Mapping" in gRPC's PROTOCOL-HTTP2.md.
  switch (code) {
    case http2::kRefusedStream:
      return grpc::StatusCode::UNAVAILABLE;
    case http2::kCancel:
      return grpc::StatusCode::CANCELLED;
    case http2::kEnhanceYourCalm:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case http2::kInadequateSecurity:
      return grpc::StatusCode::PERMISSION_DENIED;
    default:
      return grpc::StatusCode::INTERNAL;
  }
}

grpc::Status StatusOfEnd(const http2::StreamEnd& end, bool resent) {
  if (end.kind == http2::StreamEnd::Kind::kLost) {
    return grpc::Status(
        grpc::StatusCode::UNAVAILABLE,
        absl::StrCat("the connection to the function was lost: ", end.why));
  }
  if (end.unprocessed) {
    const bool refused =
        !end.went_away && end.kind == http2::StreamEnd::Kind::kPeerReset;
    return grpc::Status(StatusOfReset(end.code),
                        absl::StrCat("the function did not take the call",
                                     resent ? ", which was sent twice: " : ": ",
                                     refused ? "it refused it (REFUSED_STREAM)"
                                             : "it went away (GOAWAY)"));
  }
  return grpc::Status(StatusOfReset(end.code),
                      absl::StrCat(end.kind == http2::StreamEnd::Kind::kReset
                                       ? "the function's answer breaks HTTP/2: "
                                       : "the function reset the call: ",
                                   http2::ErrorCodeName(end.code)));
}

void Connecting::StopTimer() {
  if (timer_.has_value()) worker_->Cancel(*timer_);
  timer_.reset();
}

void Connecting::StopConnecting() {
  // Without a timer it does not wait, and the worker's client may not exist.
  if (!timer_.has_value()) return;
  StopTimer();
  upstream_->ClientOf(worker_).Forget(this);
}

void Connecting::StartConnecting() {
  StopTimer();
  http2::Client& client = upstream_->ClientOf(worker_);
  if (http2::Connection* const connection = client.Take()) {
    return OnConnected(*connection);
  }
  const absl::Time now = Deadline::Now();
  WaitUntil(now + (deadline_.none() ? upstream_->options().connect_limit
                                    : deadline_.LeftToConnect(now)));
  client.Wait(this);
}

void Connecting::WaitUntil(absl::Time limit) {
  absl::Duration wait = limit - Deadline::Now();
  if (impatient_) wait = std::min(wait, kImpatience);
  ArmTimer(wait, [this, limit] { OnWaited(limit); });
}

void Connecting::OnConnection(http2::Connection& connection) {
  StopTimer();
  OnConnected(connection);
}

void Connecting::OnWaited(absl::Time limit) {
  http2::Client& client = upstream_->ClientOf(worker_);
  const bool over = Deadline::Now() >= limit;
  if (!over && client.why().empty()) return WaitUntil(limit);
  client.Forget(this);
  const std::string why = absl::StrCat(": ", client.WhyWaiting());
  if (!over) {
    return OnUnreachable(
        grpc::Status(grpc::StatusCode::UNAVAILABLE,
                     absl::StrCat("no connection to the function at ",
                                  upstream_->options().target, why)));
  }
  if (!deadline_.none()) {
    return OnUnreachable(TooLateAt(upstream_->options().target, why));
  }
  OnUnreachable(grpc::Status(
      grpc::StatusCode::UNAVAILABLE,
      absl::StrCat("no connection to the function within ",
                   absl::FormatDuration(upstream_->options().connect_limit),
                   ", at ", upstream_->options().target, why)));
}

UnaryCall::UnaryCall(Upstream* upstream, const UnaryRequest& request)
    : Activity(Kind::kInner),
      Connecting(upstream, request.worker, request.deadline, request.impatient),
      account_(request.account),
      held_(upstream->options().inflight, limits::Budget::Quota::kRunning,
            worker_->index(), account_.get()),
      collector_(upstream->options().max_response_bytes),
      started_(absl::Now()) {}

UnaryCall::~UnaryCall() { worker_->loop()->Forget(this); }

void UnaryCall::Cancel() {
  worker_->Post([self = shared_from_this()] { self->CancelNow(); });
}

void UnaryCall::CancelNow() {
  if (deadline().IsOver(Deadline::Now())) return OnDeadline();
  Fail(grpc::Status(grpc::StatusCode::CANCELLED, "Cancelled"));
}

std::shared_ptr<UnaryCall> UnaryCall::Start(Upstream* upstream,
                                            const UnaryRequest& request,
                                            Done done) {
  std::shared_ptr<UnaryCall> call(new UnaryCall(upstream, request));
  call->self_ = call;
  call->done_ = std::move(done);
  call->Begin(request);
  return call;
}

void UnaryCall::Begin(const UnaryRequest& request) {
  worker_->Enter(this);
  request_fields_ =
      RequestFields(request.fields, deadline().UpstreamTimeout(Deadline::Now()),
                    upstream_->tls());
  request_ = request.message;
  limits::Budget* const inflight = upstream_->options().inflight;
  if (inflight == nullptr) {
    stage_ = Stage::kConnecting;
    return StartConnecting();
  }
  switch (inflight->Admit(this, worker_->loop(), worker_->index(),
                          request_.size())) {
    case limits::Budget::Admission::kAdmitted:
      return OnAdmitted();
    case limits::Budget::Admission::kWaits:
      if (request.quota == limits::Budget::Quota::kReading) {
        inflight->CountRefused();
        return FailForMemory(Refusal::kRoom, kOverCap);
      }
      held_.Move(request.quota);
      held_.Set(request_.size());
      return WatchWait();
    case limits::Budget::Admission::kRefused:
      return FailForMemory(Refusal::kRoom, kNoneEnded);
  }
}

void UnaryCall::WatchWait() {
  absl::Duration wait = deadline().Left(Deadline::Now());
  if (stage_ == Stage::kWaits) {
    wait = std::min(wait, limits::Budget::kStuck / 5);
  }
  if (unread_ > 0) wait = std::min(wait, kLookAgain);
  if (!collector_.empty()) wait = std::min(wait, limits::Watchdog::kPatience);
  if (!headers_.empty() && request_.valid() && !request_.keep()) {
    wait = std::min(wait, kLookAtRequest);
  }
  if (wait == absl::InfiniteDuration()) return StopTimer();
  ArmTimer(wait, [this] { OnTimer(); });
}

void UnaryCall::OnTimer() {
  if (deadline().Left(Deadline::Now()) == absl::ZeroDuration()) {
    return OnDeadline();
  }
  if (stage_ == Stage::kWaits && upstream_->options().inflight->GivesUp(this)) {
    return FailForMemory(Refusal::kRoom, kNoneEnded);
  }
  if (Stalls()) {
    return FailForMemory(Refusal::kStalled,
                         "the function's answer stopped coming while others "
                         "wait for inflight.bytes");
  }
  if (!headers_.empty()) Weigh();
  ReadOn(0);
  WatchWait();
}

bool UnaryCall::Stalls() {
  const int64_t now = worker_->loop()->now();
  // Without memory for the next bytes, it cannot continue.
  if (unread_ > 0) watchdog_.Restart(now, collector_.held());
  const limits::Budget* const budget = upstream_->options().inflight;
  return stream_ != nullptr && !collector_.empty() && watchdog_.Stalls(now) &&
         budget != nullptr &&
         budget->OthersWait(limits::Budget::Quota::kRunning);
}

// A request that the function has not read stays in memory, and one that the
// caller needs.
void UnaryCall::Weigh() {
  if (stream_->unsent() == 0 && !request_.keep()) request_.Clear();
  held_.Set(collector_.held() + WeightOf(headers_) + request_.size());
}

void UnaryCall::AdoptRequest() {
  held_.Set(0);
  held_.Move(limits::Budget::Quota::kRunning);
  held_.Adopt(request_.size());
}

void UnaryCall::OnAdmitted() {
  AdoptRequest();
  stage_ = Stage::kConnecting;
  StartConnecting();
}

void UnaryCall::OnConnected(http2::Connection& connection) {
  stage_ =
      stage_ == Stage::kConnecting ? Stage::kRunning : Stage::kRunningAgain;
  WatchWait();
  stream_ = connection.Open(request_fields_, /*end=*/false, this);
  stream_->Send(MessagePrefix(request_.compressed(), request_.size()));
  for (const http2::Slice& piece : request_.pieces()) stream_->Send(piece);
  stream_->End();
}

void UnaryCall::OnDeadline() {
  Fail(grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"));
}

void UnaryCall::OnAnswer(http2::Stream& stream) {
  headers_ = stream.TakeFields();
  Weigh();
  if (request_.valid()) WatchWait();
  watchdog_.Restart(worker_->loop()->now(), 0);
  CheckFields(stream, "headers");
}

// Flow control does not limit metadata, so its size is checked on arrival.
void UnaryCall::CheckFields(const http2::Stream& stream, const char* what) {
  if (stream.oversized()) {
    return FailForMemory(Refusal::kMetadata,
                         absl::StrCat("the function's ", what,
                                      " are larger than max_metadata_bytes"));
  }
  limits::Budget* const inflight = upstream_->options().inflight;
  if (inflight == nullptr || WeightOf(headers_) + WeightOf(trailers_) == 0 ||
      inflight->Fits(limits::Budget::Quota::kRunning, 0)) {
    return;
  }
  inflight->CountRefused();
  FailForMemory(Refusal::kRoom, kNoMemoryForFields);
}

void UnaryCall::OnData(http2::Stream& stream, absl::string_view bytes) {
  const bool begins = collector_.empty();
  const MessageCollector::State state = collector_.Take(bytes);
  Weigh();
  watchdog_.Saw(worker_->loop()->now(), collector_.held(), collector_.held());
  if (headers_.Find(":status") != "200" ||
      !IsGrpc(headers_.Find("content-type"))) {
    // Most likely the error page of another server. But bytes that are framed
    // as a message are forwarded unchanged.
    if (!ReadOn(bytes.size()) || begins) WatchWait();
    return;
  }
  switch (state) {
    case MessageCollector::State::kNone:
    case MessageCollector::State::kWhole:
      if (!ReadOn(bytes.size()) || begins) WatchWait();
      return;
    case MessageCollector::State::kTooLarge:
      return FailForMemory(
          Refusal::kSize,
          absl::StrCat(
              "the function's answer is larger than max_response_bytes, ",
              collector_.limit()));
    case MessageCollector::State::kSecond:
      return Fail(grpc::Status(grpc::StatusCode::INTERNAL,
                               "the function answered with two messages"));
    case MessageCollector::State::kBroken:
      return Fail(
          grpc::Status(grpc::StatusCode::INTERNAL,
                       "the function's answer is not framed as gRPC's are"));
  }
}

bool UnaryCall::ReadOn(size_t more) {
  const bool waited = unread_ > 0;
  unread_ += more;
  if (stream_ == nullptr || unread_ == 0) return true;
  limits::Budget* const inflight = upstream_->options().inflight;
  const bool fits = inflight == nullptr ||
                    inflight->Fits(limits::Budget::Quota::kRunning, 0) ||
                    inflight->GoBeyond(limits::Budget::Quota::kRunning, this);
  if (fits) stream_->Consume(std::exchange(unread_, 0));
  if (waited == fits) inflight->CountWaiting(fits ? -1 : 1);
  return fits;
}

void UnaryCall::OnTrailers(http2::Stream& stream) {
  trailers_ = stream.trailers();
  CheckFields(stream, "trailers");
}

void UnaryCall::OnPeerEnd(http2::Stream& /*stream*/) {
  if (over()) return;
  // The status is in the headers if nothing follows them, otherwise in the
  // trailers.
  const bool alone = trailers_.empty() && collector_.empty();
  const http2::Fields& last = alone ? headers_ : trailers_;
  status_ = ReadStatus(last, headers_.Find(":status"));
  // Without a status this is not an answer of gRPC, and must not pass for one.
  answered_ = last.Has("grpc-status");
  if (collector_.state() == MessageCollector::State::kWhole) {
    // A caller may read an ambiguous status as OK, and then needs the message.
    if (status_.ok() || (answered_ && !SaysOneStatus(trailers_))) {
      response_ = collector_.Release();
    }
  } else if (status_.ok() && !collector_.empty()) {
    answered_ = false;
    status_ =
        grpc::Status(grpc::StatusCode::INTERNAL,
                     collector_.state() == MessageCollector::State::kNone
                         ? "the function's answer was cut off"
                         : "the function's answer is not framed as gRPC's are");
  }
  Complete();
}

void UnaryCall::OnClosed(http2::Stream& /*stream*/,
                         const http2::StreamEnd& end) {
  stream_ = nullptr;
  if (over()) return;
  if (end.unprocessed && stage_ == Stage::kRunning && headers_.empty()) {
    stage_ = Stage::kConnectingAgain;
    // Resend later: the connection is busy in this callback.
    return worker_->loop()->AtIterationEnd(this);
  }
  Fail(StatusOfEnd(end, stage_ == Stage::kRunningAgain));
}

absl::string_view UnaryCall::doubt() const {
  return DoubtOfOk(headers_, trailers_);
}

void UnaryCall::OnMessageChanged() {
  if (!headers_.Has("content-length")) return;
  http2::Fields others;
  for (const http2::Field field : headers_) {
    if (field.name != "content-length") others.Add(field);
  }
  headers_ = std::move(others);
}

void UnaryCall::Fail(const grpc::Status& status) {
  if (over()) return;
  status_ = status;
  answered_ = false;
  Complete();
}

void UnaryCall::FailForMemory(Refusal why, const std::string& words) {
  refused_ = why;
  Fail(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, words));
}

void UnaryCall::Refuse(Refusal why, const grpc::Status& status) {
  refused_ = why;
  status_ = status;
  answered_ = false;
  response_.Clear();
  held_.Set(0);
}

void UnaryCall::Complete() {
  if (connecting()) {
    StopConnecting();
  } else {
    StopTimer();
  }
  stage_ = began() ? Stage::kOver : Stage::kNotBegun;
  latency_ = absl::Now() - started_;
  if (limits::Budget* const inflight = upstream_->options().inflight) {
    if (inflight->Forget(this)) AdoptRequest();
    inflight->Yield(limits::Budget::Quota::kRunning, this);
    if (std::exchange(unread_, 0) > 0) inflight->CountWaiting(-1);
  }
  if (stream_ != nullptr) {
    stream_->set_user(nullptr);
    // A function may answer before it has read the whole request, and may never
    // read the rest.
    if (!stream_->peer_ended() || !stream_->ended() || stream_->unsent() > 0) {
      stream_->Reset(status_.ok() ? http2::kNoError : http2::kCancel);
    }
    stream_ = nullptr;
  }
  request_.Clear();
  held_.Set(0);
  held_.Move(limits::Budget::Quota::kRunning);
  held_.Set(response_.size() + WeightOf(headers_));
  // `done` may start calls, which may not be possible in this callback.
  worker_->loop()->AtIterationEnd(this);
}

void UnaryCall::OnIterationEnd() {
  if (!over()) return StartConnecting();
  const std::shared_ptr<UnaryCall> self = std::move(self_);
  worker_->Leave(this);
  Done done = std::move(done_);
  done(*this);
}

Upstream::Upstream(UpstreamOptions options, ClientTls* tls, int workers)
    : options_(std::move(options)), tls_(tls), slots_(workers) {
  auto target = http2::ParseTarget(options_.target);
  // The settings have accepted the target. A target that they did not check
  // becomes a name without addresses.
  if (target.ok()) {
    target_ = *std::move(target);
  } else {
    target_.host = options_.target;
    target_.port = "0";
  }
  client_options_.connection.server = false;
  client_options_.connection.largest_frame = kLargestFrame;
  client_options_.connection.stream_window = kWindow;
  client_options_.connection.max_field_bytes = options_.max_metadata_bytes;
  client_options_.connection.handshake_timeout = kAttempt;
  client_options_.connection.ping_after = kPingAfter;
  if (tls_ != nullptr) {
    const std::string name =
        options_.server_name.empty() ? target_.name : options_.server_name;
    client_options_.new_ssl = [this, name] { return tls_->NewSsl(name); };
    client_options_.connection.check_peer = [name](SSL* ssl) {
      return CheckFunctionName(ssl, name);
    };
    client_options_.connection.explain_handshake = &ExplainHandshake;
  }
  for (Slot& slot : slots_) {
    auto own = std::make_unique<http2::ClientOptions>(client_options_);
    own->changed = [this, slot = &slot](bool reachable,
                                        const std::string& why) {
      SetFailing(slot, !reachable, why);
    };
    own->lost = options_.lost;
    own->connected = [this](int change) {
      connected_.fetch_add(change, std::memory_order_relaxed);
    };
    slot_options_.push_back(std::move(own));
  }
}

Upstream::~Upstream() = default;

void Upstream::SetLimits(size_t max_response_bytes,
                         uint32_t max_metadata_bytes) {
  options_.max_response_bytes = max_response_bytes;
  for (const auto& options : slot_options_) {
    options->connection.max_field_bytes = max_metadata_bytes;
  }
}

http2::Client& Upstream::ClientOf(Worker* worker) {
  const auto index = static_cast<size_t>(worker->index());
  Slot& slot = slots_[index];
  if (slot.client == nullptr) {
    auto kept = std::make_unique<KeptClient>(worker->loop(), target_,
                                             slot_options_[index].get());
    slot.client = &kept->client;
    slot.tls_generation = tls_ == nullptr ? 0 : tls_->generation();
    worker->Attach(std::move(kept));
  }
  if (tls_ != nullptr && slot.tls_generation != tls_->generation()) {
    slot.tls_generation = tls_->generation();
    slot.client->Renew();
  }
  return *slot.client;
}

grpc::Status Upstream::TooLate(Worker* worker, bool connecting) {
  const http2::Client& client = ClientOf(worker);
  if (connecting) {
    return TooLateAt(options_.target, absl::StrCat(": ", client.WhyWaiting()));
  }
  std::string why = client.ready() == 0 ? client.why() : "";
  // Another worker may know the reason: the awaited call may be on it.
  if (why.empty() && connected() == 0) {
    MutexLock lock(&mutex_);
    why = why_;
  }
  if (why.empty()) {
    return grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED,
                        "Deadline Exceeded");
  }
  return TooLateAt(options_.target, absl::StrCat(": ", why));
}

void Upstream::SetFailing(Slot* slot, bool failing, absl::string_view why) {
  const int change = failing - slot->failing;
  slot->failing = failing;
  MutexLock lock(&mutex_);
  failing_ += change;
  why_ = std::string(failing ? why : "");
  if (failing) {
    const bool news = IsNews(why);
    if (options_.unreachable != nullptr) options_.unreachable(why, news);
  } else if (change != 0 && failing_ == 0) {
    reasons_.clear();
    if (options_.reachable != nullptr) options_.reachable();
  }
}

// `why` is "ADDRESS: reason". Only the reason counts, because the client tries
// its addresses in round robin.
bool Upstream::IsNews(absl::string_view why) {
  constexpr size_t kMostReasons = 8;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(why, absl::MaxSplits(": ", 1));
  const absl::string_view reason =
      parts.second.empty() ? parts.first : parts.second;
  if (reasons_.size() >= kMostReasons ||
      std::find(reasons_.begin(), reasons_.end(), reason) != reasons_.end()) {
    return false;
  }
  reasons_.emplace_back(reason);
  return true;
}

std::shared_ptr<UnaryCall> Upstream::StartUnary(const UnaryRequest& request,
                                                UnaryCall::Done done) {
  return UnaryCall::Start(this, request, std::move(done));
}

}  // namespace fncache::proxy::transport
