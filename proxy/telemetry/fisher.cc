// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/fisher.h"

#include <algorithm>
#include <cmath>

namespace fncache::proxy::telemetry {
namespace {

// A term below this fraction of the sum ends the sum.
constexpr double kNothing = 1e-17;

// lgamma_r, because std::lgamma writes a global variable.
double LogFactorial(double n) {
  int sign = 0;
  return lgamma_r(n + 1, &sign);
}

double LogChoose(double n, double k) {
  return LogFactorial(n) - LogFactorial(k) - LogFactorial(n - k);
}

}  // namespace

double FisherGreater(Tally first, Tally second) {
  if (first.of == 0 || second.of == 0) return 1;
  const auto n1 = static_cast<double>(first.of);
  const auto n2 = static_cast<double>(second.of);
  const auto all = static_cast<double>(first.happened + second.happened);
  // The number of events that are the second's has a hypergeometric
  // distribution.
  const double least = std::max(0.0, all - n1);
  const double most = std::min(n2, all);
  const auto log_of = [&](double k) {
    return LogChoose(n2, k) + LogChoose(n1, all - k) - LogChoose(n1 + n2, all);
  };
  // Sums from `k` away from the middle. Each term is made from the one before.
  const auto down = [&](double k) {
    double term = std::exp(log_of(k));
    double sum = term;
    for (; k > least && term > kNothing * sum; --k) {
      term *= k * (n1 - all + k) / ((n2 - k + 1) * (all - k + 1));
      sum += term;
    }
    return sum;
  };
  const auto up = [&](double k) {
    double term = std::exp(log_of(k));
    double sum = term;
    for (; k < most && term > kNothing * sum; ++k) {
      term *= (n2 - k) * (all - k) / ((k + 1) * (n1 - all + k + 1));
      sum += term;
    }
    return sum;
  };
  const auto seen = static_cast<double>(second.happened);
  if (seen >= most) return 1;
  const double middle = all * n2 / (n1 + n2);
  const double p = seen <= middle ? down(seen) : 1 - up(seen + 1);
  return std::min(1.0, std::max(0.0, p));
}

}  // namespace fncache::proxy::telemetry
