// The settings of `fncache serve`: the table, and how accepted settings become
// DaemonOptions. DESIGN's "The command line is a contract" and "Policy, per
// function" are what the table follows.
//
// To add a setting: one row in settings.cc, and docs/settings.md printed anew
// (tests/proxy/settings/settings_test.cc says how).
//
// Pure functions, thread-safe.
#ifndef FNCACHE_PROXY_SETTINGS_SETTINGS_H_
#define FNCACHE_PROXY_SETTINGS_SETTINGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/settings.h"
#include "proxy/settings/options.h"

namespace fncache::proxy::settings {

// Every setting of `serve`, in the order of help and reference.
const SettingsTable& ServeSettings();

struct ServeOptions {
  DaemonOptions daemon;
  // What an operator should know, a line each.
  std::vector<std::string> warnings;
};

// Turns settings into options, and checks what no row can see alone: what is
// needed, what contradicts, what is used twice. Settles in `resolved` what
// follows from other settings (--insecure beats $TLS_SERVER_CERTS_DIR), so that
// it can be printed. InvalidArgument is one line that names the key.
absl::StatusOr<ServeOptions> MakeServeOptions(ResolvedSettings* resolved);

// Adds a warning if a function's key is the tag: anyone can call it. `why`:
// "with insecure", "without ca.crt".
void WarnOfTags(absl::string_view why, ServeOptions* options);

// A line for each of the environment's variables `names` that is no setting but
// nearly has the name of one. Those that Kubernetes makes for a Service whose
// name begins with `fncache` are never among them.
std::vector<std::string> MistypedVariables(
    const std::vector<std::string>& names);

// `fncache serve --help`, and docs/settings.md.
std::string ServeHelp();
std::string ServeReference();

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_SETTINGS_H_
