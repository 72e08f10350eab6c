// SPDX-License-Identifier: Apache-2.0
// Upstream: one function as the target of calls, with connections of its own on
// every worker; UnaryCall, a call of it with one request and one answer; and
// Connecting, a call's wait for a connection.
//
// A call waits for the function to be reachable up to its deadline; one without
// a deadline for `connect_limit`, after which it has no deadline.
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
#include "proxy/transport/deadline.h"
#include "proxy/transport/inflight.h"
#include "proxy/transport/message.h"
#include "proxy/transport/refusal.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::transport {

class ClientTls;
class Upstream;

struct UpstreamOptions {
  // Any target of http2/target.h; one that is none fails every call.
  std::string target;
  // Name expected in the function's certificate; empty = the target's host.
  std::string server_name;
  // How long a call without a deadline waits for a connection.
  absl::Duration connect_limit = absl::Seconds(60);
  // Of an answer, compressed or not.
  http2::Changeable<size_t> max_response_bytes = 256 << 20;
  // What calls hold is counted there; null = nowhere. Outlives the upstream.
  Inflight* inflight = nullptr;
  uint32_t max_metadata_bytes = 64 << 10;
  // Told when the function becomes unreachable, and why, again at each attempt
  // that fails, and when it can be reached again; on the worker that found out.
  // `news`: for this reason (of whichever address) it was not, so far. Null =
  // nobody is told.
  std::function<void(absl::string_view why, bool news)> unreachable;
  std::function<void()> reachable;
  // Told that a connection ended with calls on it, and why; the same.
  std::function<void(absl::string_view why)> lost;
};

// A call that waits for a connection, until its deadline or the limit. It waits
// while its timer runs.
class Connecting final : private http2::Client::Waiter {
 public:
  // `found` is called once a stream may be opened, at once where that is so
  // now; `given_up` when that takes too long, with the status. Neither after
  // destruction.
  using Found = absl::AnyInvocable<void(http2::Connection&)>;
  using GivenUp = absl::AnyInvocable<void(const grpc::Status&)>;
  // `impatient`: gives up soon where connecting fails.
  Connecting(Upstream* upstream, Worker* worker, const Deadline& deadline,
             Found found, GivenUp given_up, bool impatient = false);
  ~Connecting();
  Connecting(const Connecting&) = delete;
  Connecting& operator=(const Connecting&) = delete;

  // Begins to look; again, if the call is sent again.
  void Start();
  // Neither is called any more.
  void Stop();
  const Deadline& deadline() const { return deadline_; }

 private:
  void OnConnection(http2::Connection& connection) override;
  // Has `given_up_` called when it has waited for as long as it may.
  void ArmTimer();
  void OnTimer();

  Upstream* const upstream_;
  Worker* const worker_;
  const Deadline deadline_;
  Found found_;
  GivenUp given_up_;
  const bool impatient_;
  absl::Time limit_;  // as Deadline::Now
  absl::optional<TimerId> timer_;
};

// What a call to the function takes of the call that it is made for. Only read
// while it is started.
struct UnaryRequest {
  Worker* worker = nullptr;
  const http2::Fields& fields;  // its header block, as it came
  const Message& message;
  Deadline deadline;  // of the call to the function
  // A function that cannot be reached is not waited for.
  bool impatient = false;
};

