// SPDX-License-Identifier: Apache-2.0
// Serve: runs the daemon, controlled by the process's signals.
#ifndef FNCACHE_PROXY_SERVE_H_
#define FNCACHE_PROXY_SERVE_H_

#include "absl/status/status.h"
#include "proxy/reload.h"
#include "proxy/settings/options.h"

namespace fncache::proxy {

// Starts the daemon, serves until SIGTERM or SIGINT, and drains. A second
// signal exits at once. OK after a graceful stop, also if it came during the
// start; else why the daemon did not start. `start` has the source of the
// options: on SIGHUP they are read again. It blocks these signals, so call it
// before the process has other threads.
absl::Status Serve(settings::DaemonOptions options, StartSettings start);

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_SERVE_H_
