// SPDX-License-Identifier: Apache-2.0
// How many threads the daemon serves with.
#ifndef FNCACHE_PROXY_DAEMON_THREADS_H_
#define FNCACHE_PROXY_DAEMON_THREADS_H_

#include <memory>

#include "common/thread_pool.h"
#include "proxy/settings/options.h"

namespace fncache::proxy {

int WorkersOf(const settings::DaemonOptions& options);

// Threads that do the workers' jobs, for the cores that are left beside the
// worker which reads and writes; null where there are none.
std::unique_ptr<ThreadPool> MakeAssistants();

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_DAEMON_THREADS_H_
