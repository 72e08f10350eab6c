// SPDX-License-Identifier: Apache-2.0
// The report that the load client prints: one JSON object about its run.
#ifndef FNCACHE_BENCH_LOAD_REPORT_H_
#define FNCACHE_BENCH_LOAD_REPORT_H_

#include <string>

#include "bench/load_client.h"

namespace fncache::bench {

// The object in one line. Latencies in microseconds, CPU in microseconds per
// call of the window (user and system time; absent where the window had none).
std::string LoadReport(const LoadOptions& options, const LoadResult& result);

}  // namespace fncache::bench

#endif  // FNCACHE_BENCH_LOAD_REPORT_H_
