// SPDX-License-Identifier: Apache-2.0
#include "insight/trace/read_budget.h"

#include <algorithm>

#include "common/clock.h"

namespace fncache::insight::trace {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(200);
// The least fraction of composites that are read. Without any reads, spare CPU
// time would not be detected.
constexpr double kLeast = 1.0 / 1024;

}  // namespace

CpuReading ReadBudget::Now() {
  return {absl::Nanoseconds(ReadClock(CLOCK_MONOTONIC)),
          absl::Nanoseconds(ReadClock(CLOCK_PROCESS_CPUTIME_ID)),
          absl::Nanoseconds(ReadClock(CLOCK_THREAD_CPUTIME_ID))};
}

double ReadBudget::fraction() const {
  return static_cast<double>(most_.load(std::memory_order_relaxed)) /
         static_cast<double>(UINT64_MAX);
}

void ReadBudget::Adjust(const CpuReading& now) {
  if (limits_.of_process >= 1) return;
  if (!begun_) {
    begun_ = true;
    before_ = now;
  }
  if (now.wall - before_.wall < kPeriod) return;
  const absl::Duration spent = now.reading - before_.reading;
  const absl::Duration allowed =
      std::max(limits_.of_core * (now.wall - before_.wall),
               limits_.of_process * (now.process - before_.process));
  before_ = now;
  if (spent > allowed) {
    const double fits = absl::FDivDuration(allowed, spent);
    fraction_ = std::max(kLeast, fraction_ * std::max(0.25, 0.9 * fits));
  } else if (spent < 0.8 * allowed) {
    fraction_ = std::min(1.0, fraction_ * 1.1 + kLeast);
  }
  most_.store(fraction_ >= 1 ? UINT64_MAX
                             : static_cast<uint64_t>(
                                   fraction_ * static_cast<double>(UINT64_MAX)),
              std::memory_order_relaxed);
}

}  // namespace fncache::insight::trace
