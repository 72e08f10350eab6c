// SPDX-License-Identifier: Apache-2.0
// SettingsSource: where the daemon has its settings from, so that they can be
// read again as they were read at the start. Command line and environment stay
// as they were then; the file is read anew each time.
//
// Thread-safe: immutable after construction.
#ifndef FNCACHE_PROXY_SETTINGS_SOURCE_H_
#define FNCACHE_PROXY_SETTINGS_SOURCE_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/settings.h"
#include "proxy/settings/check.h"

namespace fncache::proxy::settings {

// All settings, resolved and checked.
struct EffectiveSettings {
  ResolvedSettings resolved;
  ServeOptions options;
};

class SettingsSource {
 public:
  // `flags`: keys of the table and texts. `environment`: all variables. `file`:
  // the path of the settings file; empty = there is none.
  SettingsSource(std::vector<std::pair<std::string, std::string>> flags,
                 std::map<std::string, std::string> environment,
                 std::string file)
      : flags_(std::move(flags)),
        environment_(std::move(environment)),
        file_(std::move(file)) {}

  const std::string& file() const { return file_; }

  // What the file holds now, links followed. Precondition: there is one. Fails
  // where it is not there or cannot be read; the message names it.
  absl::StatusOr<std::string> ReadFile() const;

  // The settings that come of it where the file holds `text` (none: empty).
  // InvalidArgument, one line, names key, place and accepted range.
  absl::StatusOr<EffectiveSettings> Resolve(absl::string_view text) const;

 private:
  std::vector<std::pair<std::string, std::string>> flags_;
  std::map<std::string, std::string> environment_;
  std::string file_;
};

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_SOURCE_H_
