// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/shadow_verdict.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "proxy/telemetry/fisher.h"

namespace fncache::proxy::telemetry {
namespace {

using Count = ShadowReport::Count;

constexpr double kProof = 0.01;
constexpr double kDoubt = 0.2;

// The upper end of Wilson's interval at 95 %. Precondition: there are hits.
double WilsonUpper(const Count& count) {
  if (count.differences == count.hits) return 1;
  constexpr double kZ = 1.959964;
  const auto n = static_cast<double>(count.hits);
  const double p = count.rate();
  const double middle = p + kZ * kZ / (2 * n);
  const double spread = kZ * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n));
  return std::min(1.0, (middle + spread) / (1 + kZ * kZ / n));
}

// The probability that chance explains why `count` differs more than `control`.
double Chance(const Count& count, const Count& control, size_t tests) {
  const double p = FisherGreater({count.differences, count.hits},
                                 {control.differences, control.hits});
  return std::min(1.0, p * static_cast<double>(tests));
}

enum class Weight { kExplained, kDoubtful, kProof };

// How strongly the differences at one path count against the masks. Unknown
// facts count for neither side: the path's counts may be another's, and any
// path may have differed in an answer whose paths were not sought.
Weight Weigh(const ShadowReport::Path& path, const ShadowReport& report,
             size_t tests) {
  Count masks = report.of(ShadowBy::kMask);
  Count control = report.of(ShadowBy::kExact);
  masks.differences = std::min(masks.hits, path.certain(ShadowBy::kMask));
  if (masks.differences == 0) return Weight::kExplained;
  const uint64_t seen = path.of(ShadowBy::kExact);
  control.differences =
      std::min(control.hits, seen + report.unexamined_of(ShadowBy::kExact));
  // A single difference may be at a name that the function makes up each time.
  const bool never = control.hits >= ShadowVerdict::kEnoughControl &&
                     control.differences == 0 && masks.differences > 1;
  const double chance = Chance(masks, control, tests);
  if (never || chance <= kProof) return Weight::kProof;
  return seen == 0 || chance <= kDoubt ? Weight::kDoubtful : Weight::kExplained;
}

// Hits by masks differ: finds out if the control accounts for that.
void Weigh(const ShadowReport& report, ShadowVerdict* verdict) {
  const Count& control = report.of(ShadowBy::kExact);
  const bool enough = control.hits >= ShadowVerdict::kEnoughControl;
  const size_t tests = 1 + report.paths.size();
  const double chance = Chance(report.of(ShadowBy::kMask), control, tests);
  std::vector<size_t> proof;
  std::vector<size_t> doubtful;
  for (size_t i = 0; i < report.paths.size(); ++i) {
    const Weight weight = Weigh(report.paths[i], report, tests);
    if (weight == Weight::kProof) proof.push_back(i);
    if (weight == Weight::kDoubtful) doubtful.push_back(i);
  }
  if (!proof.empty() || chance <= kProof ||
      (enough && control.differences == 0)) {
    verdict->judgement = ShadowJudgement::kWrong;
    verdict->paths = std::move(proof);
  } else if (!enough || chance <= kDoubt || report.unrepeated > 0 ||
             !doubtful.empty() ||
             report.unexamined_of(ShadowBy::kMask) >=
                 report.of(ShadowBy::kMask).differences) {
    verdict->judgement = ShadowJudgement::kSuspect;
    verdict->paths = std::move(doubtful);
  } else {
    verdict->judgement = ShadowJudgement::kVaries;
  }
}

}  // namespace

const char* ShadowJudgementName(ShadowJudgement judgement) {
  switch (judgement) {
    case ShadowJudgement::kNotEnough:
      return "not_enough";
    case ShadowJudgement::kNoDifference:
      return "no_difference";
    case ShadowJudgement::kSuspect:
      return "suspect";
    case ShadowJudgement::kWrong:
      return "wrong";
    case ShadowJudgement::kVaries:
      break;
  }
  return "varies";
}

bool ExceedsControl(const Count& count, const ShadowReport& report,
                    size_t tests) {
  return Chance(count, report.of(ShadowBy::kExact), tests) <= kProof;
}

ShadowVerdict Judge(const ShadowReport& report) {
  const Count& masks = report.of(ShadowBy::kMask);
  ShadowVerdict verdict;
  verdict.varies = report.of(ShadowBy::kExact).differences > 0;
  // Without masks there are no hits by them, unless `key: tag` makes keys.
  if ((report.masks.empty() && masks.hits == 0) ||
      (verdict.varies && masks.differences == 0 &&
       masks.hits < ShadowReport::kEnough)) {
    verdict.about = ShadowBy::kExact;
  }
  const Count& count = report.of(verdict.about);
  if (count.hits == 0) return verdict;
  if (count.differences == 0) {
    verdict.at_most = std::min(1.0, 3 / static_cast<double>(count.hits));
    if (count.hits >= ShadowReport::kEnough) {
      verdict.judgement = ShadowJudgement::kNoDifference;
    }
    return verdict;
  }
  verdict.at_most = WilsonUpper(count);
  if (verdict.about == ShadowBy::kExact) {
    verdict.judgement = ShadowJudgement::kVaries;
  } else {
    Weigh(report, &verdict);
  }
  return verdict;
}

}  // namespace fncache::proxy::telemetry
