// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/distinct_count.h"

#include <cmath>

namespace fncache::proxy::serving {

uint64_t DistinctCount::Estimate() const {
  const auto registers = static_cast<double>(ranks_.size());
  double sum = 0;
  int empty = 0;
  for (const uint8_t rank : ranks_) {
    sum += std::ldexp(1.0, -rank);
    empty += rank == 0 ? 1 : 0;
  }
  const double alpha = 0.7213 / (1 + 1.079 / registers);
  double estimate = alpha * registers * registers / sum;
  if (estimate <= 2.5 * registers && empty > 0) {
    estimate = registers * std::log(registers / empty);
  }
  return static_cast<uint64_t>(std::llround(estimate));
}

}  // namespace fncache::proxy::serving
