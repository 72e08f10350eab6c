// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/page_text.h"

#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/html.h"
#include "common/utf8.h"
#include "proxy/telemetry/status.h"

namespace fncache::proxy::telemetry {

std::string Count(int64_t n) {
  std::string digits = absl::StrCat(n);
  const int first = n < 0 ? 1 : 0;
  for (int i = static_cast<int>(digits.size()) - 3; i > first; i -= 3) {
    digits.insert(i, ",");
  }
  return digits;
}

std::string Counted(int64_t n, const char* one, const char* many) {
  return absl::StrCat(Count(n), " ", n == 1 ? one : many);
}

std::string Bytes(uint64_t n) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (n < 1024) return absl::StrCat(n, " B");
  double value = static_cast<double>(n) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < sizeof(kUnits) / sizeof(*kUnits)) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string Latency(absl::Duration duration) {
  const double us = absl::ToDoubleMicroseconds(duration);
  if (us < 999.5) return absl::StrFormat("%.0f µs", us);
  if (us < 99'950) return absl::StrFormat("%.1f ms", us / 1e3);
  if (us < 999'500) return absl::StrFormat("%.0f ms", us / 1e3);
  return absl::StrFormat("%.2f s", us / 1e6);
}

std::string OutcomeWords(Outcome outcome) {
  return absl::StrReplaceAll(OutcomeName(outcome), {{"_", " "}});
}

std::string Percent(absl::optional<double> share) {
  if (!share.has_value()) return kDash;
  if (*share < 1 && *share >= 0.9995) return "99.9 %";
  return absl::StrFormat("%.1f %%", 100 * *share);
}

std::string Saved(absl::Duration duration) {
  if (duration == absl::ZeroDuration()) return "0";
  if (duration < absl::Milliseconds(100)) return Latency(duration);
  if (duration < absl::Seconds(10)) {
    return absl::StrFormat("%.1fs", absl::ToDoubleSeconds(duration));
  }
  return SpanText(duration);
}

std::string PerSecond(double count, absl::Duration length) {
  const double seconds = absl::ToDoubleSeconds(length);
  const double rate = seconds > 0 ? count / seconds : 0;
  if (rate == 0) return "0/s";
  if (rate < 1) return absl::StrFormat("%.2f/s", rate);
  if (rate < 100) return absl::StrFormat("%.1f/s", rate);
  return Count(std::lround(rate)) + "/s";
}

std::string Shown(absl::string_view text) {
  return EscapeHtml(Printable(text));
}

std::string ShownLines(const std::vector<std::string>& texts) {
  return absl::StrJoin(texts, "\n", [](std::string* to, const auto& text) {
    to->append(Shown(text));
  });
}

}  // namespace fncache::proxy::telemetry
