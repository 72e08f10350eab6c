// SPDX-License-Identifier: Apache-2.0
// Upstream: one function as the target of calls, with its own connections on
// every worker. UnaryCall: one call of it, with one request and one answer.
// Connecting: a call that waits for a connection, UnaryCall's base class.
//
// A call waits until its deadline for a connection to the function. A call
// without a deadline waits `connect_limit`; once connected it has no deadline.
//
// Thread-safety: an Upstream is shared by workers, and its functions are called
// on a worker's thread, for that worker.
#ifndef FNCACHE_PROXY_TRANSPORT_UPSTREAM_H_
#define FNCACHE_PROXY_TRANSPORT_UPSTREAM_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "common/mutex.h"
#include "grpcpp/support/status.h"
#include "http2/changeable.h"
#include "http2/client.h"
#include "proxy/limits/budget.h"
#include "proxy/limits/watchdog.h"
#include "proxy/transport/deadline.h"
#include "proxy/transport/message.h"
#include "proxy/transport/refusal.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::transport {

class ClientTls;
class Upstream;

struct UpstreamOptions {
  // Any target of http2/target.h. A malformed one fails every call.
  std::string target;
  // Name in the function's certificate; empty = the target's host.
  std::string server_name;
  // The longest wait of a call without a deadline for a connection.
  absl::Duration connect_limit = absl::Seconds(60);
  // The largest answer, compressed or not. A larger one fails its call.
  http2::Changeable<size_t> max_response_bytes = 256 << 20;
  // Counts the memory of calls; null = not counted. Outlives the upstream.
  limits::Budget* inflight = nullptr;
  uint32_t max_metadata_bytes = 64 << 10;
  // `unreachable` is called when the function becomes unreachable, and at each
  // failed attempt after that. `reachable` is called when no worker fails to
  // connect any more. Both run on the worker that noticed; null = not called.
  // `news`: this reason is new, at any address, since the function was
  // reachable.
  std::function<void(absl::string_view why, bool news)> unreachable;
  std::function<void()> reachable;
  // Called on the worker when a connection ended with calls on it; null = not
  // called.
  std::function<void(absl::string_view why)> lost;
};

// A call that waits for a connection, until its deadline or the limit. It has
// one timer: for this wait, and then for those of the derived class.
class Connecting : private http2::Client::Waiter {
 public:
  Connecting(const Connecting&) = delete;
  Connecting& operator=(const Connecting&) = delete;

  Worker* worker() const { return worker_; }
  const Deadline& deadline() const { return deadline_; }

 protected:
  // `impatient`: the wait ends soon if connecting fails.
  Connecting(Upstream* upstream, Worker* worker, const Deadline& deadline,
             bool impatient = false)
      : upstream_(upstream),
        worker_(worker),
        deadline_(deadline),
        impatient_(impatient) {}
  ~Connecting() { StopConnecting(); }

  // Begins to wait. Called once more if the call is resent.
  void StartConnecting();
  // Ends the wait, and stops the timer: neither function below is called.
  void StopConnecting();
  // A stream may be opened. May be called within StartConnecting.
  virtual void OnConnected(http2::Connection& connection) = 0;
  // The wait has taken too long.
  virtual void OnUnreachable(const grpc::Status& status) = 0;

  // Calls `next` after this time, instead of what the timer was set for.
  template <typename Next>
  void ArmTimer(absl::Duration wait, Next next) {
    StopTimer();
    timer_ = worker_->After(wait, [this, next = std::move(next)] {
      timer_.reset();
      next();
    });
  }
  void StopTimer();

  Upstream* const upstream_;
  Worker* const worker_;

 private:
  void OnConnection(http2::Connection& connection) final;
  // Waits further, until `limit` (of the clock of Deadline::Now).
  void WaitUntil(absl::Time limit);
  void OnWaited(absl::Time limit);

  const Deadline deadline_;
  const bool impatient_;
  absl::optional<TimerId> timer_;
};

