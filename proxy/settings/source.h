// SPDX-License-Identifier: Apache-2.0
// SettingsSource: the source of the daemon's settings. A reload reads them as
// the start did. Command line and environment stay as they were at the start;
// the file is read each time.
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

  // The file's text now; links are followed. Precondition: file() is not empty.
  // An error says that the file is missing or cannot be read, and names it.
  absl::StatusOr<std::string> ReadFile() const;

  // The settings if the file's text is `text` (no file: empty). InvalidArgument
  // is one line that names key, location and accepted range.
  absl::StatusOr<EffectiveSettings> Resolve(absl::string_view text) const;

 private:
  std::vector<std::pair<std::string, std::string>> flags_;
  std::map<std::string, std::string> environment_;
  std::string file_;
};

}  // namespace fncache::proxy::settings

#endif  // FNCACHE_PROXY_SETTINGS_SOURCE_H_
