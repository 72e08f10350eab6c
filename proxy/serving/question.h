// SPDX-License-Identifier: Apache-2.0
// Questions: asks a function about drift, after an answer and with the request
// of that call (DESIGN, "Questions"). Evidence (evidence.h) says what is asked
// next, and learns what the function answered.
//
// Like a refresh, a question has no caller: it has 2 minutes, its memory is
// that of unattended calls, and a graceful stop does not wait for it. Its
// answer is compared, and neither stored nor passed on. The questions of one
// proof follow one after the other.
//
// A proof ends where the settings or the key's purges change, where a caller
// waits for memory or for a slot, when the daemon drains, and when the function
// fails.
//
// Used on its worker's thread. It owns itself from Start to its end.
#ifndef FNCACHE_PROXY_SERVING_QUESTION_H_
#define FNCACHE_PROXY_SERVING_QUESTION_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/key/key.h"
#include "cache/response.h"
#include "http2/fields.h"
#include "proxy/limits/budget.h"
#include "proxy/serving/context.h"
#include "proxy/serving/tuning.h"
#include "proxy/transport/incoming_call.h"
#include "proxy/transport/upstream.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::serving {

class Questions final : private transport::Job,
                        public std::enable_shared_from_this<Questions> {
 public:
  // Bytes. A larger request causes no questions.
  static constexpr size_t kMostBytes = 1 << 20;

  // Keeps the request of `call`, so that questions may be asked when the
  // function has answered it. Null: none may. The request has the key and what
  // `tuned` says.
  static std::shared_ptr<Questions> Open(ServingContext* context,
                                         FunctionStatePtr state,
                                         const cache::key::Key& key,
                                         const TunedCall& tuned,
                                         const transport::IncomingCall& call);
  Questions(ServingContext* context, FunctionStatePtr state,
            const cache::key::Key& key, const TunedCall& tuned,
            const transport::IncomingCall& call,
            limits::Budget::Unattended memory);

  // The evidence says that questions are due. `answer` is that of the call.
  void Start(const TunedEntry& answer);

 private:
  // Makes the next question, and asks it if that is still allowed.
  void Next();
  // The settings are those of the call, and its answer is not purged.
  bool Holds() const;
  bool MayAsk() const;
  // Makes the request of a question, or compares its answer.
  void Work() override;
  void OnWorked() override;
  void Make();
  void Send();
  void OnAnswer(transport::UnaryCall& call);
  Answered Compare();
  void Report(Answered answered);
  // An answer differs: notes where, for the log, and names the step.
  void NoteDifference(const cache::ResponseView& view,
                      const TunedEntry& answer);
  // The proof is over, and perhaps not decided.
  void End();

  ServingContext& context_;
  const FunctionStatePtr state_;
  const cache::key::Key key_;
  const cache::key::Key step_;
  transport::Worker* const worker_;
  const Method method_;
  http2::Fields fields_;
  transport::Message request_;
  limits::Budget::Unattended memory_;
  const uint64_t seed_;  // of the order of the third and fourth question

  TunedEntry answer_;
  absl::optional<Evidence::Running> running_;
  Finding finding_;    // of this proof so far
  std::string paths_;  // at which its last answer that differed does, if known
  absl::optional<std::string> altered_;  // the next question
  Answered answered_ = Answered::kNone;
  bool has_slot_ = false;
  std::shared_ptr<Questions> self_;  // from Start to End
  // From a question's sending until its answer is reported.
  std::shared_ptr<transport::UnaryCall> call_;
};

// The function is about to be called with the request of `call`. `found`: an
// entry of the key was found. Completes `tuned`.
void PrepareToLearn(ServingContext* context, const FunctionStatePtr& state,
                    const cache::key::Key& key,
                    const transport::IncomingCall& call, bool found,
                    TunedCall* tuned);

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_QUESTION_H_
