// SPDX-License-Identifier: Apache-2.0
// Shows the table of settings as text for people: the help of `fncache serve`,
// its flags for completion, and the reference page.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_PROXY_SETTINGS_HELP_H_
#define FNCACHE_PROXY_SETTINGS_HELP_H_

#include <string>
#include <vector>

#include "common/command_flags.h"

namespace fncache::proxy::settings {

// The text that `fncache serve --help` prints.
std::string ServeHelp();
// The flags of `fncache serve`, in the order of its help.
std::vector<CommandFlag> ServeCommandFlags();
// Lists the settings that can change while the daemon runs, and those that take
// a restart, as comments. `--check` prints them after the settings.
std::string ReloadNotes();
// The text of docs/settings.md.
std::string ServeReference();

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_HELP_H_
