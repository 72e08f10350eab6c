// SPDX-License-Identifier: Apache-2.0
// The number of threads with which the daemon serves.
#ifndef FNCACHE_PROXY_DAEMON_THREADS_H_
#define FNCACHE_PROXY_DAEMON_THREADS_H_

#include <memory>

#include "common/thread_pool.h"
#include "proxy/settings/options.h"

namespace fncache::proxy {

int WorkersOf(const settings::DaemonOptions& options);

// Threads for the workers' jobs, on the cores that the reading and writing
// worker leaves free. Null if there are no such cores.
std::unique_ptr<ThreadPool> MakeAssistants();

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_DAEMON_THREADS_H_
