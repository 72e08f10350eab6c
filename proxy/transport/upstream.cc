// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/upstream.h"

#include <climits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "proxy/transport/channel_arguments.h"
#include "proxy/transport/metadata.h"
#include "proxy/transport/tls.h"

namespace fncache::proxy::transport {
namespace {

// How often a channel that cannot connect is told to try everything again:
// the resolver would otherwise wait up to two minutes between attempts.
constexpr absl::Duration kResolveAgain = absl::Seconds(5);

// A call that is on no connection yet calls its channel's target its peer. To
// tell that from an address, a target that is one itself is spelled another
// way: with its last character percent-encoded.
std::string ChannelTarget(const std::string& target) {
  for (const char* scheme : {"ipv4:", "ipv6:", "unix:", "unix-abstract:"}) {
    if (!absl::StartsWith(target, scheme) ||
        target.size() == std::string(scheme).size()) {
      continue;
    }
    // "a%62": its last three characters are one already.
    if (target.size() > 3 && target[target.size() - 3] == '%') return target;
    return absl::StrFormat("%s%%%02X", target.substr(0, target.size() - 1),
                           static_cast<unsigned char>(target.back()));
  }
  return target;
}

grpc::ChannelArguments Arguments(const UpstreamOptions& options) {
  grpc::ChannelArguments args;
  args.SetUserAgentPrefix("fncache");
  args.SetLoadBalancingPolicyName("round_robin");
  args.SetMaxReceiveMessageSize(-1);
  args.SetMaxSendMessageSize(-1);
  args.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMetadataLimit);
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Calls that no function saw are not repeated: what gRPC does that with ends
  // the process where a call's end carries no status, as with a web server that
  // is no function.
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  args.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  // Despite its name this bounds one attempt to connect.
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  args.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);
  // Connections of its own for each worker.
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (!options.server_name.empty()) {
    args.SetSslTargetNameOverride(options.server_name);
  }
  return args;
}

}  // namespace

ConnectLimit::ConnectLimit(Worker* worker, grpc::ClientContext* context,
                           const std::string& channel_target,
                           absl::Duration limit)
    : worker_(worker), limit_(limit), armed_(true) {
  timer_ = worker_->After(limit, [this, context, &channel_target] {
    armed_ = false;
    const std::string peer = context->peer();
    if (peer != channel_target && !absl::EndsWith(peer, channel_target) &&
        peer != "unknown" && !peer.empty()) {
      return;  // it is on a connection
    }
    exceeded_ = true;
    context->TryCancel();
  });
}

ConnectLimit::~ConnectLimit() {
  if (armed_) worker_->Cancel(timer_);
}

grpc::Status ConnectLimit::ToStatus() const {
  return grpc::Status(grpc::StatusCode::UNAVAILABLE,
                      absl::StrCat("no connection to the function within ",
                                   absl::FormatDuration(limit_)));
}

UnaryCall::~UnaryCall() = default;

void UnaryCall::OnFinished(bool ok) {
  latency_ = absl::Now() - started_;
  if (limit_ != nullptr && limit_->exceeded()) status_ = limit_->ToStatus();
  limit_ = nullptr;
  worker_->Leave(this);
  // `done` may let go of the last other reference.
  const std::shared_ptr<UnaryCall> self = std::move(self_);
  Done done = std::move(done_);
  done(*this);
}

struct Upstream::Slot {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<grpc::GenericStub> stub;
  uint64_t tls_generation = 0;
  absl::Time checked = absl::InfinitePast();
  bool checking = false;
  bool failing = false;  // it could not connect when that was last looked at
};

Upstream::Upstream(UpstreamOptions options, ClientTls* tls, int workers)
    : options_(std::move(options)),
      channel_target_(ChannelTarget(options_.target)),
      tls_(tls) {
  for (int i = 0; i < workers; ++i) slots_.push_back(std::make_unique<Slot>());
}

Upstream::~Upstream() = default;

