// SPDX-License-Identifier: Apache-2.0
// Proof: the order in which a step is asked whether it reads drift (DESIGN,
// "Questions"). It is pure data: the caller sends what next() names and reports
// the answer, until the proof ends.
//
//   question 1, 2, 3, 4, all the same            -> the proof ends: proven
//   a question differs -> the request as it came -> that question, twice again
//     the request differs, or the question is now the same -> varies
//     the request is the same, and the question differs again -> the step reads
//       after questions with all drift altered: questions 1 to 4 once more,
//         with versions alone altered
//       after questions about versions alone: the proof ends: read
//   an error or a time-out                       -> the proof ends: failed
//
// The question is sent twice again because of functions whose answers
// alternate: the second time they give the answer of before.
//
// Thread-compatible. A plain value.
#ifndef FNCACHE_PROXY_SERVING_PROOF_H_
#define FNCACHE_PROXY_SERVING_PROOF_H_

#include <cstdint>

namespace fncache::proxy::serving {

// The drift that a step is known to read.
enum class Reads : uint8_t {
  kNothing,
  // Drift, and the questions about versions alone did not end yet. Until they
  // do, no drift is believed.
  kUndecided,
  kTimes,
  kAll,
};

// The answer to a question, compared with the entry's answer.
enum class Answered : uint8_t { kSame, kDiffers, kNone };

enum class ProofResult : uint8_t { kProven, kRead, kVaries, kFailed };

// A request to send.
struct Question {
  // 1 to 4: how drift is altered. 0: the request as it came.
  int number = 0;
  // True if times stay as they came.
  bool versions_alone = false;
};

class Proof {
 public:
  static constexpr int kQuestions = 4;

  // `known` is what the step is known to read; not kAll.
  explicit Proof(Reads known)
      : reads_(known), versions_alone_(known != Reads::kNothing) {}

  // Precondition of both: the proof has not ended.
  Question next() const {
    return {stage_ == Stage::kAsItCame ? 0 : number_, versions_alone_};
  }
  void Take(Answered answer);

  // Ends the proof without an answer, if it has not ended.
  void Abort() {
    if (!ended()) End(ProofResult::kFailed);
  }

  bool ended() const { return stage_ == Stage::kEnded; }

  // The drift that the step reads, by this proof and what was known before. It
  // counts at once, before the proof ends.
  Reads reads() const { return reads_; }

  // Precondition: the proof has ended. kRead if it found that the step reads
  // drift, also if versions alone were proven.
  ProofResult result() const { return result_; }
  // True if the four questions got the entry's answer.
  bool proven() const { return proven_; }
  // True if its questions, now or at its end, alter versions alone.
  bool versions_alone() const { return versions_alone_; }

 private:
  enum class Stage : uint8_t {
    kQuestion,
    kAsItCame,
    kAgain,
    kOnceMore,
    kEnded
  };

  void End(ProofResult result) {
    stage_ = Stage::kEnded;
    result_ = result;
  }

  Stage stage_ = Stage::kQuestion;
  ProofResult result_ = ProofResult::kFailed;
  Reads reads_;
  bool versions_alone_;
  bool found_ = false;  // that the step reads drift
  bool proven_ = false;
  int number_ = 1;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_PROOF_H_
