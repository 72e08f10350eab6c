// SPDX-License-Identifier: Apache-2.0
// Compares settings that were read again with the running ones: which changed,
// which changes can take effect while the daemon runs, and the settings in
// force after that.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_PROXY_SETTINGS_COMPARE_H_
#define FNCACHE_PROXY_SETTINGS_COMPARE_H_

#include <string>
#include <vector>

#include "common/settings.h"

namespace fncache::proxy::settings {

// A setting with a changed value, as texts for people: "24h", "[a, b]",
// "unset". No setting's value is a secret: settings about secrets name files.
struct SettingChange {
  // The setting's function. Empty: the setting is the daemon's, or all
  // functions have the same change.
  std::string function;
  // "ttl.max". An added or removed entry of functions is "functions", and
  // "absent" on one side.
  std::string key;
  std::string before;
  std::string after;
};

// "function-a.ttl.max".
std::string NameOf(const SettingChange& change);

struct ReloadedSettings {
  // The settings in force: the new values, and the old values of settings that
  // take a restart. The functions are the old ones, in their order. Check them
  // with MakeServeOptions: old values may contradict new ones.
  ResolvedSettings settings;
  std::vector<SettingChange> changed;
  std::vector<SettingChange> restart;
  // For each function: whether one of its settings changed.
  std::vector<bool> functions;
};

// `running` are the settings in force, `read` the wanted ones. Functions are
// matched by name. Both are resolved settings of the daemon.
ReloadedSettings Reloaded(const ResolvedSettings& running,
                          const ResolvedSettings& read);

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_COMPARE_H_
