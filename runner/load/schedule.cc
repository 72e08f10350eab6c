// SPDX-License-Identifier: Apache-2.0
#include "runner/load/schedule.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/duration.h"
#include "common/utf8.h"

namespace fncache::runner::load {

absl::StatusOr<std::vector<Stage>> ParseStages(absl::string_view text) {
  const auto refused = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("--stages: \"", Printable(text),
                     "\" is not accepted; accepted: DURATION:RATE,... with "
                     "durations above 0 and rates from 0 to 1000000, such as "
                     "30s:10,2m:100, one rate above 0"));
  };
  std::vector<Stage> stages;
  bool any = false;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> halves =
        absl::StrSplit(part, absl::MaxSplits(':', 1));
    const auto duration = ParseGoDuration(halves.first);
    Stage stage;
    if (!duration.ok() || *duration <= absl::ZeroDuration() ||
        !absl::SimpleAtod(halves.second, &stage.rate) ||
        !(stage.rate >= 0 && stage.rate <= 1e6)) {
      return refused();
    }
    stage.duration = *duration;
    any = any || stage.rate > 0;
    stages.push_back(stage);
  }
  if (!any) return refused();
  return stages;
}

absl::Duration TotalTime(const std::vector<Stage>& stages) {
  absl::Duration total;
  for (const Stage& stage : stages) total += stage.duration;
  return total;
}

Schedule::Schedule(double rate) {
  Piece piece;
  piece.rate = rate;
  piece.seconds = std::numeric_limits<double>::infinity();
  piece.starts = std::numeric_limits<double>::infinity();
  pieces_.push_back(piece);
}

Schedule::Schedule(const std::vector<Stage>& stages) {
  Piece next;
  for (const Stage& stage : stages) {
    next.seconds = absl::ToDoubleSeconds(stage.duration);
    next.slope = (stage.rate - next.rate) / next.seconds;
    next.starts = (next.rate + stage.rate) / 2 * next.seconds;
    pieces_.push_back(next);
    next.from += next.seconds;
    next.before += next.starts;
    next.rate = stage.rate;
  }
}

int64_t Schedule::At(uint64_t n) {
  const auto wanted = static_cast<double>(n);
  while (piece_ > 0 && wanted < pieces_[piece_].before) --piece_;
  while (wanted >= pieces_[piece_].before + pieces_[piece_].starts) {
    if (piece_ + 1 == pieces_.size()) return -1;
    ++piece_;
  }
  const Piece& piece = pieces_[piece_];
  // rate * t + slope / 2 * t^2 = left, in the form that stays exact for small
  // slopes.
  const double left = wanted - piece.before;
  const double root = std::sqrt(
      std::max(0.0, piece.rate * piece.rate + 2 * piece.slope * left));
  const double seconds = left == 0 ? 0 : 2 * left / (piece.rate + root);
  return static_cast<int64_t>((piece.from + seconds) * 1e9);
}

}  // namespace fncache::runner::load
