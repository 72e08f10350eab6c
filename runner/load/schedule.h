// SPDX-License-Identifier: Apache-2.0
// Schedule: the due times of the pipelines of an open loop.
//
// The rate is constant, or changes linearly between stages. Start n is due when
// the rate's integral since the beginning reaches n. It depends only on the
// beginning, not on the start before it, so no delay adds up. Without an end
// after the last stage or with a constant rate it continues for ever.
//
// Immutable but for Next; not thread-safe.
#ifndef FNCACHE_RUNNER_LOAD_SCHEDULE_H_
#define FNCACHE_RUNNER_LOAD_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fncache::runner::load {

// The rate changes from its last value to `rate` within `duration`.
struct Stage {
  absl::Duration duration;
  double rate = 0;  // pipelines a second
};

// `30s:10,2m:100`. InvalidArgument names --stages and the accepted form.
absl::StatusOr<std::vector<Stage>> ParseStages(absl::string_view text);
// The time that all of them take.
absl::Duration TotalTime(const std::vector<Stage>& stages);

class Schedule {
 public:
  // `rate` above 0, for ever.
  explicit Schedule(double rate);
  // From a rate of zero through the stages; then nothing is due any more.
  explicit Schedule(const std::vector<Stage>& stages);

  // Nanoseconds from the beginning to start number `n` (from 0), or -1 if
  // there is none.
  int64_t At(uint64_t n);

 private:
  struct Piece {
    double from = 0;     // seconds
    double seconds = 0;  // infinite for ever
    double before = 0;   // starts before it
    double rate = 0;     // at its beginning
    double slope = 0;    // a second
    double starts = 0;   // in it
  };
  std::vector<Piece> pieces_;
  size_t piece_ = 0;  // where the last start was: they are asked for in order
};

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_SCHEDULE_H_
