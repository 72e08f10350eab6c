// SPDX-License-Identifier: Apache-2.0
// The verdict of a run about these composites in a cluster: the pipelines a
// second that they need, the workers that these keep busy, and how long a new
// composite takes.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_LOAD_VERDICT_H_
#define FNCACHE_RUNNER_LOAD_VERDICT_H_

#include <string>
#include <vector>

#include "runner/load/results.h"

namespace fncache::runner::load {

// Sets `verdict.measured` (where it has a value) and `verdict.busy` by what was
// measured. Removes the verdict if no pipeline succeeded.
void FillVerdict(LoadResults* results);

// Sentences without a full stop; one with the reason, if there is no verdict of
// a load of composites.
std::vector<std::string> VerdictSentences(const LoadResults& results);

// Facts that make the numbers misleading: functions that were not reached,
// composites that do not settle or are not ready, a generator that was the
// limit itself. Sentences without a full stop.
std::vector<std::string> Warnings(const LoadResults& results);

// One thing that must hold, for reports in which a machine counts.
struct Check {
  std::string name;
  bool ok = false;
  std::string why;  // what was found
};
// `worse`: what is worse than a baseline, as text; null without a baseline.
std::vector<Check> Checks(const LoadResults& results,
                          const std::vector<std::string>* worse);

// `NAME is not reached at TARGET: WHY`.
std::string UnreachedSentence(const UnreachedResults& one);

// At least one pipeline ended, and none succeeded.
bool EveryPipelineFailed(const LoadResults& results);

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_VERDICT_H_
