// SPDX-License-Identifier: Apache-2.0
// RunFunctionCall: one RunFunction call: digest -> lookup -> hit, or flight ->
// upstream -> policy -> fill -> answer. When many calls miss at once, flight.h
// decides which of them calls the function. refresh.h calls it after an answer
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
// Its caller may leave in any stage (OnGone). The call reaches kOver exactly
// once, and ignores what arrives later.
//
// call.cc has the stages, call_answers.cc the answers.
//
// It lives on its worker's thread. It keeps itself alive until kOver, and every
// event that may come after that keeps it alive, too.
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
#include "proxy/serving/varied_call.h"
#include "proxy/transport/incoming_call.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::serving {

class RunFunctionCall final
    : public RunOwner,
      private transport::Job,
      public std::enable_shared_from_this<RunFunctionCall> {
 public:
  RunFunctionCall(transport::IncomingCallPtr incoming, ServingContext* context)
      : context_(*context), incoming_(std::move(incoming)) {}

  void Start();
  void OnAnswer(transport::UnaryCall& call, bool stored) override;

 private:
  // A stage of a call: it waits for an event, and then continues in the
  // function that is named here.
  enum class Stage {
    kReading,       // waits for its request: OnRead
    kKeying,        // for the key, which another thread makes: OnKeyed
    kLookingBelow,  // for a look-up in the lower tiers: OnLower
    kWaiting,       // for a signal of the flights: OnSignal
    kCalling,       // for the function: OnAnswer
    kOver,          // for nothing: it is answered, or its caller has left
  };

  // Bytes of the tags that Crossplane makes.
  static constexpr size_t kUsualTag = 64;

  // The call among the flights. It posts their signals to the call's worker,
  // which handles them after its current job.
  class Seat final : public FlightCaller {
   public:
    Seat(const cache::key::Key& key,
         const std::shared_ptr<RunFunctionCall>& call)
        : FlightCaller({key, call->drift_}, call->incoming_->deadline().end(),
                       call->reason_ == cache::Reason::kExpired,
                       /*has_old=*/static_cast<bool>(call->old_)),
          worker_(call->worker()),
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

  // Makes the key of a large request on another thread.
  void Work() override;
  void OnWorked() override;

  void OnRead(const grpc::Status& status);
  // Makes the call a bypass if its request is not a composite's.
  void CheckOrigin();
  // The digest refers to this thread's `keying` and to the request. It is empty
  // if the call is not looked up; reason_ says why.
  cache::key::Digest ComputeDigest();
  // With `vary: on`: answers from a fresh entry under a key by hint, which is
  // found without the plain key.
  bool AnswerByHint();
  void OnKeyed(const cache::key::Digest& digest);
  void LookUp(const cache::key::Digest& digest);
  // Looks in memory, with `vary: on` under all keys of the request.
  cache::store::Found FindInMemory(absl::Time now) {
    return varied_ == nullptr ? state_->store.GetMemory(key_, now)
                              : varied_->Find(key_, now);
  }
  // Whether a look-up in the lower tiers may find what memory has not.
  bool MayFindBelow(const cache::store::Found& found) const;
  // Only an entry that started later than `than` counts.
  void LookBelow(const cache::key::Key& key, absl::Time than);
  void OnLower(const cache::store::Found& found, absl::Time than);
  void Miss();
  // Follows the verdict of the flights: kLead or kRun. `look_again`: looks in
  // memory first. An entry may have been filled since this call's look-up, by
  // the flight that just ended, or while the call waited.
  void Follow(Verdict verdict, bool look_again);
  void OnSignal(const FlightSignal& signal);
  // The call has waited for kPatience of its caller's time, so an old answer is
  // better than none.
  void OnPatienceEnd();
  void OnGone();

  // Under `mode: shadow`: calls the function, and compares its answer with
  // `served`, the entry that the look-up found. Null: there is none.
  void Rehearse(const cache::store::EntryRef& served);
  // Begins kCalling. `outlives`: the call of the function may continue after
  // this call's caller has left.
  void Launch(bool outlives = false);
  // Finds out why the call missed, and remembers its request.
  void Explain();
  // The request, for the gate: under the key of the entry that was found.
  RequestKey Request() const {
    if (varied_ != nullptr && varied_->by_hint()) {
      return {varied_->entry_key(), absl::nullopt, nullptr};
    }
    return {key_, drift_, tuned_ == nullptr ? nullptr : &tuned_->kinds};
  }
  // Keeps what `digest` says of drift, before its memory is used again.
  void KeepDrift(const cache::key::Digest& digest);
  // A look-up found no answer: notes why, and the further use of the entry. An
  // entry that would answer its own request is a miss over drift.
  void NoteMiss(const cache::store::Found& found,
                const absl::optional<Judgement>& judged, absl::Time now);
  // Why an entry may not answer across drift, for `cache-status`.
  std::string DriftDetail();
  // From now on OnGone is called when the caller leaves. Call it last where a
  // stage begins: if the caller has left already, the call ends here.
  void WatchCaller();
  // Cancels the wait. True if the call waited for another caller's flight.
  bool StopWaiting();

  void KeepTag(absl::string_view tag) { tag_.assign(tag.begin(), tag.end()); }
  absl::string_view tag() const { return {tag_.data(), tag_.size()}; }

  // Answers from the entry that a look-up found, if policy allows it. Else
  // notes the further use of the entry (NoteStale).
  bool AnswerFrom(const cache::store::Found& found, absl::string_view tag,
                  absl::Time now);
  // From now on a purge ends after this call. So no entry that the call keeps
  // or gets is served after the purge.
  void EnterBans() {
    if (!entered_.holds()) entered_ = state_->store.bans().Enter();
  }
  // The look-up's entry is past its time.
  void NoteStale(const cache::store::Found& found, absl::Time now);
  // Answers from an entry: as a hit, a stale hit or collapsed. `saves`: the
  // function does not run for this call.
  void Answer(const cache::store::EntryRef& entry, absl::string_view tag,
              absl::Time now, cache::Outcome how, bool saves = true);
  // Answers from an entry past its time, and refreshes it after the answer.
  void AnswerAndRefresh(const cache::store::EntryRef& entry,
                        absl::string_view tag, absl::Time now);
  // Returns the entry that may answer instead of the function, which failed.
  // Null: there is none, or its time is over.
  cache::store::EntryRef FindOld(absl::Time now);
  // Answers from that entry instead of this status; false if there is none.
  bool AnswerOld(const grpc::Status& status);
  void AnswerOld(const cache::store::EntryRef& entry, absl::Time now,
                 const grpc::Status& status);
  void AnswerError(const grpc::Status& status);
  void AddStatus(absl::string_view text) {
    incoming_->AddHeader(kCacheStatus, text);
  }
  // The same for a call that no entry answers, with the reason of its miss if
  // that is known.
  void AddForwardStatus(bool collapsed, bool stored);
  // Not once incoming_ is null.
  transport::Worker* worker() const { return incoming_->worker(); }
  // The request, decompressed.
  const transport::Message& plain() const { return incoming_->plain(); }
  // Counts the call as it ends, and stops its timer. It comes before the
  // answer, so that a caller with an answer finds its call counted.
  void Count(cache::Outcome outcome, int code);
  // The last step. `incoming_` is null by then.
  void End();

  ServingContext& context_;
  transport::IncomingCallPtr incoming_;
  Stage stage_ = Stage::kReading;
  // Why the call goes to the function, unless it is a hit. Its cache-status,
  // its outcome and the use of its answer follow from this. A miss has
  // kUnknown, kExpired or kDrift, as its look-up showed.
  cache::Reason reason_ = cache::Reason::kUnknown;
  std::shared_ptr<RunFunctionCall> self_;  // until kOver

  // The settings of the call, from OnRead to its end.
  FunctionStatePtr state_;

  cache::key::Key key_;    // all zero: it has none (yet)
  cache::key::Key drift_;  // its drift digest; all zero without tuning
  std::shared_ptr<TunedCall> tuned_;    // with tuning, if no answer was found
  std::unique_ptr<VariedCall> varied_;  // with `vary: on`, once keyed
  // These are set when the look-up in memory finds no answer.
  absl::InlinedVector<char, kUsualTag> tag_;
  absl::Time looked_up_;
  std::shared_ptr<FlightCaller> seat_;
  // The entry that answers if the function fails (stale_if_error).
  // patience_timer_ limits the time that the function may take.
  cache::store::EntryRef old_;
  cache::store::Bans::Entered entered_;  // with old_, and among the flights
  bool found_stale_ = false;
  absl::optional<transport::TimerId> patience_timer_;
  std::shared_ptr<UpstreamRun> run_;    // in kCalling
  absl::optional<CallTrace> trace_;     // while the daemon traces
  std::unique_ptr<ShadowCall> shadow_;  // under `mode: shadow`, once keyed
  CallAccess access_{context_.access_log};
  // Why the call missed, once that is known.
  insight::explain::Explanation why_{cache::Reason::kNone, "", "", "", {}};
};

// Serves `call`, from which nothing has been read, to its end. Call it on the
// worker's thread. `context` outlives the call.
void StartRunFunction(transport::IncomingCallPtr call, ServingContext* context);

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_CALL_H_
