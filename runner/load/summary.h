// SPDX-License-Identifier: Apache-2.0
// The measurements of a load run, as the text at its end.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_LOAD_SUMMARY_H_
#define FNCACHE_RUNNER_LOAD_SUMMARY_H_

#include <string>

#include "runner/load/results.h"

namespace fncache::runner::load {

std::string SummaryText(const LoadResults& results);

// The pipelines' latency as wrk2 writes a distribution: value in milliseconds,
// percentile, count so far, 1 / (1 - percentile), each half of what is left.
std::string PercentileText(const LoadResults& results);

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_SUMMARY_H_
