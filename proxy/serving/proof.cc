// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/proof.h"

namespace fncache::proxy::serving {

void Proof::Take(Answered answer) {
  if (answer == Answered::kNone) return End(ProofResult::kFailed);
  const bool same = answer == Answered::kSame;
  switch (stage_) {
    case Stage::kQuestion:
      if (!same) {
        stage_ = Stage::kAsItCame;
      } else if (number_ < kQuestions) {
        ++number_;
      } else {
        proven_ = true;
        if (versions_alone_) reads_ = Reads::kTimes;
        End(found_ ? ProofResult::kRead : ProofResult::kProven);
      }
      return;
    case Stage::kAsItCame:
      if (!same) return End(ProofResult::kVaries);
      stage_ = Stage::kAgain;
      return;
    case Stage::kAgain:
      if (same) return End(ProofResult::kVaries);
      stage_ = Stage::kOnceMore;
      return;
    case Stage::kOnceMore:
      if (same) return End(ProofResult::kVaries);
      found_ = true;
      if (versions_alone_) {
        reads_ = Reads::kAll;
        return End(ProofResult::kRead);
      }
      reads_ = Reads::kUndecided;
      versions_alone_ = true;
      number_ = 1;
      stage_ = Stage::kQuestion;
      return;
    case Stage::kEnded:
      return;
  }
}

}  // namespace fncache::proxy::serving
