// SPDX-License-Identifier: Apache-2.0
#include "common/command_flags.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/nearest.h"
#include "common/utf8.h"

namespace fncache {
namespace {

// Returns enough of a typed text to be recognized, fit to be printed.
std::string Shown(absl::string_view text) {
  return Printable(text.substr(0, 100));
}

}  // namespace

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

}  // namespace fncache
