// SPDX-License-Identifier: Apache-2.0
// Threads that cannot be made: a limit of the user's processes (ulimit -u), of
// a container's (pids), or of memory. Libraries end the process then, gRPC and
// RocksDB by an abort; a command says it in one line instead.
#ifndef FNCACHE_COMMON_THREADS_H_
#define FNCACHE_COMMON_THREADS_H_

#include "absl/status/status.h"

namespace fncache {

// The threads that gRPC may have at once in this process, however much there is
// to do.
int GrpcThreads();

// Cores that this process may use: those it may run on, and no more than its
// control group's quota (cpu.max); at least 1.
int UsableCores();

// Makes `count` threads, all there at the same time, and ends them.
// ResourceExhausted, in one line, if that many cannot be made. Takes some ten
// microseconds a thread.
absl::Status CheckThreads(int count);

// From now on the process ends with exit code 1 and a line on standard error if
// a std::thread cannot be made and the error is not handled. Call it before the
// process has other threads.
void ExitWhereThreadsAreMissing();

}  // namespace fncache

#endif  // FNCACHE_COMMON_THREADS_H_
