// SPDX-License-Identifier: Apache-2.0
// Makes the daemon's options from accepted settings. It makes the checks that
// no row of the table can make alone, and the warnings for an operator.
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
  // One line for each warning to the operator.
  std::vector<std::string> warnings;
};

// Makes options from settings. Checks for missing, contradicting and duplicate
// values. Writes to `resolved` the values that follow from other settings
// (--insecure beats $TLS_SERVER_CERTS_DIR), so that they can be printed.
// InvalidArgument is one line that names the key.
absl::StatusOr<ServeOptions> MakeServeOptions(ResolvedSettings* resolved);

// Adds a warning if a function's key is the tag: any caller can call it. `why`:
// "with insecure", "without ca.crt".
void WarnOfTags(absl::string_view why, ServeOptions* options);

// One line for each variable of `names` that is no setting, but nearly has the
// name of one. The variables that Kubernetes sets for a Service whose name
// begins with `fncache` are never among them.
std::vector<std::string> MistypedVariables(
    const std::vector<std::string>& names);

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_CHECK_H_
