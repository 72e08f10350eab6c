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
// Thread-safety: used on its worker's thread, except Cancel and the job that
// the worker may hand over. Ownership: its upstream call owns it until that
// ends, then it owns itself until its answer has been read.
#ifndef FNCACHE_PROXY_SERVING_UPSTREAM_RUN_H_
#define FNCACHE_PROXY_SERVING_UPSTREAM_RUN_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "absl/types/optional.h"
#include "cache/key/key.h"
#include "cache/response.h"
#include "cache/store/bans.h"
#include "proxy/serving/context.h"
#include "proxy/serving/shadow.h"
#include "proxy/serving/varied_call.h"
#include "proxy/transport/codec.h"
#include "proxy/transport/upstream.h"

namespace fncache::proxy::serving {

// The use that may be made of the answer beyond passing it to its caller.
enum class Use {
  kPass,    // a bypass: nothing, not even its TTL is touched
  kAnswer,  // no-store: the TTL follows policy
  kStore,   // it is stored if policy says so
  // The same, and an entry past its time ends if the response is not kept. The
  // look-up found such an entry, or there was no look-up.
  kReplace,
};

// Why no caller waits for a run.
enum class Unattended {
  kNo,         // a caller waits, or did until it left
  kRefresh,    // it was started without one
  kAbandoned,  // the last one left, and it continues
};

// The fate of the response.
enum class Fate {
  kNotKept,    // so far, or for good
  kStored,     // the memory tier took it
  kNewer,      // a call that started later has filled the key
  kOutlived,   // its time is over, or that of a later call's entry
  kPurged,     // it would have been kept, but a purge came meanwhile
  kOversized,  // it decompresses to more than max_response_bytes
};

// A RunOwner waits for a run's answer.
class RunOwner {
 public:
  // Is called once, on the worker, unless detached before; never from within
  // Start. The owner sends the call's response, which may have another TTL than
  // the function sent. `stored`: the memory tier took it.
  virtual void OnAnswer(transport::UnaryCall& call, bool stored) = 0;

