// SPDX-License-Identifier: Apache-2.0
// ShadowVerdict: what follows from a ShadowReport.
//
// It is about hits by the masks: calls whose entry was filled by another
// request, equal but for what the masks hide. Calls with the very request that
// filled their entry are the control: a function that answers those differently
// varies by itself.
//
// Differences by masks count against the masks unless the control accounts for
// them, and want of evidence accounts for nothing. They are judged as a whole
// and for each path of the answer, since a function may vary in one and read
// what a mask hides for another:
// - wrong: the function was not seen to vary in kEnoughControl repeats or more,
//   there or at all; or it differs more by masks than it does by itself, at
//   1 % (Fisher's one-sided test, times the number of tests, after Bonferroni).
// - varies: there are kEnoughControl repeats, they differ too, the test is far
//   from telling the shares apart (20 %), each path that differed by masks has
//   differed by itself, too, and each composite that did has been repeated.
// - suspect: anything between.
// Reports are looked at again and again, and calls of one composite are alike,
// so 1 % is not one in a hundred trials, and errs towards "wrong".
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
  kSuspect,       // it differs, and it cannot be told yet why
  kWrong,         // the masks hide something that the function reads
  kVaries,        // it differs, and no more than it does by itself
};
// "not_enough", "no_difference", "suspect", "wrong", "varies".
const char* ShadowJudgementName(ShadowJudgement judgement);

struct ShadowVerdict {
  // With fewer exact repeats the control accounts for nothing. A function that
  // did not vary in 30 does so in at most 10 % of calls, by the rule of three.
  static constexpr uint64_t kEnoughControl = 30;

  ShadowJudgement judgement = ShadowJudgement::kNotEnough;
  // What it is about: hits by masks; or exact repeats, where there is no mask,
  // or where they differ and too few hits by masks do not.
  ShadowBy about = ShadowBy::kMask;
  // The share of wrong answers is at most this, at 95 % confidence. Absent
  // where there was no hit. Without a difference in n hits it is 3/n (the rule
  // of three: Hanley and Lippman-Hand, JAMA 249, 1983), else the upper end of
  // Wilson's interval (Journal of the American Statistical Association 22,
  // 1927).
  absl::optional<double> at_most;
  // Of ShadowReport::paths, those that are the reason: they differ by masks,
  // and not as much by themselves (wrong), or that cannot be told (suspect).
  std::vector<size_t> paths;
  // Exact repeats differ, whatever the verdict is about.
  bool varies = false;

  // Whether an operator should be warned.
  bool bad() const {
    return varies || judgement == ShadowJudgement::kWrong ||
           judgement == ShadowJudgement::kSuspect;
  }
};
ShadowVerdict Judge(const ShadowReport& report);

// Whether a share is larger than the control's by more than chance, so clearly
// that it would be among `tests` such tests, too.
bool ExceedsControl(const ShadowReport::Count& count,
                    const ShadowReport& report, size_t tests);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_SHADOW_VERDICT_H_
