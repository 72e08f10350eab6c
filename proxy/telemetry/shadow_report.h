// SPDX-License-Identifier: Apache-2.0
// ShadowReport: what `mode: shadow` found out about one function, and the
// verdict that follows from it, as text and as JSON.
//
// The verdict is about hits by the masks: calls whose entry was filled by
// another request, equal but for what the masks hide. Calls with the very
// request that filled their entry are the control: a function that answers
// those differently varies by itself.
//
// Plain values and pure functions; thread-safe.
#ifndef FNCACHE_PROXY_TELEMETRY_SHADOW_REPORT_H_
#define FNCACHE_PROXY_TELEMETRY_SHADOW_REPORT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "proxy/telemetry/labels.h"

namespace fncache::proxy::telemetry {

struct ShadowReport {
  // With fewer hits and no difference nothing is said yet.
  static constexpr uint64_t kEnough = 300;

  struct Count {
    uint64_t hits = 0;         // that were compared
    uint64_t differences = 0;  // of them
  };
  struct Mask {
    std::string path;
    uint64_t values = 0;  // different ones in requests, an estimate
    Count changed;        // hits by masks in which it had changed
    Count alone;          // those in which nothing else had
  };
  struct Path {
    std::string path;  // of the answer, `*` for list elements
    std::array<uint64_t, kShadowBys> differences{};
    absl::Time first;
    absl::Time last;
    uint64_t sum() const {
      uint64_t all = 0;
      for (const uint64_t by : differences) all += by;
      return all;
    }
  };

  std::string function;
  absl::Time since;
  uint64_t lookups = 0;
  std::array<Count, kShadowBys> by{};  // by ShadowBy
  uint64_t uncompared = 0;  // would have been hits; no answer to compare
  // Estimates of how many there were, in look-ups and in hits by masks.
  uint64_t composites = 0;
  uint64_t mask_composites = 0;
  uint64_t masked_values = 0;  // combinations of all masked values
  uint64_t mask_masked_values = 0;
  // Requests too large for saying which masks' values changed.
  uint64_t unread = 0;
  std::vector<Mask> masks;  // in the order of MaskSet::canonical
  // What differed first, the most frequent one first; differences of answers
  // that were not looked into are counted by `unexamined`.
  std::vector<Path> paths;
  uint64_t unexamined = 0;

  const Count& of(ShadowBy what) const { return by[static_cast<size_t>(what)]; }
};

enum class ShadowJudgement {
  kNotEnough,     // no difference, in too few hits
  kNoDifference,  // none in at least kEnough hits
  kWrong,         // the masks hide something that the function reads
  kVaries,        // it differs, and no more than it does by itself
};
// "not_enough", "no_difference", "wrong", "varies".
const char* ShadowJudgementName(ShadowJudgement judgement);

struct ShadowVerdict {
  ShadowJudgement judgement = ShadowJudgement::kNotEnough;
  // What it is about: hits by masks; or exact repeats, where there is no mask.
  ShadowBy about = ShadowBy::kMask;
  // The share of wrong answers is at most this, at 95 % confidence. Absent
  // where there was no hit. Without a difference in n hits it is 3/n (the rule
  // of three: Hanley and Lippman-Hand, JAMA 249, 1983), else the upper end of
  // Wilson's interval (Journal of the American Statistical Association 22,
  // 1927).
  absl::optional<double> at_most;
};
ShadowVerdict Judge(const ShadowReport& report);

// One paragraph and tables for each function.
std::string ShadowText(absl::Span<const ShadowReport> reports);
// {"functions": [...]}, on one line.
std::string ShadowJson(absl::Span<const ShadowReport> reports);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_SHADOW_REPORT_H_
