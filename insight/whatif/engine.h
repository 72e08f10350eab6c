// SPDX-License-Identifier: Apache-2.0
// Replay: plays a Recording under settings, through the real Policy and the
// real MemoryStore, on a simulated clock.
//
// A call looks its key up. A miss calls the function, for the duration that the
// trace has. Calls of the same key meanwhile wait for it, and share its answer
// if it is stored; otherwise each calls for itself, as in the daemon. Then the
// answer is filled. Entries count with their sizes, without their bytes. An
// entry past its time answers within stale_while_revalidate, and is refreshed:
// the refresh counts as a run, and no call waits for it.
//
// With kModel a composite's pipelines are played one after the other, and those
// that a timer caused are made anew: after a pipeline its composite waits for
// the least TTL under the settings, give or take the runner's spread. All other
// pipelines start at their recorded times. With kRecorded every call does.
//
// Only memory is played: no disk tier, no shared one, no restarts, no purges.
// Nor are stale_if_error and finish_abandoned, for which a trace has too little
// information (see SettingsReader::NotPlayed).
//
// Pure functions of their arguments, random numbers included; thread-safe.
#ifndef FNCACHE_INSIGHT_WHATIF_ENGINE_H_
#define FNCACHE_INSIGHT_WHATIF_ENGINE_H_

#include <vector>

#include "insight/whatif/outcome.h"
#include "insight/whatif/recording.h"
#include "insight/whatif/settings.h"

namespace fncache::insight::whatif {

enum class Arrivals { kRecorded, kModel };

struct ReplayOptions {
  Arrivals arrivals = Arrivals::kModel;
  bool by_composite = false;
};

// One variant to play: `masked_of[function]` is the index of the keys to use in
// Recording::masked, or -1 for the keys as recorded.
struct Variant {
  CacheSettings settings;
  std::vector<int> masked_of;
};

Outcome Replay(const Recording& recording, const Variant& variant,
               const ReplayOptions& options);

// Replays all of them, on as many threads as there are cores. Keeps their
// order.
std::vector<Outcome> ReplayAll(const Recording& recording,
                               const std::vector<Variant>& variants,
                               const ReplayOptions& options);

}  // namespace fncache::insight::whatif

#endif  // FNCACHE_INSIGHT_WHATIF_ENGINE_H_
