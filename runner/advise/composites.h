// SPDX-License-Identifier: Apache-2.0
// Finds the differences between composites in the requests of one step: between
// two requests with the same input and the same resources.
//
// Blocking function over a trace of level full; thread-safe.
#ifndef FNCACHE_RUNNER_ADVISE_COMPOSITES_H_
#define FNCACHE_RUNNER_ADVISE_COMPOSITES_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"

namespace fncache::runner::advise {

struct Differences {
  // As masks spell paths, with the names of resources.
  std::set<std::string> paths;
  int composites = 0;  // that were compared
};

absl::StatusOr<Differences> CompareComposites(const std::string& trace,
                                              const std::string& function);

}  // namespace fncache::runner::advise

#endif  // FNCACHE_RUNNER_ADVISE_COMPOSITES_H_
