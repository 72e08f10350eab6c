// SPDX-License-Identifier: Apache-2.0
#include "common/command_flags.h"

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/nearest.h"
#include "common/utf8.h"

namespace fncache {
namespace {

// Returns enough of what somebody typed to be recognised, fit to be printed.
std::string Shown(absl::string_view text) {
  return Printable(text.substr(0, 100));
}

}  // namespace

std::vector<CommandFlag> FlagsOf(const CLI::App& app) {
  std::vector<CommandFlag> flags;
  for (const CLI::Option* const option : app.get_options()) {
    CommandFlag flag;
    for (const std::string& name : option->get_snames()) {
      flag.names.push_back(absl::StrCat("-", name));
    }
    for (const std::string& name : option->get_lnames()) {
      flag.names.push_back(absl::StrCat("--", name));
    }
    if (flag.names.empty()) continue;  // a positional argument
    if (option->get_items_expected_max() > 0) {
      flag.argument = option->get_type_name();
    }
    flag.help = absl::StrReplaceAll(option->get_description(), {{"\n", " "}});
    flag.repeats =
        option->get_expected_max() > 1 ||
        option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
    flags.push_back(std::move(flag));
  }
  return flags;
}

void WrapHelp(CLI::App* app) {
  // CLI11 writes descriptions from this column on.
  constexpr size_t kWidth = 80 - 30;
  for (CLI::Option* const option : app->get_options()) {
    std::string wrapped;
    size_t used = 0;
    for (const absl::string_view word :
         absl::StrSplit(option->get_description(), ' ')) {
      const bool fits = used + 1 + word.size() <= kWidth;
      if (used > 0) wrapped += fits ? ' ' : '\n';
      used = (used > 0 && fits ? used + 1 : 0) + word.size();
      wrapped.append(word.data(), word.size());
    }
    option->description(wrapped);
  }
}

std::string NotTaken(absl::string_view argument,
                     const std::vector<CommandFlag>& flags) {
  if (!absl::StartsWith(argument, "-")) {
    return absl::StrCat("unexpected argument ", Shown(argument));
  }
  const absl::string_view name = argument.substr(0, argument.find('='));
  std::vector<std::string> names;
  for (const CommandFlag& flag : flags) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  return absl::StrCat("unknown flag ", Shown(name), DidYouMean(name, names));
}

std::string WhyNoWholeNumber(const std::string& text, uint64_t most) {
  uint64_t number = 0;
  if (absl::SimpleAtoi(text, &number) && number <= most) return "";
  return absl::StrCat("\"", Shown(text),
                      "\" is not accepted; accepted: a whole number from 0 up");
}

std::string WhyNotParsed(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> extras = app.remaining();
  if (!extras.empty()) return NotTaken(extras.front(), FlagsOf(app));
  return Printable(absl::string_view(error.what()).substr(0, 300));
}

}  // namespace fncache
