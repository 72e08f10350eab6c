// SPDX-License-Identifier: Apache-2.0
// UpstreamRun: one upstream RunFunction call and what follows when it ends:
// policy, the fill, the end of its flight, then the answer to its caller.
//
// It belongs to the flight rather than to the caller that started it: a caller
// that leaves detaches itself, and the run continues for the callers that
// joined. A run that no caller waits for is unattended, for one of two reasons:
// it refreshes an entry (refresh.h), or its last caller left while
// `finish_abandoned` lets it continue. A released or uncollapsed run occupies
// one of the `max_released` slots until the upstream call is over.
//
// Thread-safety: used on its worker's thread, but for Cancel and for the job
// that the worker may hand over. Ownership: its upstream call owns it until
// that ends, then it owns itself until its answer has been read.
#ifndef FNCACHE_PROXY_SERVING_UPSTREAM_RUN_H_
#define FNCACHE_PROXY_SERVING_UPSTREAM_RUN_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/types/optional.h"
#include "cache/key/key.h"
#include "cache/policy.h"
#include "cache/response.h"
#include "cache/store/bans.h"
#include "cache/store/tiered_store.h"
#include "proxy/serving/flight.h"
#include "proxy/serving/function_state.h"
#include "proxy/serving/shadow.h"
#include "proxy/transport/codec.h"
#include "proxy/transport/inflight.h"
#include "proxy/transport/message.h"
#include "proxy/transport/upstream.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::serving {

struct ServingContext;

// The use that may be made of the answer beyond passing it to its caller.
enum class Use {
  kPass,    // a bypass: nothing, not even its TTL is touched
  kAnswer,  // no-store: the TTL follows policy
  kStore,   // it is stored if policy says so
  // The same; and an entry past its time ends if the response is not kept, as
  // that was found, or was not looked for.
  kReplace,
};

// Why no caller waits for a run.
enum class Unattended {
  kNo,         // a caller does, or did until it left
  kRefresh,    // it was started without one
  kAbandoned,  // the last one left, and it continues
};

// What became of the response.
enum class Fate {
  kNotKept,    // so far, or for good
  kStored,     // the memory tier took it
  kNewer,      // a call that started later has filled the key
  kOutlived,   // its time is over, or that of what a later call filled
  kPurged,     // it would have been kept, but a purge came meanwhile
  kOversized,  // it decompresses to more than max_response_bytes
};

// A RunOwner waits for a run's answer.
class RunOwner {
 public:
  // Is called once, on the worker, unless detached before; never from within
  // Start. `message` is to be sent; it is not valid with an error, or if the
  // function sent none. `stored`: the memory tier took it.
  virtual void OnAnswer(transport::UnaryCall& call,
                        const transport::Message& message, bool stored) = 0;

 protected:
  ~RunOwner() = default;
};

