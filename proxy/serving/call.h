// SPDX-License-Identifier: Apache-2.0
// RunFunctionCall: one RunFunction call: digest -> lookup -> hit, or flight ->
// upstream -> policy -> fill -> answer. When many calls miss at once, flight.h
// decides which of them calls the function. refresh.h asks it after an answer
// that is past its time.
//
// Every call of the methods v1 and v1beta1 comes here, also those that are not
// looked up (bypass). Each is answered once, with `cache-status` in its
// headers, and counted once, also if its caller left before.
//
// Lifecycle:
//
//   kReading -> [kKeying] -> LookUp ----------------> hit: AnswerFrom
//                              |--> kLookingBelow --> hit: AnswerFrom
//                              |         |
//                             Miss <-----'
//                              |--> kWaiting -------> answer: Answer
//                              |       |              failed: AnswerOld
//                            kCalling <'
//                              '--------------------> OnAnswer, or AnswerOld
//
// and its caller may leave in any stage (OnGone). kOver is reached exactly
// once, and nothing that arrives later does anything.
//
// It lives on its worker's thread. It keeps itself alive until kOver, and every
// event that may come after that keeps it alive too.
#ifndef FNCACHE_PROXY_SERVING_CALL_H_
#define FNCACHE_PROXY_SERVING_CALL_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/key/key.h"
#include "cache/outcome.h"
#include "cache/store/bans.h"
#include "cache/store/store.h"
#include "grpcpp/support/status.h"
#include "insight/explain/miss_memory.h"
#include "proxy/serving/cache_headers.h"
#include "proxy/serving/call_access.h"
#include "proxy/serving/call_trace.h"
#include "proxy/serving/context.h"
#include "proxy/serving/upstream_run.h"
#include "proxy/transport/incoming_call.h"
#include "proxy/transport/message.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::serving {

