// SPDX-License-Identifier: Apache-2.0
// The settings of `fncache serve`: the table, and the functions that apply
// accepted texts. The table follows DESIGN's "The command line is a contract"
// and "Policy, per function".
//
// To add a setting, add a field in options.h and one row in settings.cc. Then
// print docs/settings.md again (tests/proxy/settings/settings_test.cc says
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

// Writes every setting of the daemon, or of one function, to its option. The
// table has accepted the values. An unset one keeps the option's default.
absl::Status ApplyToDaemon(const SettingValues& values, DaemonOptions* options);
absl::Status ApplyToFunction(const SettingValues& values,
                             FunctionOptions* options);

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_SETTINGS_H_