Upstream::Slot& Upstream::SlotOf(Worker* worker) {
  Slot& slot = *slots_[worker->index()];
  const uint64_t generation = tls_ == nullptr ? 0 : tls_->generation();
  if (slot.channel == nullptr || slot.tls_generation != generation) {
    // Calls on an older channel keep it until they end.
    slot.tls_generation = generation;
    slot.channel = grpc::CreateCustomChannel(
        channel_target_,
        tls_ == nullptr ? grpc::InsecureChannelCredentials()
                        : tls_->Credentials(),
        Arguments(options_));
    slot.stub = std::make_unique<grpc::GenericStub>(slot.channel);
  }
  if (!slot.checking && slot.channel->GetState(false) != GRPC_CHANNEL_READY) {
    slot.checking = true;
    ScheduleCheck(worker, &slot);
  }
  return slot;
}

void Upstream::ScheduleCheck(Worker* worker, Slot* slot) {
  worker->After(kResolveAgain, [this, worker, slot] {
    switch (slot->channel->GetState(false)) {
      case GRPC_CHANNEL_TRANSIENT_FAILURE:
        AskWhy(worker, slot);
        grpc::experimental::ChannelResetConnectionBackoff(slot->channel.get());
        break;
      case GRPC_CHANNEL_CONNECTING:
        break;
      default:
        SetFailing(slot, false);
        slot->checking = false;
        return;
    }
    ScheduleCheck(worker, slot);
  });
}

// gRPC tells the reason only to a call, and only to one that does not wait.
void Upstream::AskWhy(Worker* worker, Slot* slot) {
  if (slot->failing || options_.unreachable == nullptr) return;
  std::shared_ptr<UnaryCall> call(new UnaryCall(worker));
  call->self_ = call;
  call->done_ = [this, slot](UnaryCall& asked) {
    // Any other status means that the channel could connect after all.
    if (asked.status().error_code() != grpc::StatusCode::UNAVAILABLE) return;
    SetFailing(slot, true, asked.status().error_message());
  };
  call->context_.set_deadline(absl::ToChronoTime(absl::Now() + kResolveAgain));
  // Does nothing to a function that is asked it by an unlikely accident.
  call->reader_ = slot->stub->PrepareUnaryCall(
      &call->context_, "/grpc.health.v1.Health/Check", grpc::ByteBuffer(),
      worker->queue());
  worker->Enter(call.get());
  call->reader_->StartCall();
  call->reader_->Finish(&call->response_, &call->status_,
                        Tag(&call->finished_event_));
}

void Upstream::SetFailing(Slot* slot, bool failing, absl::string_view why) {
  if (slot->failing == failing) return;
  slot->failing = failing;
  MutexLock lock(&mutex_);
  failing_ += failing ? 1 : -1;
  if (failing && failing_ == 1 && options_.unreachable != nullptr) {
    options_.unreachable(why);
  }
  if (!failing && failing_ == 0 && options_.reachable != nullptr) {
    options_.reachable();
  }
}

grpc::GenericStub* Upstream::Stub(Worker* worker) {
  return SlotOf(worker).stub.get();
}

void Upstream::Prepare(const IncomingCall& caller, absl::Time deadline,
                       grpc::ClientContext* context) const {
  CopyRequest(caller, context);
  context->set_wait_for_ready(true);
  if (deadline != absl::InfiniteFuture()) {
    context->set_deadline(absl::ToChronoTime(deadline));
  }
}

std::unique_ptr<ConnectLimit> Upstream::LimitConnecting(
    Worker* worker, absl::Time deadline, grpc::ClientContext* context) const {
  if (deadline != absl::InfiniteFuture()) return nullptr;
  return std::make_unique<ConnectLimit>(worker, context, channel_target_,
                                        options_.connect_limit);
}

std::shared_ptr<UnaryCall> Upstream::StartUnary(const IncomingCall& caller,
                                                const grpc::ByteBuffer& request,
                                                absl::Time deadline,
                                                UnaryCall::Done done) {
  Worker* const worker = caller.worker();
  std::shared_ptr<UnaryCall> call(new UnaryCall(worker));
  call->self_ = call;
  call->started_ = absl::Now();
  call->done_ = std::move(done);
  Prepare(caller, deadline, &call->context_);
  call->reader_ = Stub(worker)->PrepareUnaryCall(&call->context_, caller.path(),
                                                 request, worker->queue());
  worker->Enter(call.get());
  call->reader_->StartCall();
  call->reader_->Finish(&call->response_, &call->status_,
                        Tag(&call->finished_event_));
  call->limit_ = LimitConnecting(worker, deadline, &call->context_);
  return call;
}

}  // namespace fncache::proxy::transport