// The input of a call to the function. The call reads it only while it starts.
struct UnaryRequest {
  Worker* worker = nullptr;
  const http2::Fields& fields;  // the caller's header block, unchanged
  const Message& message;
  Deadline deadline;  // of the call to the function
  // Counts the message while the call waits for memory; may be null.
  std::shared_ptr<size_t> account = nullptr;
  // The quota that counts the message while the call waits for memory.
  // kReading: it may not wait, and is refused.
  limits::Budget::Quota quota = limits::Budget::Quota::kKept;
  // Do not wait for a function that cannot be reached.
  bool impatient = false;
};

// One unary call to the function. Cancel may be called from any thread,
// everything else on the worker's thread after completion.
class UnaryCall final : public Activity,
                        public Connecting,
                        public http2::Recycled,
                        private http2::StreamUser,
                        private http2::Loop::Ender,
                        private limits::Budget::Waiter,
                        public std::enable_shared_from_this<UnaryCall> {
 public:
  using Done = absl::AnyInvocable<void(UnaryCall&)>;

  // See Upstream::StartUnary.
  static std::shared_ptr<UnaryCall> Start(Upstream* upstream,
                                          const UnaryRequest& request,
                                          Done done);
  ~UnaryCall();
  // Ends the call soon. Any thread, at any time. The call completes (with
  // CANCELLED unless it was complete already), and `done` is called as usual.
  void Cancel();

  // The limit at the time when the call began.
  size_t max_response_bytes() const { return collector_.limit(); }

  // The functions below are valid once the call is done.
  const grpc::Status& status() const { return status_; }
  // True if the call is not sent yet, as it waits for a connection.
  bool connecting() const {
    return stage_ == Stage::kConnecting || stage_ == Stage::kConnectingAgain;
  }
  // Why the call was refused, if it or its answer exceeded a limit.
  absl::optional<Refusal> refused() const { return refused_; }
  // True if the call was admitted, and began to connect.
  bool began() const { return stage_ >= Stage::kConnecting; }
  // True if the function sent the answer, up to its end.
  bool answered() const { return answered_; }
  // The response as it arrived. Not valid if the function sent none, or sent a
  // status that no gRPC library reads as OK.
  Message& response() { return response_; }
  // Why the response may not be a success (DoubtOfOk); empty if it is one. Such
  // a response is neither read nor stored. Only for a valid response().
  absl::string_view doubt() const;
  const http2::Fields& headers() const { return headers_; }
  const http2::Fields& trailers() const { return trailers_; }
  // The forwarded response differs from the one that arrived. Removes
  // content-length from the headers (RFC 9113, 8.1.1).
  void OnMessageChanged();
  // Replaces the answer by this status of fncache, once the call is done.
  void Refuse(Refusal why, const grpc::Status& status);
  // Measures from the call's start to its completion.
  absl::Duration latency() const { return latency_; }

  void CancelActivity() override { CancelNow(); }

 private:
  enum class Stage {
    kWaits,            // for memory
    kNotBegun,         // as kOver, but it ended in the stage above
    kConnecting,       // for a connection
    kRunning,          // it is sent: for the response
    kConnectingAgain,  // the function did not process it, so it is resent
    kRunningAgain,
    kOver,  // it has its status; `done` is called as the iteration ends
  };
  bool over() const {
    return stage_ == Stage::kOver || stage_ == Stage::kNotBegun;
  }
  UnaryCall(Upstream* upstream, const UnaryRequest& request);

  void Begin(const UnaryRequest& request);
  // Its request is charged as running.
  void AdoptRequest();
  void OnConnected(http2::Connection& connection) override;
  void OnUnreachable(const grpc::Status& status) override { Fail(status); }
  void CancelNow();
  void OnDeadline();
  // Ends the call with a status that is not the function's.
  void Fail(const grpc::Status& status);
  // Ends the call with RESOURCE_EXHAUSTED.
  void FailForMemory(Refusal why, const std::string& words);
  void Complete();

  void OnAnswer(http2::Stream& stream) override;
  void OnData(http2::Stream& stream, absl::string_view bytes) override;
  void OnTrailers(http2::Stream& stream) override;
  void OnPeerEnd(http2::Stream& stream) override;
  void OnClosed(http2::Stream& stream, const http2::StreamEnd& end) override;
  void OnIterationEnd() override;
  void OnAdmitted() override;

  // Fails the call if its headers or trailers are too large, or do not fit into
  // memory.
  void CheckFields(const http2::Stream& stream, const char* what);
  // Charges the bytes that the call keeps once its answer has begun.
  void Weigh();
  // True if an answer that has begun does not continue, and others wait.
  bool Stalls();
  // `more` bytes of the answer have arrived. Lets the next ones arrive. False
  // if they do not fit into memory.
  bool ReadOn(size_t more);
  // Call it at each change of what the call waits for.
  void WatchWait();
  void OnTimer();

  Stage stage_ = Stage::kWaits;
  std::shared_ptr<UnaryCall> self_;  // until completion
  http2::Fields request_fields_;
  Message request_;  // until the answer begins and all of it is sent
  http2::Stream* stream_ = nullptr;
  bool answered_ = false;
  absl::optional<Refusal> refused_;
  size_t unread_ = 0;  // bytes that arrived but are not consumed
  const std::shared_ptr<size_t> account_;  // of the caller's connection
  limits::Charge held_;
  limits::Watchdog watchdog_;  // of the answer that arrives
  MessageCollector collector_;
  http2::Fields headers_;
  http2::Fields trailers_;
  Message response_;
  grpc::Status status_;
  absl::Time started_;
  absl::Duration latency_;
  Done done_;
};

