// SPDX-License-Identifier: Apache-2.0
// ShadowVerdict: the conclusion from a ShadowReport.
//
// It is about hits by masks: another request filled the entry of such a call,
// and the two requests differ only in masked fields. The control are calls with
// the same request as the one that filled their entry. A function that answers
// those differently varies by itself.
//
// Differences by masks count against the masks unless the control accounts for
// them. Missing evidence accounts for nothing. Differences are judged as a
// whole and for each path of the answer, because a function may vary in one
// path and read a masked field for another:
// - wrong: the function was not seen to vary in kEnoughControl repeats or more,
//   there or at all; or it differs more by masks than it does by itself, at
//   1 % (Fisher's one-sided test, times the number of tests, after Bonferroni).
// - varies: there are kEnoughControl repeats, they differ, too, the test is far
//   from separating the two rates (20 %), each path that differed by masks has
//   differed by itself, too, and each composite that did has been repeated.
// - suspect: all other cases.
// Reports are read repeatedly, and calls of one composite are alike. So 1 % is
// not one in a hundred trials, and errs towards "wrong".
//
// Plain values and pure functions; thread-safe.
#ifndef FNCACHE_PROXY_TELEMETRY_SHADOW_VERDICT_H_
#define FNCACHE_PROXY_TELEMETRY_SHADOW_VERDICT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "proxy/telemetry/labels.h"
#include "proxy/telemetry/shadow_report.h"

namespace fncache::proxy::telemetry {

enum class ShadowJudgement {
  kNotEnough,     // no difference, in too few hits
  kNoDifference,  // none in at least ShadowReport::kEnough hits
  kSuspect,       // it differs, and the cause is not known yet
  kWrong,         // the masks hide something that the function reads
  kVaries,        // it differs, and no more than it does by itself
};
// "not_enough", "no_difference", "suspect", "wrong", "varies".
const char* ShadowJudgementName(ShadowJudgement judgement);

struct ShadowVerdict {
  // With fewer exact repeats the control accounts for nothing. A function that
  // did not vary in 30 varies in at most 10 % of calls, by the rule of three.
  static constexpr uint64_t kEnoughControl = 30;

  ShadowJudgement judgement = ShadowJudgement::kNotEnough;
  // The hits that the verdict is about: those by masks. It is about exact
  // repeats if there is no mask, or if repeats differ and too few hits by masks
  // have no difference.
  ShadowBy about = ShadowBy::kMask;
  // The fraction of wrong answers is at most this, at 95 % confidence. Absent
  // without a hit. Without a difference in n hits it is 3/n (the rule of three:
  // Hanley and Lippman-Hand, JAMA 249, 1983), else the upper end of Wilson's
  // interval (Journal of the American Statistical Association 22, 1927).
  absl::optional<double> at_most;
  // The indices in ShadowReport::paths that are the reason. These paths differ
  // more by masks than by themselves (wrong), or perhaps do (suspect).
  std::vector<size_t> paths;
  // Exact repeats differ. This does not depend on `about`.
  bool varies = false;

  // Whether an operator should be warned.
  bool bad() const {
    return varies || judgement == ShadowJudgement::kWrong ||
           judgement == ShadowJudgement::kSuspect;
  }
};
ShadowVerdict Judge(const ShadowReport& report);

// Whether a rate is larger than the control's by more than chance. The result
// is corrected for `tests` such tests.
bool ExceedsControl(const ShadowReport::Count& count,
                    const ShadowReport& report, size_t tests);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_SHADOW_VERDICT_H_
