// SPDX-License-Identifier: Apache-2.0
// FisherGreater: whether one rate is larger than another by more than chance.
// It takes the numbers of events and trials. Fisher's exact test, one-sided
// (Fisher, "The logic of inductive inference", Journal of the Royal Statistical
// Society 98, 1935). It is exact for small numbers, too, where tests with the
// normal distribution are too certain.
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

// The probability that chance gives `first` at least its number of all events,
// if both have the same rate. 1 if one of them has no trials. Preconditions:
// happened <= of. The time grows with the square root of the numbers.
double FisherGreater(Tally first, Tally second);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_FISHER_H_
