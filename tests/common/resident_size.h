// SPDX-License-Identifier: Apache-2.0
#ifndef FNCACHE_TESTS_COMMON_RESIDENT_SIZE_H_
#define FNCACHE_TESTS_COMMON_RESIDENT_SIZE_H_

#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace fncache {

// Bytes that the process has in memory.
inline size_t ResidentSize() {
  std::ifstream statm("/proc/self/statm");
  size_t pages = 0;
  statm >> pages >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

}  // namespace fncache

#endif  // FNCACHE_TESTS_COMMON_RESIDENT_SIZE_H_
