// SPDX-License-Identifier: Apache-2.0
// From accepted settings to the daemon's options: the checks that no row of the
// table can make alone, and the warnings that an operator should read.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_PROXY_SETTINGS_CHECK_H_
#define FNCACHE_PROXY_SETTINGS_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/settings.h"
#include "proxy/settings/options.h"

namespace fncache::proxy::settings {

struct ServeOptions {
  DaemonOptions daemon;
  // A line for each thing that an operator should know.
  std::vector<std::string> warnings;
};

// Makes options of settings, and checks what is needed, what contradicts and
// what is used twice. Settles in `resolved` what follows from other settings
// (--insecure beats $TLS_SERVER_CERTS_DIR), so that it can be printed.
// InvalidArgument is one line that names the key.
absl::StatusOr<ServeOptions> MakeServeOptions(ResolvedSettings* resolved);

// Adds a warning if a function's key is the tag: anyone can call it. `why`:
// "with insecure", "without ca.crt".
void WarnOfTags(absl::string_view why, ServeOptions* options);

// A line for each of the environment's variables `names` that is no setting but
// nearly has the name of one. Those that Kubernetes makes for a Service whose
// name begins with `fncache` are never among them.
std::vector<std::string> MistypedVariables(
    const std::vector<std::string>& names);

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_CHECK_H_
