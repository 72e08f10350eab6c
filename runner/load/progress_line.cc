// SPDX-License-Identifier: Apache-2.0
#include "runner/load/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "common/file.h"
#include "common/utf8.h"
#include "runner/load/format.h"
#include "runner/load/real_scheduler.h"
#include "runner/load/results.h"

namespace fncache::runner::load {
namespace {

constexpr int64_t kPlainEvery = 5'000'000'000;
constexpr int64_t kLineEvery = 500'000'000;

}  // namespace

void Say(const std::string& text) {
  if (!WriteAll(STDERR_FILENO, text)) return;
}

ProgressLine::ProgressLine(LoadOptions::Progress how)
    : none_(how == LoadOptions::Progress::kNone),
      terminal_(how == LoadOptions::Progress::kAuto &&
                isatty(STDERR_FILENO) != 0),
      began_(MonotonicNanos()),
      reported_(began_) {}

void ProgressLine::Tell(const Measure& measure, const char* phase,
                        uint64_t ready, uint64_t composites) {
  const int64_t now = MonotonicNanos();
  if (none_ || now - reported_ < (terminal_ ? kLineEvery : kPlainEvery)) return;
  reported_ = now;
  const std::string line = LineOf(measure, phase, ready, composites, now);
  Say(terminal_ ? absl::StrCat("\r\033[K", line)
                : absl::StrCat("fncache load: ", line, "\n"));
  shown_ = terminal_;
}

void ProgressLine::Warn(const std::string& text) {
  if (none_) return;
  End();
  Say(absl::StrCat("fncache load: ", Printable(text), "\n"));
}

void ProgressLine::End() {
  if (shown_) Say("\r\033[K");
  shown_ = false;
}

std::string ProgressLine::LineOf(const Measure& measure,
                                 absl::string_view phase, uint64_t ready,
                                 uint64_t composites, int64_t now) const {
  const std::string since =
      FormatSeconds(std::floor(static_cast<double>(now - began_) / 1e9));
  if (phase == "settle") {  // which is in no count
    return absl::StrCat(since, " settle: ", ready, " of ", composites,
                        " ready");
  }
  if (phase == "drain") {
    return absl::StrCat(since,
                        " over: waits for the pipelines that are under way");
  }
  const Measure::Glimpse glimpse = measure.Look();
  const TimelinePoint& last = glimpse.last;
  const double seconds = std::max(last.seconds, 1e-9);
  const auto hits =
      static_cast<double>(last.hits + last.stale + last.collapsed);
  const double asked = hits + static_cast<double>(last.misses);
  std::string line = absl::StrFormat(
      "%s %s: %s pipelines, %s calls, hit rate %s, p99 %s, %d errors", since,
      phase, FormatRate(static_cast<double>(last.pipelines) / seconds),
      FormatRate(static_cast<double>(last.calls) / seconds),
      FormatPercent(asked > 0 ? absl::optional<double>(hits / asked)
                              : absl::nullopt),
      FormatSeconds(last.p99), glimpse.errors);
  if (composites > 0) {
    absl::StrAppend(&line, ", ", ready, " of ", composites, " ready");
  }
  return line;
}

}  // namespace fncache::runner::load
