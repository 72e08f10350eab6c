// SPDX-License-Identifier: Apache-2.0
// FisherGreater: whether one share is larger than another by more than chance,
// from how often a thing happened. Fisher's exact test, one-sided (Fisher, "The
// logic of inductive inference", Journal of the Royal Statistical Society 98,
// 1935): exact for small numbers too, where tests by the normal distribution
// say more than they know.
//
// Pure function, thread-safe.
#ifndef FNCACHE_PROXY_TELEMETRY_FISHER_H_
#define FNCACHE_PROXY_TELEMETRY_FISHER_H_

#include <cstdint>

namespace fncache::proxy::telemetry {

struct Tally {
  uint64_t happened = 0;
  uint64_t of = 0;
};

// The probability that chance gives `first` at least its part of all that
// happened, if both have the same share. 1 where one of them has no trials.
// Preconditions: happened <= of. Takes as long as the square root of the
// numbers.
double FisherGreater(Tally first, Tally second);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_FISHER_H_