class RunFunctionCall final
    : public RunOwner,
      private transport::Job,
      public std::enable_shared_from_this<RunFunctionCall> {
 public:
  RunFunctionCall(transport::IncomingCallPtr incoming, ServingContext* context)
      : context_(*context),
        incoming_(std::move(incoming)),
        worker_(incoming_->worker()) {}

  void Start();
  void OnAnswer(transport::UnaryCall& call, const transport::Message& message,
                bool stored) override;

 private:
  // A stage of a call: it is waiting for something, and goes on in the function
  // that is named here when that has come.
  enum class Stage {
    kReading,       // waits for its request: OnRead
    kKeying,        // for the key, which another thread makes: OnKeyed
    kLookingBelow,  // for a look-up in the lower tiers: OnLower
    kWaiting,       // for a word of the flights: OnSignal
    kCalling,       // for the function: OnAnswer
    kOver,          // for nothing: it is answered, or its caller has gone
  };

  // Bytes of the tags that Crossplane makes.
  static constexpr size_t kUsualTag = 64;

  // The call among the flights. Their signals are passed to the call's worker,
  // where they come after whatever that is doing now.
  class Seat final : public FlightCaller {
   public:
    Seat(const cache::key::Key& key,
         const std::shared_ptr<RunFunctionCall>& call)
        : FlightCaller(key, call->incoming_->deadline().end(),
                       call->reason_ == cache::Reason::kExpired,
                       /*has_old=*/static_cast<bool>(call->old_)),
          worker_(call->incoming_->worker()),
          call_(call) {}
    void OnSignal(FlightSignal signal) override {
      worker_->Post([call = call_, signal = std::move(signal)] {
        if (const auto alive = call.lock()) alive->OnSignal(signal);
      });
    }

   private:
    transport::Worker* const worker_;
    const std::weak_ptr<RunFunctionCall> call_;
  };

  // Makes the key of a large request, which takes a while.
  void Work() override;
  void OnWorked() override;

  void OnRead(const grpc::Status& status);
  // Makes a bypass of the call where no composite asks.
  void CheckOrigin();
  // The digest refers to this thread's `keying` and to the request. None for
  // what is not looked up: reason_ says why.
  cache::key::Digest ComputeDigest();
  void OnKeyed(const cache::key::Digest& digest);
  void LookUp(const cache::key::Digest& digest);
  void LookBelow();
  void OnLower(const cache::store::Found& found);
  void Miss();
  // Does what the flights say: kLead or kRun. `look_again`: looks in memory
  // before, as an entry may have been filled since this call looked, by the
  // flight that just ended, or while it waited.
  void Follow(Verdict verdict, bool look_again);
  void OnSignal(const FlightSignal& signal);
  // It has waited for so long that an old answer is better.
  void OnPatienceEnd();
  void OnGone();

  // Under `mode: shadow`: it goes to the function, and if the look-up found
  // something that is `served`, that is compared with the answer.
  void Rehearse(const cache::store::EntryRef& served);
  // Begins kCalling. `outlives`: the function's call may go on when this one's
  // caller has left.
  void Launch(bool outlives = false);
  // Says why it missed, and what was asked is remembered.
  void Explain();
  // From now on OnGone is called when the caller leaves. This comes last where
  // a stage begins: a caller that has left already ends the call here.
  void WatchCaller();
  // Gives up what it waits for. True if that was another caller's flight.
  bool StopWaiting();

  void KeepTag(absl::string_view tag) { tag_.assign(tag.begin(), tag.end()); }
  absl::string_view tag() const { return {tag_.data(), tag_.size()}; }

  bool IsFresh(const cache::store::EntryRef& entry, absl::Time now) const {
    return entry && context_.FreshnessOf(*state_, key_, *entry, now) ==
                        cache::Freshness::kFresh;
  }
  // Answers from what a look-up found, if policy lets it; else notes what that
  // is good for.
  bool AnswerFrom(const cache::store::Found& found, absl::string_view tag,
                  absl::Time now);
  // From now on a purge is not over before this call is, so that no entry which
  // the call holds or is given comes to light after it.
  void EnterBans() {
    if (!entered_.holds()) entered_ = state_->store.bans().Enter();
  }
  // The look-up's entry is past its time.
  void NoteStale(const cache::store::Found& found, absl::Time now);
  // Answers from an entry: as a hit, a stale hit or collapsed. `saves`: the
  // function does not run for it.
  void Answer(const cache::store::EntryRef& entry, absl::string_view tag,
              absl::Time now, cache::Outcome how, bool saves = true);
  // Answers from an entry past its time, and has it refreshed behind.
  void AnswerAndRefresh(const cache::store::EntryRef& entry,
                        absl::string_view tag, absl::Time now);
  // What may answer in place of the function, which failed: null if there is
  // none, or it is not to be used any more.
  cache::store::EntryRef FindOld(absl::Time now);
  // Answers from that in place of this status; false if there is none.
  bool AnswerOld(const grpc::Status& status);
  void AnswerOld(const cache::store::EntryRef& entry, absl::Time now,
                 const grpc::Status& status);
  void AnswerError(const grpc::Status& status);
  void AddStatus(absl::string_view text) {
    incoming_->AddHeader(kCacheStatus, text);
  }
  // The same of a call that is not answered from an entry, with why it missed
  // where that is known.
  void AddForwardStatus(bool collapsed, bool stored);
  // The request, unpacked.
  const transport::Message& plain() const { return incoming_->plain(); }
  // Counts the call as it ends. Before its caller can know: who has an answer
  // finds it counted.
  void Count(cache::Outcome outcome, int code);
  // The last step. `incoming_` has been let go of by then.
  void End();

  ServingContext& context_;
  transport::IncomingCallPtr incoming_;
  transport::Worker* const worker_;
  Stage stage_ = Stage::kReading;
  // Why it goes to the function, unless it is a hit. Its cache-status, its
  // outcome and the use of its answer follow from this. Of a miss, what the
  // lookup showed: kUnknown or kExpired.
  cache::Reason reason_ = cache::Reason::kUnknown;
  std::shared_ptr<RunFunctionCall> self_;  // until kOver
  cache::key::Digest digest_;              // in kKeying

  // What it lives under; from OnRead on.
  FunctionStatePtr state_;

  cache::key::Key key_;  // all zero: it has none (yet)
  // These are set once a call was looked up and not found in memory.
  absl::InlinedVector<char, kUsualTag> tag_;
  absl::Time looked_up_;
  std::shared_ptr<FlightCaller> seat_;
  // What answers if the function fails (stale_if_error), and until when it may
  // take.
  cache::store::EntryRef old_;
  cache::store::Bans::Entered entered_;  // with old_, and among the flights
  bool found_stale_ = false;
  absl::optional<transport::TimerId> patience_timer_;
  std::shared_ptr<UpstreamRun> run_;    // in kCalling
  absl::optional<CallTrace> trace_;     // while the daemon traces
  std::unique_ptr<ShadowCall> shadow_;  // under `mode: shadow`, once keyed
  CallAccess access_{context_.access_log};
  // Why it missed, once that is known.
  insight::explain::Explanation why_{cache::Reason::kNone, "", "", "", {}};
};

// Serves `call`, from which nothing has been read, to the end; on its worker's
// thread. `context` outlives the call.
void StartRunFunction(transport::IncomingCallPtr call, ServingContext* context);

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_CALL_H_