// One unary call to the function. Cancel may be called from any thread, all
// else on the worker's thread after completion.
class UnaryCall final : public Activity,
                        public http2::Recycled,
                        private http2::StreamUser,
                        private http2::Loop::Ender,
                        private Inflight::Waiter,
                        public std::enable_shared_from_this<UnaryCall> {
 public:
  using Done = absl::AnyInvocable<void(UnaryCall&)>;

  // As Upstream::StartUnary.
  static std::shared_ptr<UnaryCall> Start(Upstream* upstream,
                                          const UnaryRequest& request,
                                          Done done);
  ~UnaryCall();
  // Ends the call soon; from any thread, at any time. It completes (with
  // CANCELLED unless it was complete already) and `done` is called all the
  // same.
  void Cancel();

  Worker* worker() const { return worker_; }
  const Deadline& deadline() const { return connecting_.deadline(); }
  // As it was when the call began.
  size_t max_response_bytes() const { return collector_.limit(); }

  // These are valid once the call is done.
  const grpc::Status& status() const { return status_; }
  // It has not been sent yet, for want of a connection.
  bool connecting() const { return stage_ == Stage::kConnecting; }
  // It waits for room to run, and whoever holds the request goes on to count it
  // (Inflight::Admission::kWaitsInPlace), until `admitted` is called, or it
  // says that it does so no more (LetGo).
  bool waits_in_place() const { return stage_ == Stage::kWaitsInPlace; }
  void LetGo();
  void WhenAdmitted(absl::AnyInvocable<void()> admitted) {
    when_admitted_ = std::move(admitted);
  }
  // Why it, or its answer, was more than may be held here, if it was.
  absl::optional<Refusal> refused() const { return refused_; }
  // It had room, and was on its way to the function.
  bool began() const { return began_; }
  // The answer is the function's own, up to its end.
  bool answered() const { return answered_; }
  // The response as it came; not valid where the function sent none, or a
  // status that all read as another one than OK.
  Message& response() { return response_; }
  // Why the response is no success beyond doubt (DoubtOfOk), and so nothing to
  // be read or kept; empty if it is. Of a response that is there.
  absl::string_view doubt() const { return doubt_; }
  const http2::Fields& headers() const { return headers_; }
  const http2::Fields& trailers() const { return trailers_; }
  // What is passed on is not the response as it came: the headers are not to
  // say how long that was (RFC 9113, 8.1.1).
  void OnMessageChanged();
  // An answer that is not to be passed on after all: the call ends with this
  // status of ours. Once it is done.
  void Refuse(Refusal why, const grpc::Status& status);
  // Measures from the call's start to its completion.
  absl::Duration latency() const { return latency_; }

  void CancelActivity() override { CancelNow(); }

 private:
  enum class Stage {
    kWaits,         // for memory
    kWaitsInPlace,  // the same, and the caller's call counts the request
    kConnecting,    // for a connection
    kRunning,       // it is sent: for the response
    kOver,          // it has its status; `done` is called as the iteration ends
  };
  UnaryCall(Upstream* upstream, const UnaryRequest& request);

  void Begin(const UnaryRequest& request);
  void Connect();
  void Send(http2::Connection& connection);
  void CancelNow();
  void OnDeadline();
  // Ends it with a status that is not the function's.
  void Fail(const grpc::Status& status);
  // With RESOURCE_EXHAUSTED.
  void FailForRoom(Refusal why, const std::string& words);
  void Complete();

  void OnAnswer(http2::Stream& stream) override;
  void OnData(http2::Stream& stream, absl::string_view bytes) override;
  void OnTrailers(http2::Stream& stream) override;
  void OnPeerEnd(http2::Stream& stream) override;
  void OnClosed(http2::Stream& stream, const http2::StreamEnd& end) override;
  void OnTurnEnd() override;
  void OnAdmitted() override;

  // Fails it where these are too large, or there is no room for them.
  void CheckFields(const http2::Stream& stream, const char* what);
  // Lets more of the answer come. False if there is no memory for it.
  bool ReadOn();
  // To be called when it begins to wait for something else.
  void ArmTimer();
  void StopTimer();
  void OnTimer();

  Upstream* const upstream_;
  Worker* const worker_;
  Stage stage_ = Stage::kWaits;
  std::shared_ptr<UnaryCall> self_;  // until completion
  http2::Fields request_fields_;
  Message request_;  // until the answer begins
  Connecting connecting_;
  http2::Stream* stream_ = nullptr;
  absl::AnyInvocable<void()> when_admitted_;
  bool resent_ = false;
  bool answered_ = false;
  absl::string_view doubt_;
  bool began_ = false;
  absl::optional<Refusal> refused_;
  absl::optional<TimerId> timer_;  // for all that it waits for
  size_t unread_ = 0;              // came, and nothing may come instead
  Held held_;
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
  // Has other limits kept: by calls that start from now on, and metadata by
  // all. Any thread.
  void SetLimits(size_t max_response_bytes, uint32_t max_metadata_bytes);
  // The worker's connections.
  http2::Client& ClientOf(Worker* worker);

  // Calls the method of `request` with its metadata, on its worker. `done` is
  // called once, on the worker's thread, after this has returned.
  std::shared_ptr<UnaryCall> StartUnary(const UnaryRequest& request,
                                        UnaryCall::Done done);

  // The status of a call that waited until its deadline, for a connection or a
  // stream (`connecting`) or for another call that may: it says why there is
  // none, as far as that is known. On the worker.
  grpc::Status TooLate(Worker* worker, bool connecting = false);

  // How many connections there are, of all workers. Any thread.
  int connected() const { return connected_.load(std::memory_order_relaxed); }

 private:
  struct Slot {                       // of one worker
    http2::Client* client = nullptr;  // the worker's
    uint64_t tls_generation = 0;      // of the certificates that it uses
    bool failing = false;
  };

  void SetFailing(Slot* slot, bool failing, absl::string_view why);
  bool IsNews(absl::string_view why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  UpstreamOptions options_;  // constant but for what SetLimits changes
  ClientTls* const tls_;
  http2::Target target_;
  http2::ClientOptions client_options_;
  std::vector<std::unique_ptr<http2::ClientOptions>> slot_options_;
  std::vector<Slot> slots_;
  std::atomic<int> connected_{0};
  // Held while those who want to know are told, so that they hear of changes in
  // their order.
  Mutex mutex_;
  int failing_ ABSL_GUARDED_BY(mutex_) = 0;  // how many slots cannot connect
  std::string why_ ABSL_GUARDED_BY(mutex_);  // the last of them could not
  // Why, without the addresses, since it was last reachable.
  std::vector<std::string> reasons_ ABSL_GUARDED_BY(mutex_);
};

// What a reset of this HTTP/2 code means to gRPC.
grpc::StatusCode StatusOfReset(uint32_t code);
// The status of a call whose stream ended before its answer was complete;
// `resent`: its second one.
grpc::Status StatusOfEnd(const http2::StreamEnd& end, bool resent = false);

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_UPSTREAM_H_
