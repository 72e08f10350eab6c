// SPDX-License-Identifier: Apache-2.0
#include "runner/load/compare.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/utf8.h"
#include "runner/load/format.h"
#include "runner/load/threshold.h"

namespace fncache::runner::load {
namespace {

constexpr double kZ = 1.96;  // two-sided 95 %

Interval Rate(uint64_t count, double seconds) {
  if (seconds <= 0) return {};
  const auto n = static_cast<double>(count);
  const double spread = kZ * std::sqrt(std::max(n, 1.0));
  return {n / seconds, std::max(0.0, n - spread) / seconds,
          (n + spread) / seconds};
}

Interval Fraction(double part, double whole) {
  if (whole <= 0) return {};
  const double p = part / whole;
  const double z2 = kZ * kZ / whole;
  const double middle = (p + z2 / 2) / (1 + z2);
  const double spread =
      kZ * std::sqrt(p * (1 - p) / whole + z2 / whole / 4) / (1 + z2);
  return {p, std::max(0.0, middle - spread), std::min(1.0, middle + spread)};
}

Interval Percentile(const LatencySummary& latency, uint64_t count,
                    double fraction) {
  const auto n = static_cast<double>(count);
  if (count == 0) return {};
  const double spread = kZ * std::sqrt(fraction * (1 - fraction) / n);
  const auto at = [&](double part) {
    return std::min(
        latency.max,
        PercentileOf(latency.buckets, std::min(1.0, std::max(0.0, part)) * 100)
            .value_or(0));
  };
  return {at(fraction), at(fraction - spread), at(fraction + spread)};
}

Change Make(std::string name, Change::Unit unit, const Interval& before,
            const Interval& after, bool more_is_worse) {
  Change change;
  change.name = std::move(name);
  change.unit = unit;
  change.before = before;
  change.after = after;
  change.more_is_worse = more_is_worse;
  if (unit == Change::Unit::kFraction) {
    change.change = after.value - before.value;
  } else if (before.value > 0) {
    change.change = after.value / before.value - 1;
  }
  change.sure = before.high < after.low || after.high < before.low;
  return change;
}

}  // namespace

std::vector<Change> Compare(const LoadResults& before,
                            const LoadResults& after) {
  using Unit = Change::Unit;
  std::vector<Change> changes;
  const auto& a = before.pipelines;
  const auto& b = after.pipelines;
  changes.push_back(Make("pipelines a second", Unit::kRate,
                         Rate(a.count, before.duration),
                         Rate(b.count, after.duration), false));
  changes.push_back(Make(
      "pipelines that failed", Unit::kFraction,
      Fraction(static_cast<double>(a.errors), static_cast<double>(a.count)),
      Fraction(static_cast<double>(b.errors), static_cast<double>(b.count)),
      true));
  const std::pair<const char*, double> percentiles[] = {
      {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}};
  for (const auto& [name, fraction] : percentiles) {
    changes.push_back(Make(absl::StrCat("pipelines: ", name), Unit::kSeconds,
                           Percentile(a.latency, a.count, fraction),
                           Percentile(b.latency, b.count, fraction), true));
  }
  const auto hits = [](const LoadResults& results) {
    double hit = 0, all = 0;
    for (const CallResults& calls : results.calls) {
      const auto count = static_cast<double>(calls.count);
      const bool counts = calls.outcome == "hit" || calls.outcome == "stale" ||
                          calls.outcome == "collapsed";
      if (counts) hit += count;
      if (counts || calls.outcome == "miss") all += count;
    }
    return Fraction(hit, all);
  };
  if (before.hit_rate.has_value() && after.hit_rate.has_value()) {
    changes.push_back(
        Make("hit rate", Unit::kFraction, hits(before), hits(after), false));
  }
  changes.push_back(Make("function runs a second", Unit::kRate,
                         Rate(before.function_runs, before.duration),
                         Rate(after.function_runs, after.duration), true));
  for (const CallResults& one : before.calls) {
    for (const CallResults& other : after.calls) {
      if (one.step != other.step || one.function != other.function ||
          one.outcome != other.outcome) {
        continue;
      }
      for (const auto& [name, fraction] : percentiles) {
        if (fraction == 0.9) continue;
        changes.push_back(
            Make(absl::StrCat(one.step, ", ", one.outcome, ": ", name),
                 Unit::kSeconds, Percentile(one.latency, one.count, fraction),
                 Percentile(other.latency, other.count, fraction), true));
      }
    }
  }
  return changes;
}

std::vector<Change> Regressions(const std::vector<Change>& changes,
                                double most) {
  std::vector<Change> worse;
  for (const Change& change : changes) {
    if (!change.sure) continue;
    // Errors or times where there were none before are any change.
    const double by = change.change.value_or(INFINITY);
    if ((change.more_is_worse ? by : -by) > most) worse.push_back(change);
  }
  return worse;
}

std::string FormatInterval(const Interval& interval, Change::Unit unit) {
  const auto one = [&](double value) {
    return unit == Change::Unit::kSeconds ? FormatSeconds(value)
           : unit == Change::Unit::kRate  ? FormatRate(value)
                                          : FormatPercent(value);
  };
  return absl::StrCat(one(interval.value), " (", one(interval.low), " to ",
                      one(interval.high), ")");
}

std::string FormatChange(const Change& change) {
  if (!change.change.has_value()) return change.sure ? "new" : "same";
  return absl::StrFormat(
      "%+.1f%s%s", *change.change * 100,
      change.unit == Change::Unit::kFraction ? " points" : "%",
      change.sure ? "" : " (may be chance)");
}

std::string CompareText(const std::vector<Change>& changes) {
  std::string text = absl::StrFormat("%-32s %-32s %-32s %s\n", "", "before",
                                     "after", "change");
  for (const Change& change : changes) {
    absl::StrAppendFormat(
        &text, "%-32s %-32s %-32s %s\n", Printable(change.name),
        FormatInterval(change.before, change.unit),
        FormatInterval(change.after, change.unit), FormatChange(change));
  }
  return absl::StrCat(text, "(in parentheses: 95 % intervals)\n");
}

}  // namespace fncache::runner::load
