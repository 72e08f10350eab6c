// SPDX-License-Identifier: Apache-2.0
// Outcome: what was counted when a recording was played, or when its trace was
// written.
//
// Plain data; the functions are pure and thread-safe.
#ifndef FNCACHE_INSIGHT_WHATIF_OUTCOME_H_
#define FNCACHE_INSIGHT_WHATIF_OUTCOME_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "common/latency_histogram.h"
#include "insight/whatif/recording.h"

namespace fncache::insight::whatif {

// The counts of all calls, or of a group's.
struct Tally {
  uint64_t hits = 0, stale = 0, collapsed = 0, misses = 0, bypasses = 0;
  uint64_t hit_bytes = 0, miss_bytes = 0;  // of responses
  // Calls that the function answered, and how long it took for them.
  uint64_t function_runs = 0;
  double function_seconds = 0;

  // (hits + stale + collapsed) over those and misses; none of neither.
  absl::optional<double> HitRate() const;
  absl::optional<double> ByteHitRate() const;
  void Add(const Tally& other);
};

struct Outcome {
  Tally all;
  // By the number of the function's step, and of the composite; the latter only
  // where it is asked for.
  std::vector<Tally> series, composites;
  uint64_t pipelines = 0;
  double seconds = 0;  // in which it was counted
  uint64_t evictions = 0;
  // Ages of the entries that answered hits, in seconds; none where they are
  // unknown.
  struct Ages {
    double p50 = 0, p99 = 0, max = 0;
  };
  absl::optional<Ages> ages;
  uint64_t calls = 0;  // that were played, counted or not
  // It was ended early: the settings let the runner come a thousand times as
  // often as it came.
  bool cut = false;
};

// Counts calls into an outcome, for all and by series and composite. Used by
// one thread at a time.
class Counting {
 public:
  Counting(const Recording& recording, bool by_composite) {
    outcome_.series.resize(recording.series.size());
    if (by_composite) outcome_.composites.resize(recording.composites.size());
    outcome_.seconds = recording.Seconds();
  }

  template <typename Change>
  void Add(const Call& call, Change change) {
    change(&outcome_.all);
    change(&outcome_.series[call.series]);
    if (!outcome_.composites.empty()) {
      change(&outcome_.composites[call.composite]);
    }
  }
  void Hit(const Call& call, uint64_t Tally::*kind) {
    Add(call, [&](Tally* tally) {
      ++(tally->*kind);
      tally->hit_bytes += call.response_bytes;
    });
  }
  // `kind`: what the call that it ran for counts as; null: another already.
  void Run(const Call& call, uint64_t Tally::*kind, uint32_t micros) {
    Add(call, [&](Tally* tally) {
      if (kind != nullptr) ++(tally->*kind);
      if (kind == &Tally::misses) tally->miss_bytes += call.response_bytes;
      ++tally->function_runs;
      tally->function_seconds += micros / 1e6;
    });
  }
  // In microseconds, which the histogram takes for nanoseconds: it ends after
  // 18 minutes of those, and ages are of days.
  void Age(int64_t nanos) { ages_.Add(nanos / 1000); }

  Outcome* outcome() { return &outcome_; }
  Outcome Take() {
    if (ages_.count() > 0) {
      outcome_.ages =
          Outcome::Ages{ages_.Quantile(0.5) / 1e6, ages_.Quantile(0.99) / 1e6,
                        ages_.max() / 1e6};
    }
    return std::move(outcome_);
  }

 private:
  Outcome outcome_;
  LatencyHistogram ages_;
};

// The counts as the trace has them.
Outcome Measured(const Recording& recording, bool by_composite);

}  // namespace fncache::insight::whatif

#endif  // FNCACHE_INSIGHT_WHATIF_OUTCOME_H_
