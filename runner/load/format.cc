// SPDX-License-Identifier: Apache-2.0
#include "runner/load/format.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/duration.h"

namespace fncache::runner::load {
namespace {

std::string ThreeDigits(double value) {
  const int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
  return absl::StrFormat("%.*f", decimals, value);
}

}  // namespace

std::string FormatSeconds(double seconds) {
  if (seconds >= 100) {
    return FormatGoDuration(
        absl::Seconds(static_cast<int64_t>(std::lround(seconds))));
  }
  if (seconds >= 1) return ThreeDigits(seconds) + "s";
  if (seconds >= 1e-3) return ThreeDigits(seconds * 1e3) + "ms";
  if (seconds <= 0) return "0s";
  return absl::StrFormat("%.0fus", std::ceil(seconds * 1e6));
}

std::string FormatRate(double a_second) {
  return a_second < 100 ? absl::StrFormat("%.1f/s", a_second)
                        : absl::StrFormat("%.0f/s", a_second);
}

std::string FormatPercent(absl::optional<double> share) {
  return share.has_value() ? absl::StrFormat("%.1f%%", *share * 100) : "-";
}

std::string FormatValue(absl::string_view expression,
                        absl::optional<double> value) {
  if (!value.has_value()) return "no data";
  const bool time = (absl::StartsWith(expression, "pipeline") ||
                     absl::StartsWith(expression, "service") ||
                     absl::StartsWith(expression, "call")) &&
                    !absl::StrContains(expression, ":count") &&
                    !absl::StrContains(expression, ":rate");
  return time ? FormatSeconds(*value) : absl::StrFormat("%.6g", *value);
}

}  // namespace fncache::runner::load
