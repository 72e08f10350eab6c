// SPDX-License-Identifier: Apache-2.0
// ReadBudget: decides for how many composites the requests are read for a
// trace, so that reading stays within its limit of CPU time.
//
// Beyond the limit it leaves out composites, never single calls: if a composite
// stays, all its requests are read, and their changes can be reported. The
// choice depends on the composites' hashes alone. With a lower limit a subset
// of the same composites stays.
//
// Reads may be called by any thread, Adjust by one.
#ifndef FNCACHE_INSIGHT_TRACE_READ_BUDGET_H_
#define FNCACHE_INSIGHT_TRACE_READ_BUDGET_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace fncache::insight::trace {

struct ReadLimits {
  // A fraction of the process's CPU time, (0, 1]; 1: no limit.
  double of_process = 1;
  // Always allowed, in cores: [0, 1].
  double of_core = 0;
};

// Clocks at one moment.
struct CpuReading {
  absl::Duration wall;
  absl::Duration process;  // CPU time of the process
  absl::Duration reading;  // the portion that reading took
};

class ReadBudget {
 public:
  explicit ReadBudget(const ReadLimits& limits) : limits_(limits) {}

  // Whether requests of a composite with this hash are read.
  bool Reads(uint64_t hash) const {
    return hash <= most_.load(std::memory_order_relaxed);
  }
  // The fraction of composites that are read, (0, 1].
  double fraction() const;

  // Adapts to the time spent since the last call, at most every 200 ms.
  void Adjust(const CpuReading& now);
  // The clocks; `reading` is this thread's CPU time.
  static CpuReading Now();

 private:
  const ReadLimits limits_;
  std::atomic<uint64_t> most_{UINT64_MAX};
  double fraction_ = 1;
  bool begun_ = false;
  CpuReading before_;
};

}  // namespace fncache::insight::trace

#endif  // FNCACHE_INSIGHT_TRACE_READ_BUDGET_H_
