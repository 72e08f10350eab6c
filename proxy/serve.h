// SPDX-License-Identifier: Apache-2.0
// Serve: the daemon under a process's signals.
#ifndef FNCACHE_PROXY_SERVE_H_
#define FNCACHE_PROXY_SERVE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/settings_list.h"
#include "proxy/settings/options.h"

namespace fncache::proxy {

// Starts the daemon, serves until SIGTERM or SIGINT, and drains; a second
// signal exits at once. Ok after a graceful stop (also one that came during the
// start), else why it did not start. `settings` are those in force, for
// the status page, and `settings_yaml` the same as a file. Call it before the
// process has other threads: it blocks those signals.
absl::Status Serve(settings::DaemonOptions options,
                   std::vector<ListedSetting> settings,
                   std::string settings_yaml);

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_SERVE_H_
