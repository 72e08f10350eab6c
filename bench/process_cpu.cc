// SPDX-License-Identifier: Apache-2.0
#include "bench/process_cpu.h"

#include <time.h>

#include "absl/strings/str_cat.h"

namespace fncache::bench {

absl::StatusOr<int64_t> ProcessCpu(pid_t pid) {
  clockid_t clock;
  timespec time;
  if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 ||
      clock_gettime(clock, &time) != 0) {
    return absl::NotFoundError(absl::StrCat("there is no process ", pid));
  }
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace fncache::bench
