// UpstreamRun: one upstream RunFunction call and what becomes of its answer:
// policy, fill, the end of its flight, then its caller.
//
// It belongs to the flight rather than to the caller that started it: a caller
// that leaves detaches itself, and the run goes on for those who joined. A
// released or uncollapsed run holds its caller's place among `max_released`
// until the upstream call is over.
//
// Thread-safety: on its worker's thread, but for Cancel and what the worker has
// others do. Ownership: by its upstream call until that ends, then by itself
// until its answer has been read.
#ifndef FNCACHE_PROXY_SERVING_UPSTREAM_RUN_H_
#define FNCACHE_PROXY_SERVING_UPSTREAM_RUN_H_

#include <chrono>
#include <memory>

#include "cache/key/key.h"
#include "cache/policy.h"
#include "cache/response.h"
#include "grpcpp/support/byte_buffer.h"
#include "proxy/serving/flight.h"
#include "proxy/transport/incoming_call.h"
#include "proxy/transport/upstream.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::serving {

class RunFunctionHandler;

// What of the answer may be used beyond answering its caller.
enum class Use {
  kPass,    // a bypass: nothing, not even its TTL is touched
  kAnswer,  // no-store: the TTL follows policy
  kStore,   // it is stored if policy says so
};

// Who waits for a run's answer.
class RunOwner {
 public:
  // Once, on the worker, unless detached before. `message` is what to send;
  // not valid with an error, or if the function sent none. `stored`: the memory
  // tier took it.
  virtual void OnAnswer(transport::UnaryCall& call,
                        const grpc::ByteBuffer& message, bool stored) = 0;

 protected:
  ~RunOwner() = default;
};

class UpstreamRun final : public FlightCall,
                          private transport::Job,
                          public std::enable_shared_from_this<UpstreamRun> {
 public:
  // `key` matters only for Use::kStore.
  UpstreamRun(RunFunctionHandler* handler, Use use, const cache::key::Key& key)
      : handler_(handler), use_(use), key_(key) {}

  // Calls the function for `caller`, with its deadline.
  void Start(const transport::IncomingCall& caller,
             const grpc::ByteBuffer& request, std::shared_ptr<RunOwner> owner);
  // The flight that ends with this run.
  void EndFlight(std::shared_ptr<Flight> flight) {
    flight_ = std::move(flight);
  }
  // The place that is given up with this run's end.
  void EndPlace(std::shared_ptr<FlightCaller> place) {
    place_ = std::move(place);
  }
  bool has_flight() const { return flight_ != nullptr; }

  // The owner has left.
  void Detach() { owner_ = nullptr; }
  // Any thread.
  void Cancel() override { call_->Cancel(); }

 private:
  // What the response led to.
  struct Result {
    cache::store::EntryRef entry;  // the fill, or what was newer
    bool stored = false;
    grpc::ByteBuffer message;
  };

  void OnDone(transport::UnaryCall& call);
  // Reads the answer, stores it, and makes of it what is sent: the caller and
  // the flight hear of it afterwards, back on the worker.
  void Work() override;
  void OnWorked() override;
  void End();
  // What policy makes of the response's bytes.
  void Apply(absl::string_view bytes);
  void Fill(const cache::ResponseView& view,
            const cache::Policy::Storing& storing);
  // The deadline that the call was given ended it, rather than the function.
  bool EndedByDeadline(const transport::UnaryCall& call) const;

  RunFunctionHandler* const handler_;
  const Use use_;
  const cache::key::Key key_;
  transport::Worker* worker_ = nullptr;
  absl::Time started_;
  // The deadline by the clock that gRPC measures it with.
  bool has_deadline_ = false;
  std::chrono::steady_clock::time_point deadline_;
  std::shared_ptr<RunOwner> owner_;
  std::shared_ptr<Flight> flight_;
  std::shared_ptr<FlightCaller> place_;
  std::shared_ptr<transport::UnaryCall> call_;
  // Once the call has ended.
  std::shared_ptr<UpstreamRun> self_;  // until OnWorked
  absl::Time ended_;
  Result result_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_UPSTREAM_RUN_H_