class UpstreamRun final : public FlightCall,
                          private transport::Job,
                          public std::enable_shared_from_this<UpstreamRun> {
 public:
  // `context` and `store` outlive the run. Only kStore and kReplace need the
  // store, and `key`, which was made for it.
  UpstreamRun(ServingContext* context, FunctionStatePtr state, Use use,
              cache::store::TieredStore* store, const cache::key::Key& key)
      : context_(*context),
        state_(std::move(state)),
        use_(use),
        store_(*store),
        key_(key) {}

  // Calls the function. `owner` is null if the run is unattended.
  void Start(const transport::UnaryRequest& request,
             std::shared_ptr<RunOwner> owner);
  // It refreshes an entry, within that memory. Before Start.
  void SetRefresh(transport::Inflight::Unattended memory) {
    unattended_ = Unattended::kRefresh;
    memory_ = std::move(memory);
  }
  // Sets the flight that ends with this run.
  void SetFlight(std::shared_ptr<Flight> flight) {
    flight_ = std::move(flight);
  }
  // Sets the released caller whose place is given up when this run ends.
  void SetPlace(std::shared_ptr<FlightCaller> place) {
    place_ = std::move(place);
  }
  bool has_flight() const { return flight_ != nullptr; }
  // Under `mode: shadow`: the answer is compared, or stored, as this says.
  void SetShadow(std::unique_ptr<ShadowCall> shadow) {
    shadow_ = std::move(shadow);
  }

  // The owner has left: it is told nothing any more.
  void Detach() { owner_ = nullptr; }
  // What was read of the answer and done with it, for traces.
  struct Told {
    cache::ResponseFacts facts;
    size_t bytes = 0;  // of the response without its meta
    absl::Duration lifetime;
    absl::optional<absl::Duration> told_ttl;  // where it is not the function's
  };
  const Told& told() const { return told_; }
  bool stored() const { return fate_ == Fate::kStored; }
  // It waits for a connection to the function.
  bool connecting() const { return call_->connecting(); }
  bool waits_in_place() const { return call_->waits_in_place(); }
  void WhenAdmitted(absl::AnyInvocable<void()> admitted) {
    call_->WhenAdmitted(std::move(admitted));
  }
  void LetGo() { call_->LetGo(); }
  // Any thread.
  void Cancel() override {
    cancelled_.store(true, std::memory_order_relaxed);
    call_->Cancel();
  }
  bool MayBeAbandoned() override;
  void OnAbandoned(uint64_t abandonment) override;

 private:
  bool may_store() const { return use_ >= Use::kStore; }
  void OnDone(transport::UnaryCall& call);
  // Unpacks `step` bytes more of a packed answer, to store it and to know what
  // it becomes. True once there is nothing more to unpack. Only as many are
  // kept as may be stored.
  bool UnpackSome(size_t step);
  // Reads the answer, stores it, and makes the message that is sent. The caller
  // and the flight hear of it afterwards, back on the worker.
  void Read();
  // Both, some at a time.
  void Work() override;
  void OnWorked() override;
  void End();
  // Does with the response's bytes what policy says.
  void Apply(const transport::Message& response);
  // Settings that were put in force while the call ran have a say in whether
  // its answer is stored: theirs, where that is stricter.
  void ObeyNewest(const cache::ResponseFacts& facts,
                  cache::Policy::Storing* storing) const;
  void Fill(const cache::ResponseView& view,
            const cache::Policy::Storing& storing);
  // Tells those who explain misses what became of the answer.
  void TellMisses() const;
  // An answer that is not kept takes the place of an older one that is, where
  // that would be served past its time; but for one that a purge alone keeps
  // out, as a soft purge leaves what there is to be served so.
  void SupersedeOlder();
  // Until when the entry is served, as of the end of the call.
  absl::Time ServedUntil() const;
  bool IsFreshInMemory() const;
  // Reports the end of an unattended run, which no caller sees.
  void ReportUnattended();
  // As what the flight ends with the call.
  FlightEnd EndOf(const transport::UnaryCall& call) const;
  // Whether the deadline that the call was given ended it, rather than the
  // function.
  bool EndedByDeadline(const transport::UnaryCall& call) const;

  ServingContext& context_;
  const FunctionStatePtr state_;  // its caller's
  const Use use_;
  cache::store::TieredStore& store_;
  const cache::key::Key key_;
  // A purge that comes while it runs waits for it.
  cache::store::Bans::Entered entered_;
  std::atomic<bool> cancelled_{false};
  std::atomic<Unattended> unattended_{Unattended::kNo};
  // What the call may keep while it is unattended. Set under the lock of the
  // flights, once.
  transport::Inflight::Unattended memory_;
  size_t request_bytes_ = 0;
  absl::Time started_;
  std::shared_ptr<RunOwner> owner_;
  std::shared_ptr<Flight> flight_;
  std::shared_ptr<FlightCaller> place_;
  std::unique_ptr<ShadowCall> shadow_;
  std::shared_ptr<transport::UnaryCall> call_;
  uint64_t abandonment_ = 0;  // the latest
  absl::optional<transport::TimerId> abandoned_timer_;
  // Set when the call has ended.
  std::shared_ptr<UpstreamRun> self_;  // until its answer has been read
  // Until the answer is unpacked and read.
  std::unique_ptr<transport::Unpacker> unpacker_;
  absl::Time ended_;
  transport::Message message_;  // as the function sent it, or with another TTL
  Fate fate_ = Fate::kNotKept;
  cache::store::EntryRef entry_;  // of kStored and kNewer
  Told told_;
  // Why it is not kept, where the answer could be read.
  absl::optional<cache::Policy::Refusal> refusal_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_UPSTREAM_RUN_H_
