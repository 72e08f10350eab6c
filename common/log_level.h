// SPDX-License-Identifier: Apache-2.0
// The names of the log levels in settings and commands.
//
// Constants; thread-safe.
#ifndef FNCACHE_COMMON_LOG_LEVEL_H_
#define FNCACHE_COMMON_LOG_LEVEL_H_

#include <string>
#include <utility>
#include <vector>

#include "common/log.h"

namespace fncache {

// All of them, from the one that says most.
inline constexpr std::pair<const char*, LogLevel> kLogLevels[] = {
    {"debug", LogLevel::kDebug},
    {"info", LogLevel::kInfo},
    {"warn", LogLevel::kWarning},
    {"error", LogLevel::kError}};

inline const char* LogLevelName(LogLevel level) {
  for (const auto& [name, value] : kLogLevels) {
    if (value == level) return name;
  }
  return "";
}

inline std::vector<std::string> LogLevelNames() {
  std::vector<std::string> names;
  for (const auto& level : kLogLevels) names.emplace_back(level.first);
  return names;
}

}  // namespace fncache

#endif  // FNCACHE_COMMON_LOG_LEVEL_H_
