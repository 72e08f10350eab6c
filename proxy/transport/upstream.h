// SPDX-License-Identifier: Apache-2.0
// Upstream: the way to one function: channels, name resolution, reconnecting,
// certificates, and the unary calls of the RunFunction path.
//
// Each worker has its own channel (its own connections, round robin over all
// addresses), used on that worker only; Stub and StartUnary are called on it.
// Calls wait for the function to be reachable up to their deadline; a call
// without one waits `connect_limit` for a connection, then ends UNAVAILABLE.
//
// Outlives the workers' calls.
#ifndef FNCACHE_PROXY_TRANSPORT_UPSTREAM_H_
#define FNCACHE_PROXY_TRANSPORT_UPSTREAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/async_unary_call.h"
#include "grpcpp/support/byte_buffer.h"
#include "proxy/transport/incoming_call.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::transport {

class ClientTls;

struct UpstreamOptions {
  // Any gRPC target.
  std::string target;
  // Name expected in the function's certificate; empty = the target's host.
  std::string server_name;
  // How long a call without a deadline waits for a connection.
  absl::Duration connect_limit = absl::Seconds(60);
  // Told when the function becomes unreachable, and why, and when it can be
  // reached again; on the worker that found out, which may take some seconds.
  // Null = nobody is told.
  std::function<void(absl::string_view why)> unreachable;
  std::function<void()> reachable;
};

// Gives up on a call that has no deadline and has found no connection within
// the limit. It is created beside the call, on the same worker, and cancels
// nothing once it is destroyed.
class ConnectLimit {
 public:
  // The arguments that are pointers or references outlive this.
  ConnectLimit(Worker* worker, grpc::ClientContext* context,
               const std::string& channel_target, absl::Duration limit);
  ~ConnectLimit();
  ConnectLimit(const ConnectLimit&) = delete;
  ConnectLimit& operator=(const ConnectLimit&) = delete;

  // The call was given up: its status is ToStatus(), whatever gRPC says.
  bool exceeded() const { return exceeded_; }
  grpc::Status ToStatus() const;

 private:
  Worker* const worker_;
  const absl::Duration limit_;
  bool armed_ = false;
  bool exceeded_ = false;
  TimerId timer_;
};

// One unary call to the function. Cancel may be called from any thread, all
// else on the worker's thread after completion.
class UnaryCall final : public Activity,
                        public std::enable_shared_from_this<UnaryCall> {
 public:
  using Done = absl::AnyInvocable<void(UnaryCall&)>;

  ~UnaryCall();
  // Ends the call soon; from any thread, at any time. It completes (with
  // CANCELLED unless it was complete already) and `done` is called all the
  // same.
  void Cancel() { context_.TryCancel(); }

  // These are valid once the call is done.
  const grpc::Status& status() const { return status_; }
  // The response as it came; empty unless the status is OK.
  grpc::ByteBuffer& response() { return response_; }
  const Metadata& headers() const {
    return context_.GetServerInitialMetadata();
  }
  const Metadata& trailers() const {
    return context_.GetServerTrailingMetadata();
  }
  // Measures from the call's start to its completion.
  absl::Duration latency() const { return latency_; }

  void CancelActivity() override { context_.TryCancel(); }

 private:
  friend class Upstream;
  explicit UnaryCall(Worker* worker)
      : Activity(Kind::kInner), worker_(worker) {}
  void OnFinished(bool ok);

  Worker* const worker_;
  std::shared_ptr<UnaryCall> self_;  // until completion
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader_;
  std::unique_ptr<ConnectLimit> limit_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
  absl::Time started_;
  absl::Duration latency_;
  Done done_;
  MemberEvent<UnaryCall, &UnaryCall::OnFinished> finished_event_{this};
};

class Upstream {
 public:
  // `tls` may be null (plaintext), else outlives this. `workers`: how many
  // workers use it, with indices from 0.
  Upstream(UpstreamOptions options, ClientTls* tls, int workers);
  ~Upstream();
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  // A stub on the worker's channel, which is renewed when certificates have
  // changed.
  grpc::GenericStub* Stub(Worker* worker);

  // Gives the context of an upstream call what it takes from its caller.
  void Prepare(const IncomingCall& caller, absl::Time deadline,
               grpc::ClientContext* context) const;
  // For a call that was just started; null if it has a deadline.
  std::unique_ptr<ConnectLimit> LimitConnecting(
      Worker* worker, absl::Time deadline, grpc::ClientContext* context) const;

  // Calls the caller's method with the caller's metadata and authority, on the
  // caller's worker. `caller` is only read before this returns. `deadline` is
  // the upstream call's, infinite for none. `done` is called once, on the
  // worker's thread, after this has returned.
  std::shared_ptr<UnaryCall> StartUnary(const IncomingCall& caller,
                                        const grpc::ByteBuffer& request,
                                        absl::Time deadline,
                                        UnaryCall::Done done);

 private:
  struct Slot;  // of one worker

  Slot& SlotOf(Worker* worker);
  // Looks after a channel that is not connected until it is.
  void ScheduleCheck(Worker* worker, Slot* slot);
  // Asks the slot's channel why it cannot connect, and reports the reason.
  void AskWhy(Worker* worker, Slot* slot);
  void SetFailing(Slot* slot, bool failing, absl::string_view why = "");

  const UpstreamOptions options_;
  // The target that channels are made for: that of the options, spelled so that
  // it differs from any peer's address.
  const std::string channel_target_;
  ClientTls* const tls_;
  std::vector<std::unique_ptr<Slot>> slots_;
  // Held while those who want to know are told, so that they hear of changes in
  // their order.
  Mutex mutex_;
  int failing_ ABSL_GUARDED_BY(mutex_) = 0;  // how many slots cannot connect
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_UPSTREAM_H_
