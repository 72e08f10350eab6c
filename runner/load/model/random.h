// SPDX-License-Identifier: Apache-2.0
// SplitMix64: small random numbers' generators, one for each purpose and each
// composite, so that none disturbs another's sequence.
//
// Used by one thread at a time.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_RANDOM_H_
#define FNCACHE_RUNNER_LOAD_MODEL_RANDOM_H_

#include <cmath>
#include <cstdint>

#include "absl/time/time.h"

namespace fncache::runner::load::model {

// Purposes of random numbers.
enum Purpose : uint64_t {
  kForCluster,
  kForRequeue,
  kForResync,
  kForPhase,
  kForProvider,
  kForFlapping,
  kForChurn,  // the kinds of churn follow it
};

class SplitMix64 {
 public:
  SplitMix64() = default;
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  // The generator for `purpose` of the object with the number `index`.
  SplitMix64(uint64_t seed, uint64_t index, uint64_t purpose)
      : state_(SplitMix64(SplitMix64(SplitMix64(seed).Next() + index).Next() +
                          purpose)
                   .Next()) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // At least 0, less than 1.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  double Between(double low, double high) {
    return low + (high - low) * Uniform();
  }
  // The gaps of a Poisson process with this many arrivals an hour, over 0.
  absl::Duration Gap(double per_hour) {
    return absl::Hours(-std::log1p(-Uniform()) / per_hour);
  }

  // At most a tenth shorter or longer.
  absl::Duration Jitter(absl::Duration duration) {
    return duration + Between(-0.1, 0.1) * duration;
  }

 private:
  uint64_t state_ = 0;
};

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_RANDOM_H_
