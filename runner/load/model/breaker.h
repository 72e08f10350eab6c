// SPDX-License-Identifier: Apache-2.0
// Breaker: keeps one XR's watch events from reconciling it all the time
// (PROTOCOL.md, "When the runner reconciles").
//
// Used by one thread at a time.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_BREAKER_H_
#define FNCACHE_RUNNER_LOAD_MODEL_BREAKER_H_

#include <algorithm>

#include "absl/time/time.h"

namespace fncache::runner::load::model {

class Breaker {
 public:
  static constexpr double kTokens = 100;
  static constexpr double kTokensPerSecond = 1;

  // Whether an event that costs `cost` tokens, at least 1, reconciles.
  bool Admit(int cost, absl::Time now) {
    if (open_ && now >= open_until_) {
      open_ = false;
      tokens_ = kTokens;
      filled_ = now;
    }
    if (open_) {
      if (now - probed_ < absl::Seconds(30)) return false;
      probed_ = now;
      return true;
    }
    tokens_ = std::min(
        kTokens,
        tokens_ + kTokensPerSecond * absl::ToDoubleSeconds(std::max(
                                         now - filled_, absl::ZeroDuration())));
    filled_ = now;
    if (tokens_ >= cost) {
      tokens_ -= cost;
      return true;
    }
    open_ = true;
    open_until_ = now + absl::Minutes(5);
    probed_ = now;
    return false;
  }

  // As of the last event.
  bool open() const { return open_; }
  bool open(absl::Time now) const { return open_ && now < open_until_; }

 private:
  double tokens_ = kTokens;
  absl::Time filled_ = absl::InfinitePast();
  bool open_ = false;
  absl::Time open_until_;
  absl::Time probed_;
};

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_BREAKER_H_