class Upstream {
 public:
  // `tls` may be null (plaintext), else outlives this. `workers`: how many
  // workers use it, with indices from 0; they are stopped before it goes.
  Upstream(UpstreamOptions options, ClientTls* tls, int workers);
  ~Upstream();
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  const UpstreamOptions& options() const { return options_; }
  bool tls() const { return tls_ != nullptr; }
  // Changes the limits: `max_response_bytes` for new calls, and
  // `max_metadata_bytes` for all. Any thread.
  void SetLimits(size_t max_response_bytes, uint32_t max_metadata_bytes);
  // The worker's connections.
  http2::Client& ClientOf(Worker* worker);

  // Calls the method of `request` with its metadata, on its worker. `done` is
  // called once, on the worker's thread, after this has returned.
  std::shared_ptr<UnaryCall> StartUnary(const UnaryRequest& request,
                                        UnaryCall::Done done);

  // The status of a call that waited until its deadline: for a connection or a
  // stream (`connecting`), or for another call that may wait for one. It says
  // why there is no connection, as far as that is known. On the worker.
  grpc::Status TooLate(Worker* worker, bool connecting = false);

  // The number of connections of all workers. Any thread.
  int connected() const { return connected_.load(std::memory_order_relaxed); }

 private:
  struct Slot {                       // of one worker
    http2::Client* client = nullptr;  // the worker's
    uint64_t tls_generation = 0;      // of the certificates that it uses
    bool failing = false;
  };

  void SetFailing(Slot* slot, bool failing, absl::string_view why);
  bool IsNews(absl::string_view why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  UpstreamOptions options_;  // only SetLimits changes it
  ClientTls* const tls_;
  http2::Target target_;
  http2::ClientOptions client_options_;
  std::vector<std::unique_ptr<http2::ClientOptions>> slot_options_;
  std::vector<Slot> slots_;
  std::atomic<int> connected_{0};
  // Locked while `unreachable` and `reachable` run, so that they see the
  // changes in order.
  Mutex mutex_;
  int failing_ ABSL_GUARDED_BY(mutex_) = 0;  // how many slots cannot connect
  std::string why_ ABSL_GUARDED_BY(mutex_);  // the last of them cannot
  // The reasons, without the addresses, since the function was last reachable.
  std::vector<std::string> reasons_ ABSL_GUARDED_BY(mutex_);
};

// The gRPC code for a reset with this HTTP/2 code.
grpc::StatusCode StatusOfReset(uint32_t code);
// The status of a call whose stream ended before its answer was complete.
// `resent`: the call was sent twice, and this is the end of its second stream.
grpc::Status StatusOfEnd(const http2::StreamEnd& end, bool resent = false);

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_UPSTREAM_H_
