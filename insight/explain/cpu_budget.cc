// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/cpu_budget.h"

#include <algorithm>

#include "common/clock.h"

namespace fncache::insight::explain {
namespace {

// The interval at which the number of composites is adapted to the CPU time. At
// least kLeastAffordable of them are looked at in any case.
constexpr absl::Duration kBalanced = absl::Milliseconds(100);
constexpr uint64_t kLeastAffordable = kAll / 64;
// A composite that was left out for lack of time should have come again after
// this, if it exists: runners ask for each every few minutes.
constexpr absl::Duration kLeftOut = absl::Hours(1);

}  // namespace

absl::Duration TimeOf(clockid_t clock) {
  return absl::Nanoseconds(ReadClock(clock));
}

CpuBudget::CpuBudget(const CpuBudgetOptions& options, absl::Time now)
    : options_(options),
      paths_left_(options.cpu_start),
      left_(options.cpu_start),
      process_(TimeOf(CLOCK_PROCESS_CPUTIME_ID)),
      process_read_(now) {}

// Adds to both accounts the earnings since the last reading. A reading takes
// microseconds, in proportion to the number of threads.
void CpuBudget::Earn(absl::Time now) {
  // The clock may be set back.
  const absl::Duration elapsed =
      std::max(now - process_read_, absl::ZeroDuration());
  if (now >= process_read_ && elapsed < absl::Milliseconds(20)) return;
  process_read_ = now;
  const absl::Duration before = process_;
  process_ = TimeOf(CLOCK_PROCESS_CPUTIME_ID);
  const absl::Duration earned = std::max(
      (process_ - before) * options_.cpu_share, elapsed * options_.core_share);
  left_ += earned;
  if (options_.cpu_share > 0) {
    paths_left_ += earned * (options_.paths_cpu_share / options_.cpu_share);
  }
  // Savings are bounded. So is the debt of outlines, since some are read in any
  // case. Paths are read only while their account is positive, so their debt is
  // at most what the reads in progress took.
  paths_left_ = std::min(paths_left_, options_.cpu_start);
  left_ = std::clamp(left_, -options_.cpu_start, options_.cpu_start);
}

void CpuBudget::Spend(absl::Duration paths, absl::Duration rest) {
  spent_ += paths + rest;
  paths_left_ -= paths;
  left_ -= paths + rest;
}

bool CpuBudget::PathsAffordable(absl::Time now) {
  if (options_.paths_cpu_share >= 1) return true;
  Earn(now);
  return paths_left_ > absl::ZeroDuration();
}

void CpuBudget::Balance(absl::Time now) {
  if (options_.cpu_share >= 1) return;
  if (now >= balanced_ && now - balanced_ < kBalanced) return;
  balanced_ = now;
  Earn(now);
  if (left_ <= absl::ZeroDuration()) {
    affordable_ = std::max(affordable_ / 2, kLeastAffordable);
  } else if (left_ > options_.cpu_start / 2) {
    affordable_ = Twice(affordable_);
  }
  if (now - left_out_ > kLeftOut) always_seen_ = kAll;
  if (affordable_ == kAll) return;
  left_out_ = now;
  always_seen_ = std::min(always_seen_, affordable_);
}

}  // namespace fncache::insight::explain
