// SPDX-License-Identifier: Apache-2.0
// CpuBudget: limits the CPU time for explaining to a fraction of the process's.
// Without time for paths, only sections are explained. Without time for those,
// fewer composites are looked at.
//
// Used by one thread at a time.
#ifndef FNCACHE_INSIGHT_EXPLAIN_CPU_BUDGET_H_
#define FNCACHE_INSIGHT_EXPLAIN_CPU_BUDGET_H_

#include <cstdint>
#include <ctime>

#include "absl/time/time.h"
#include "insight/explain/kept_requests.h"

namespace fncache::insight::explain {

struct CpuBudgetOptions {
  // Fractions of the process's CPU time; 1: no limit. Above the first, no paths
  // are read. Above the second, fewer composites are looked at.
  double paths_cpu_share = 0.024;
  double cpu_share = 0.03;
  // If this is more, it limits the time of one core, instead of `cpu_share`;
  // the limit for paths grows in proportion. (An idle process has few misses,
  // and no other work that they could delay.)
  double core_share = 0.005;
  // The balance at the start, and the most that may be saved, or owed. (Paths
  // owe at most what the last ones took.) With 0 no paths are read, and as few
  // composites as possible are looked at.
  absl::Duration cpu_start = absl::Milliseconds(100);
};

// The time of a clock, as a duration.
absl::Duration TimeOf(clockid_t clock);

class CpuBudget {
 public:
  CpuBudget(const CpuBudgetOptions& options, absl::Time now);

  // Whether there is time to read paths.
  bool PathsAffordable(absl::Time now);
  // Charges the CPU time of one explanation: for paths, and for the rest.
  void Spend(absl::Duration paths, absl::Duration rest);
  // Halves the number of composites if too much time was spent, and doubles it
  // if there is time. Composites that stay keep their past.
  void Balance(absl::Time now);

  // There is time for composites whose hash is at most this, now and recently.
  uint64_t affordable() const { return affordable_; }
  uint64_t always_seen() const { return always_seen_; }
  absl::Duration spent() const { return spent_; }

 private:
  void Earn(absl::Time now);

  const CpuBudgetOptions options_;
  absl::Duration spent_;
  // CPU time that is left for paths, and in total.
  absl::Duration paths_left_;
  absl::Duration left_;
  // The process's time at the last reading, and the time of that reading.
  absl::Duration process_;
  absl::Time process_read_;
  uint64_t affordable_ = kAll;
  absl::Time balanced_ = absl::InfinitePast();
  // The recent minimum of `affordable_`, and when it last was not all.
  uint64_t always_seen_ = kAll;
  absl::Time left_out_ = absl::InfinitePast();
};

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_CPU_BUDGET_H_
