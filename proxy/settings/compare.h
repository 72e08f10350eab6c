// SPDX-License-Identifier: Apache-2.0
// What became of settings that were read again: which of them changed, which
// of those can take effect while the daemon runs, and the settings that are in
// force then.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_PROXY_SETTINGS_COMPARE_H_
#define FNCACHE_PROXY_SETTINGS_COMPARE_H_

#include <string>
#include <vector>

#include "common/settings.h"

namespace fncache::proxy::settings {

// One setting that has another value, as texts for people: "24h", "[a, b]",
// "unset". No setting's value is a secret; those that have to do with secrets
// name files.
struct SettingChange {
  // The function whose it is; empty = the daemon's, or the same one of all
  // functions.
  std::string function;
  // "ttl.max". An entry of functions that came or went is "functions", and
  // "absent" on one side.
  std::string key;
  std::string before;
  std::string after;
};

// "function-a.ttl.max".
std::string NameOf(const SettingChange& change);

struct ReloadedSettings {
  // What is in force: what was read, but of what takes a restart what was
  // there. Functions are those there were, in their order. To be checked by
  // MakeServeOptions: what is kept may not fit to what is new.
  ResolvedSettings settings;
  std::vector<SettingChange> changed;
  std::vector<SettingChange> restart;
  // By function: whether a setting of its changed.
  std::vector<bool> functions;
};

// `running` are in force, `read` are those that somebody wants. Functions are
// matched by name. Both are settings of the daemon, resolved.
ReloadedSettings Reloaded(const ResolvedSettings& running,
                          const ResolvedSettings& read);

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_COMPARE_H_
