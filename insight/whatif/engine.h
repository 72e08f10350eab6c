// SPDX-License-Identifier: Apache-2.0
// Replay: plays a Recording under settings, through the real Policy and the
// real MemoryStore, on a simulated clock.
//
// A call looks its key up; a miss takes the function the time that the trace
// tells, calls of the same key meanwhile wait for it and share its answer if it
// is stored (else each calls for itself, as the daemon has it); then the answer
// is filled. Entries take the room that they would, without their bytes. Past
// its time an entry answers as stale_while_revalidate lets it, and is refreshed
// behind: the run counts, with nobody waiting for it.
//
// With kModel a composite's pipelines are played one after the other, and
// those that a timer caused are made again: after a pipeline its composite
// waits for the least TTL that the settings tell, give or take what the runner
// spreads. Everything else comes when it came. With kRecorded every call comes
// when it came.
//
// Only memory is played: no disk tier, no shared one, no restarts, no purges;
// nor stale_if_error and finish_abandoned, for which a trace tells too little
// (see SettingsReader::NotPlayed).
//
// Pure functions of what they are given, random numbers included; thread-safe.
#ifndef FNCACHE_INSIGHT_WHATIF_ENGINE_H_
#define FNCACHE_INSIGHT_WHATIF_ENGINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "insight/whatif/recording.h"
#include "insight/whatif/settings.h"

namespace fncache::insight::whatif {

enum class Arrivals { kRecorded, kModel };

// What was counted, of all calls or of a group's.
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
  // Of what hits were answered with, in seconds; none where nobody knows.
  struct Ages {
    double p50 = 0, p99 = 0, max = 0;
  };
  absl::optional<Ages> ages;
  uint64_t calls = 0;  // that were played, counted or not
  // It was ended early: the settings let the runner come a thousand times as
  // often as it came.
  bool cut = false;
};

struct ReplayOptions {
  Arrivals arrivals = Arrivals::kModel;
  bool by_composite = false;
};

// What is played: `masked_of[function]` is the number of the keys to use in
// Recording::masked, or -1 for the keys as recorded.
struct Variant {
  CacheSettings settings;
  std::vector<int> masked_of;
};

Outcome Replay(const Recording& recording, const Variant& variant,
               const ReplayOptions& options);

// All of them, on as many threads as there are cores. In their order.
std::vector<Outcome> ReplayAll(const Recording& recording,
                               const std::vector<Variant>& variants,
                               const ReplayOptions& options);

// The same counts as the trace has them.
Outcome Measured(const Recording& recording, bool by_composite);

}  // namespace fncache::insight::whatif

#endif  // FNCACHE_INSIGHT_WHATIF_ENGINE_H_
