// SPDX-License-Identifier: Apache-2.0
#include "proxy/settings/flags.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/command_line.h"
#include "proxy/settings/settings.h"

namespace fncache::proxy::settings {
namespace {

// CommandLine reads `--flag=` as a flag without value, and takes the next
// argument as its value. Here it means the empty text (`--admin=`). So a value
// after `=` becomes an argument of its own.
std::vector<std::string> SplitValues(
    const std::vector<std::string>& arguments) {
  std::vector<std::string> split;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    bool takes_value = argument.rfind("--config=", 0) == 0;
    for (const Setting& setting : ServeSettings().settings()) {
      if (setting.kind == Setting::Kind::kBool) continue;
      takes_value =
          takes_value || argument.substr(0, equals) == FlagName(setting.key);
    }
    // The value of the flag before may look like a flag with `=`. CommandLine
    // pairs flags and values in order, so it is enough to split flags only.
    if (equals == std::string::npos || !takes_value) {
      split.push_back(argument);
      continue;
    }
    split.push_back(argument.substr(0, equals));
    split.push_back(argument.substr(equals + 1));
  }
  return split;
}

// The setting of the flag, if `argument` is --FLAG=TEXT for a bool; else null.
const Setting* BoolWithValue(const std::string& argument) {
  const size_t equals = argument.find('=');
  if (equals == std::string::npos) return nullptr;
  for (const Setting& setting : ServeSettings().settings()) {
    if (setting.kind == Setting::Kind::kBool &&
        argument.substr(0, equals) == FlagName(setting.key)) {
      return &setting;
    }
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<ServeFlags> ParseServeFlags(
    const std::vector<std::string>& arguments) {
  ServeFlags flags;
  CommandLine line;
  line.NoHelpFlag();
  line.AddFlag("-h,--help", &flags.help);
  line.AddFlag("--check", &flags.check);
  line.AddFlag("--check-shared", &flags.check_shared);
  line.AddOption("--config", &flags.config).Repeats();
  std::vector<std::vector<std::string>> given(
      ServeSettings().settings().size());
  for (size_t i = 0; i < given.size(); ++i) {
    const Setting& setting = ServeSettings().settings()[i];
    std::vector<std::string>* out = &given[i];
    if (setting.kind == Setting::Kind::kBool) {
      line.AddFlag(FlagName(setting.key),
                   [out](int64_t count) { out->assign(count, "true"); });
    } else {
      line.AddOption(FlagName(setting.key), out).Repeats();
    }
  }
  std::vector<std::string> parsed;
  for (std::string& argument : SplitValues(arguments)) {
    // CommandLine would read --insecure=TEXT as a number, or refuse it.
    const Setting* const flag = BoolWithValue(argument);
    if (flag == nullptr) {
      parsed.push_back(std::move(argument));
    } else {
      flags.settings.emplace_back(flag->key,
                                  argument.substr(argument.find('=') + 1));
    }
  }
  if (line.Parse(std::move(parsed)) == CommandLine::Outcome::kError) {
    return absl::InvalidArgumentError(
        absl::StrCat(line.error(), "; see fncache serve --help"));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    for (std::string& text : given[i]) {
      flags.settings.emplace_back(ServeSettings().settings()[i].key,
                                  std::move(text));
    }
  }
  if (flags.config.size() > 1) {
    return absl::InvalidArgumentError(
        "--config: is given twice; accepted: one file");
  }
  return flags;
}

}  // namespace fncache::proxy::settings
