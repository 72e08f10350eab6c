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

}  // namespace fncache::insight::whatif

#endif  // FNCACHE_INSIGHT_WHATIF_ENGINE_H_
