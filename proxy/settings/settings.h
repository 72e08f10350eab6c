// SPDX-License-Identifier: Apache-2.0
// The settings of `fncache serve`: the table, and what its rows do with
// accepted texts. DESIGN's "The command line is a contract" and "Policy, per
// function" are what the table follows.
//
// To add a setting: a field in options.h, one row in settings.cc, and
// docs/settings.md printed anew (tests/proxy/settings/settings_test.cc says
// how).
//
// Pure functions, thread-safe.
#ifndef FNCACHE_PROXY_SETTINGS_SETTINGS_H_
#define FNCACHE_PROXY_SETTINGS_SETTINGS_H_

#include "absl/status/status.h"
#include "common/settings.h"
#include "proxy/settings/options.h"

namespace fncache::proxy::settings {

// Every setting of `serve`, in the order of help and reference.
const SettingsTable& ServeSettings();

// Put every setting of the daemon, or of one function, into its option. The
// table accepted the values; what is unset keeps the options' default.
absl::Status ApplyToDaemon(const SettingValues& values, DaemonOptions* options);
absl::Status ApplyToFunction(const SettingValues& values,
                             FunctionOptions* options);

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_SETTINGS_H_
