// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/outcome_chart.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proxy/telemetry/labels.h"
#include "proxy/telemetry/page_text.h"

namespace fncache::proxy::telemetry {
namespace {

// These are in units of the drawing, which the page stretches.
constexpr int kMinuteWidth = 10;
constexpr int kBarWidth = 8;
constexpr int kHeight = 100;
// The least height of a bar, so that every count can be seen.
constexpr double kLeastHeight = 1.5;

using Calls = std::array<uint64_t, kOutcomes>;

// The order of outcomes from the bottom: answers from the cache come first.
std::vector<size_t> Order() {
  std::vector<size_t> order = {static_cast<size_t>(Outcome::kHit),
                               static_cast<size_t>(Outcome::kStaleHit),
                               static_cast<size_t>(Outcome::kCollapsed)};
  for (size_t o = 0; o < kOutcomes; ++o) {
    if (std::find(order.begin(), order.end(), o) == order.end()) {
      order.push_back(o);
    }
  }
  return order;
}

uint64_t Sum(const Calls& calls) {
  return std::accumulate(calls.begin(), calls.end(), uint64_t{0});
}

// The next number of the form 1, 2, 3 or 5 times a power of ten.
uint64_t RoundUp(uint64_t n) {
  for (uint64_t power = 1;; power *= 10) {
    for (const uint64_t digit : {1, 2, 3, 5}) {
      if (digit * power >= n || power > UINT64_MAX / 100) return digit * power;
    }
  }
}

// "1,234 hit, 5 miss".
std::string Numbers(const Calls& calls) {
  std::vector<std::string> parts;
  for (const size_t o : Order()) {
    if (calls[o] == 0) continue;
    parts.push_back(absl::StrCat(Count(static_cast<int64_t>(calls[o])), " ",
                                 OutcomeWords(static_cast<Outcome>(o))));
  }
  return absl::StrJoin(parts, ", ");
}

std::string ClockText(absl::Time time) {
  return absl::FormatTime("%H:%M", time, absl::UTCTimeZone());
}

// The bars of each outcome as one path, stacked on those before it.
void AppendBars(const OutcomeHour::Minutes& minutes, uint64_t top,
                std::string* out) {
  std::array<double, OutcomeHour::kMinutes> filled{};
  for (const size_t o : Order()) {
    std::string bars;
    for (size_t m = 0; m < minutes.size(); ++m) {
      if (minutes[m][o] == 0) continue;
      const double height =
          std::max(kLeastHeight, kHeight * static_cast<double>(minutes[m][o]) /
                                     static_cast<double>(top));
      filled[m] += height;
      absl::StrAppendFormat(&bars, "M%d %.1fh%dv%.1fh-%dz",
                            static_cast<int>(m) * kMinuteWidth + 1,
                            kHeight - filled[m], kBarWidth, height, kBarWidth);
    }
    if (bars.empty()) continue;
    absl::StrAppend(out, "<path class=\"o-",
                    OutcomeName(static_cast<Outcome>(o)), "\" d=\"", bars,
                    "\"/>");
  }
}

}  // namespace

void AppendOutcomeChart(const OutcomeHour::Minutes& minutes,
                        absl::Time last_minute, bool titles, std::string* out) {
  Calls all{};
  uint64_t most = 0;
  for (const Calls& minute : minutes) {
    most = std::max(most, Sum(minute));
    for (size_t o = 0; o < kOutcomes; ++o) all[o] += minute[o];
  }
  if (most == 0) {
    absl::StrAppend(out, "<p class=dim>No calls in the last hour.</p>\n");
    return;
  }
  const absl::Time first =
      last_minute - absl::Minutes(static_cast<int>(minutes.size()) - 1);
  const int width = kMinuteWidth * static_cast<int>(minutes.size());
  const uint64_t top = RoundUp(most);
  absl::StrAppend(out, "<figure class=chart><span class=dim>",
                  Counted(static_cast<int64_t>(top), "call", "calls"),
                  " a minute</span>\n<svg viewBox=\"0 0 ", width, " ", kHeight,
                  "\" preserveAspectRatio=\"none\" role=\"img\" "
                  "aria-label=\"Calls in the last hour: ",
                  Numbers(all), "\">");
  absl::StrAppend(out, "<path class=\"grid\" d=\"M0 .5h", width, "M0 50h",
                  width, "M0 99.5h", width, "\"/>");
  AppendBars(minutes, top, out);
  for (size_t m = 0; titles && m < minutes.size(); ++m) {
    if (Sum(minutes[m]) == 0) continue;
    absl::StrAppend(out, "<rect class=\"at\" x=\"",
                    static_cast<int>(m) * kMinuteWidth, "\" width=\"",
                    kMinuteWidth, "\" height=\"", kHeight, "\"><title>");
    absl::StrAppend(out, ClockText(first + absl::Minutes(static_cast<int>(m))),
                    " ", Numbers(minutes[m]), "</title></rect>");
  }
  absl::StrAppend(out, "</svg>\n<figcaption class=dim><span>", ClockText(first),
                  "</span><span>", Numbers(all), "</span><span>",
                  ClockText(last_minute),
                  " UTC</span></figcaption></figure>\n");
}

void AppendOutcomeLegend(const OutcomeHour::Hour& hour, std::string* out) {
  Calls all{};
  for (const OutcomeHour::Minutes& function : hour.functions) {
    for (const Calls& minute : function) {
      for (size_t o = 0; o < kOutcomes; ++o) all[o] += minute[o];
    }
  }
  if (Sum(all) == 0) return;
  absl::StrAppend(out, "<p class=legend>");
  for (const size_t o : Order()) {
    if (all[o] == 0) continue;
    const char* const name = OutcomeName(static_cast<Outcome>(o));
    absl::StrAppend(out, "<span><svg class=\"key o-", name,
                    "\" viewBox=\"0 0 1 1\" aria-hidden=\"true\"><rect "
                    "width=\"1\" height=\"1\"/></svg> ",
                    OutcomeWords(static_cast<Outcome>(o)), "</span> ");
  }
  absl::StrAppend(out, "</p>\n");
}

}  // namespace fncache::proxy::telemetry