 protected:
  ~RunOwner() = default;
};

class UpstreamRun final : public FlightCall,
                          private transport::Job,
                          public std::enable_shared_from_this<UpstreamRun> {
 public:
  // `context` outlives the run. Only kStore and kReplace need `key`.
  UpstreamRun(ServingContext* context, FunctionStatePtr state, Use use,
              const cache::key::Key& key)
      : context_(*context), state_(std::move(state)), use_(use), key_(key) {}

  // Calls the function. `owner` is null if the run is unattended.
  void Start(const transport::UnaryRequest& request,
             std::shared_ptr<RunOwner> owner);
  // The run refreshes an entry, within that memory. Call it before Start.
  void SetRefresh(limits::Budget::Unattended memory) {
    unattended_ = Unattended::kRefresh;
    memory_ = std::move(memory);
  }
  // Sets the flight that ends with this run.
  void SetFlight(std::shared_ptr<Flight> flight) { role_ = std::move(flight); }
  // Sets the released caller. Its slot is freed when this run ends.
  void SetSeat(std::shared_ptr<FlightCaller> seat) { role_ = std::move(seat); }
  bool has_flight() const { return flight() != nullptr; }
  // With tuning: what the answer adds to the evidence. Null without it.
  void SetTuned(std::shared_ptr<TunedCall> tuned) { tuned_ = std::move(tuned); }
  // With `vary: on`: the response's hint says under which key of `call` it is
  // stored. `request` stays in memory for that.
  void SetVaried(const VariedCall& call, transport::Message* request);
  // Under `mode: shadow`: `shadow` decides if the answer is compared or stored.
  void SetShadow(std::unique_ptr<ShadowCall> shadow) {
    shadow_ = std::move(shadow);
  }

  // The owner has left: its OnAnswer is not called any more.
  void Detach() { owner_ = nullptr; }
  // Facts about the answer and its use, for traces.
  struct TraceFacts {
    cache::ResponseFacts facts;
    size_t bytes = 0;  // of the response without its meta
    absl::optional<absl::Duration> told_ttl;  // if it is not the function's
  };
  const TraceFacts& trace_facts() const { return trace_facts_; }
  // The key under which the answer is stored.
  const cache::key::Key& FillKey() const {
    return varied_ == nullptr ? key_ : varied_->FillKey(key_);
  }
  bool stored() const { return fate_ == Fate::kStored; }
  // The entry that the response became, or a newer one. Null: there is none.
  const cache::store::EntryRef& entry() const { return entry_; }
  // The run waits for a connection to the function.
  bool connecting() const { return call_->connecting(); }
  // Any thread.
  void Cancel() override {
    cancelled_.store(true, std::memory_order_relaxed);
    call_->Cancel();
  }
  bool MayBeAbandoned() override;
  void OnAbandoned(uint64_t abandonment) override;

 private:
  std::shared_ptr<Flight> flight() const {
    const auto* const flight = std::get_if<std::shared_ptr<Flight>>(&role_);
    return flight == nullptr ? nullptr : *flight;
  }
  transport::Message& message() { return call_->response(); }
  bool may_store() const { return use_ >= Use::kStore; }
  void OnDone(transport::UnaryCall& call);
  // Decompresses `step` more bytes of a compressed answer, to store it and to
  // learn its size. True once nothing is left to decompress. It keeps at most
  // the bytes that may be stored.
  bool UnpackSome(size_t step);
  // Reads the answer, stores it, and makes the message that is sent. The caller
  // and the flight get it afterwards, on the worker.
  void Read();
  // One step of UnpackSome, and Read after the last one.
  void Work() override;
  void OnWorked() override;
  void End();
  // Stores the response if policy says so, and sets its TTL.
  void Apply(const transport::Message& response);
  // Settings may change while the call runs. The stricter ones decide if its
  // answer is stored.
  void ObeyNewest(const cache::ResponseFacts& facts,
                  cache::Policy::Storing* storing) const;
  void Fill(const cache::ResponseView& view,
            const cache::Policy::Storing& storing);
  // Reads the hint of the answer. Returns whether it promises that nothing else
  // decides the answer.
  bool ReadHint();
  FlightKey flight_key() const {
    return {key_, tuned_ == nullptr ? cache::key::Key() : tuned_->drift};
  }
  // The evidence learns of the answer, after its fill. `older` is the entry
  // that was there before, if any.
  void Learn(const cache::ResponseView& view,
             const cache::store::EntryRef& older);
  // Counts the run if it is a repeat.
  void CompareWithBefore(const cache::ResponseView& view) const;
  // Reports the fate of the answer to the memory of misses.
  void TellMisses() const;
  // An answer that is not kept ends an older entry that would be served past
  // its time, and the proof of its key. An answer that only a purge keeps out
  // does not: a soft purge lets older entries be served past their time.
  //
  // This does not depend on the settings for serving past an entry's time: they
  // may change while the entry is kept.
  void SupersedeOlder();
  // The time until which the entry is served, as of the end of the call.
  absl::Time ServedUntil() const;
  bool IsFreshInMemory() const;
  // Reports the end of an unattended run, which no caller sees.
  void ReportUnattended();
  // How the flight ends with the call.
  FlightEnd EndOf(const transport::UnaryCall& call) const;
  // Whether the call's own deadline ended it, rather than the function.
  bool EndedByDeadline(const transport::UnaryCall& call) const;

  ServingContext& context_;
  const FunctionStatePtr state_;  // its caller's
  const Use use_;
  const cache::key::Key key_;
  // A purge that comes while it runs waits for it.
  cache::store::Bans::Entered entered_;
  std::atomic<bool> cancelled_{false};
  std::atomic<Unattended> unattended_{Unattended::kNo};
  absl::Time started_;
  std::shared_ptr<RunOwner> owner_;
  // Its role until it ends: it has a flight, or a released caller's slot.
  std::variant<std::monostate, std::shared_ptr<Flight>,
               std::shared_ptr<FlightCaller>>
      role_;
  std::unique_ptr<ShadowCall> shadow_;
  std::shared_ptr<TunedCall> tuned_;
  std::unique_ptr<VariedCall> varied_;
  std::shared_ptr<transport::UnaryCall> call_;
  // The memory that the call may keep while it is unattended. Set once, while a
  // mutex of the flights is locked.
  limits::Budget::Unattended memory_;
  size_t request_bytes_ = 0;
  uint64_t abandonment_ = 0;  // the latest
  absl::optional<transport::TimerId> abandoned_timer_;
  // Set when the call has ended.
  std::shared_ptr<UpstreamRun> self_;  // until its answer has been read
  // Until the answer is decompressed and read.
  std::unique_ptr<transport::Unpacker> unpacker_;
  absl::Time ended_;
  Fate fate_ = Fate::kNotKept;
  cache::store::EntryRef entry_;  // of kStored and kNewer
  TraceFacts trace_facts_;
  // Why the answer is not kept, if it could be read.
  absl::optional<cache::Policy::Refusal> refusal_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_UPSTREAM_RUN_H_
