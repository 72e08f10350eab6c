// SPDX-License-Identifier: Apache-2.0
#include "proxy/settings/flags.h"

#include <algorithm>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "common/command_flags.h"
#include "proxy/settings/settings.h"

namespace fncache::proxy::settings {
namespace {

// CLI11 takes `--flag=` for a flag without value, and would read the next
// argument as one; here it is the empty text (`--admin=`). So a value after `=`
// becomes an argument of its own.
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
    // The value of the flag before may look like a flag with `=`; CLI11 pairs
    // them in order, so nothing is lost if only flags are split.
    if (equals == std::string::npos || !takes_value) {
      split.push_back(argument);
      continue;
    }
    split.push_back(argument.substr(0, equals));
    split.push_back(argument.substr(equals + 1));
  }
  return split;
}

// The setting that `argument` is the flag of, if it is --FLAG=TEXT of a bool.
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
  CLI::App app;
  app.set_help_flag();
  app.add_flag("-h,--help", flags.help);
  app.add_flag("--check", flags.check);
  const auto one_value = [](CLI::Option* option) {
    option->type_size(1)->expected(1)->allow_extra_args(false);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  one_value(app.add_option("--config", flags.config));
  std::vector<std::vector<std::string>> given(
      ServeSettings().settings().size());
  for (size_t i = 0; i < given.size(); ++i) {
    const Setting& setting = ServeSettings().settings()[i];
    std::vector<std::string>* out = &given[i];
    if (setting.kind == Setting::Kind::kBool) {
      app.add_flag_function(FlagName(setting.key), [out](int64_t count) {
        out->assign(count, "true");
      });
    } else {
      one_value(app.add_option_function<std::vector<std::string>>(
          FlagName(setting.key),
          [out](const std::vector<std::string>& texts) { *out = texts; }));
    }
  }
  std::vector<std::string> reversed;
  for (std::string& argument : SplitValues(arguments)) {
    // CLI11 would read --insecure=TEXT as a number, or throw.
    const Setting* const flag = BoolWithValue(argument);
    if (flag == nullptr) {
      reversed.push_back(std::move(argument));
    } else {
      flags.settings.emplace_back(flag->key,
                                  argument.substr(argument.find('=') + 1));
    }
  }
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(WhyNotParsed(app, error), "; see fncache serve --help"));
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
