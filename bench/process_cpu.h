// SPDX-License-Identifier: Apache-2.0
// CPU time of a process, as the kernel accounts it.
//
// From the process's CPU clock (clock_getcpuclockid): user and system time of
// all its threads, in nanoseconds, those that have ended included. Thread-safe.
#ifndef FNCACHE_BENCH_PROCESS_CPU_H_
#define FNCACHE_BENCH_PROCESS_CPU_H_

#include <sys/types.h>

#include <cstdint>

#include "absl/status/statusor.h"

namespace fncache::bench {

// Nanoseconds that process `pid` has used so far; NotFound if there is no such
// process (or the id is that of a thread).
absl::StatusOr<int64_t> ProcessCpu(pid_t pid);

}  // namespace fncache::bench

#endif  // FNCACHE_BENCH_PROCESS_CPU_H_
