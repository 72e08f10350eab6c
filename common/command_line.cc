// SPDX-License-Identifier: Apache-2.0
#include "common/command_line.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <exception>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "common/help_text.h"
#include "common/standard_streams.h"
#include "common/utf8.h"

namespace fncache {
namespace {

// Longer errors of CLI11 are cut off: they contain arguments.
constexpr size_t kMostErrorBytes = 300;

// Why `text` is no value of a flag that is counted. CLI11 would throw what is
// no ParseError.
std::string WhyNoFlagValue(const std::string& text) {
  try {
    CLI::detail::to_flag_value(text);
  } catch (const std::exception&) {
    return absl::StrCat("\"", PrintableStart(text),
                        "\" is not accepted; accepted: true, false or a "
                        "whole number");
  }
  return "";
}

// Returns an option with dashes as data.
CommandFlag FlagOf(const CLI::Option& option) {
  CommandFlag flag;
  for (const std::string& name : option.get_snames()) {
    flag.names.push_back(absl::StrCat("-", name));
  }
  for (const std::string& name : option.get_lnames()) {
    flag.names.push_back(absl::StrCat("--", name));
  }
  if (option.get_items_expected_max() > 0) {
    flag.argument = option.get_type_name();
  }
  flag.help = absl::StrReplaceAll(option.get_description(), {{"\n", " "}});
  flag.repeats =
      option.get_expected_max() > 1 ||
      option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  return flag;
}

std::vector<CommandFlag> FlagsOf(const CLI::App& app) {
  std::vector<CommandFlag> flags;
  for (const CLI::Option* const option : app.get_options()) {
    if (option->nonpositional()) flags.push_back(FlagOf(*option));
  }
  return flags;
}

// The flags of `app` and of the command that was given, such as those of
// "admin" and of "admin trace start".
std::vector<CommandFlag> FlagsTaken(const CLI::App& app) {
  std::vector<CommandFlag> flags = FlagsOf(app);
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  if (at == &app) return flags;
  for (CommandFlag& flag : FlagsOf(*at)) flags.push_back(std::move(flag));
  return flags;
}

// `error` is what CLI11 says.
std::string WhyNotParsed(const CLI::App& app, absl::string_view error) {
  const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  if (!extras.empty()) return NotTaken(extras.front(), FlagsTaken(app));
  return Printable(error.substr(0, kMostErrorBytes));
}

}  // namespace

struct CommandLine::Option::Definition {
  CLI::Option* option;
  std::string range = {};  // "5 to 7", for the help
};

struct CommandLine::Impl {
  explicit Impl(CLI::App* its_app) : app(its_app) {
    if (app->get_help_ptr() != nullptr) Define(app->get_help_ptr());
  }

  Option Define(CLI::Option* option) {
    // A deque, as handles point to its elements.
    definitions.push_back({option});
    return Option(&definitions.back());
  }

  template <typename T>
  Option Add(const std::string& names, T* target, const std::string& help) {
    return Define(app->add_option(names, *target, help));
  }

  template <typename Call>
  Outcome Run(const Call& parse);

  // "fncache admin trace".
  std::string FullName() const;
  std::string Usage() const;
  std::string Help() const;

  std::unique_ptr<CLI::App> owned;  // null for a command below another
  CLI::App* app;
  // The usage behind the name, a line each; empty = made of the definitions.
  std::vector<std::string> usages;
  std::string footer;
  // As CLI11 has them, in its order.
  std::deque<Option::Definition> definitions;
  std::vector<std::unique_ptr<CommandLine>> commands;
  std::string error;
  std::string plain_error;
};

// -----------------------------------------------------------------------------
// Option

using Option = CommandLine::Option;

Option Option::TypeName(const std::string& name) const noexcept {
  definition_->option->type_name(name);
  return *this;
}

Option Option::ShowDefault() const noexcept {
  definition_->option->capture_default_str();
  return *this;
}

Option Option::Group(const std::string& heading) const noexcept {
  definition_->option->group(heading);
  return *this;
}

Option Option::Required() const noexcept {
  definition_->option->required();
  return *this;
}

Option Option::Expected(int min, int max) const noexcept {
  definition_->option->expected(min, max);
  return *this;
}

Option Option::Repeats() const noexcept {
  definition_->option->type_size(1)
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return *this;
}

Option Option::RepeatsWithLists() const noexcept {
  definition_->option->expected(1)->take_all();
  return *this;
}

Option Option::Range(int min, int max) const noexcept {
  definition_->option->check(CLI::Range(min, max).description(""));
  definition_->range = absl::StrCat(min, " to ", max);
  return *this;
}

Option Option::Positive() const noexcept {
  CLI::Validator positive = CLI::PositiveNumber;
  definition_->option->check(positive.description(""));
  definition_->range = "above 0";
  return *this;
}

Option Option::OneOf(const std::vector<std::string>& values) const noexcept {
  definition_->option->check(CLI::IsMember(values).description(""));
  return *this;
}

Option Option::Check(
    std::function<std::string(const std::string&)> why_not) const noexcept {
  definition_->option->check(std::move(why_not));
  return *this;
}

bool Option::given() const noexcept { return definition_->option->count() > 0; }

std::vector<std::string> Option::results() const noexcept {
  return definition_->option->results();
}

std::string Option::name() const noexcept {
  return definition_->option->get_name();
}

std::string Option::argument() const noexcept {
  return definition_->option->get_type_name();
}

// -----------------------------------------------------------------------------
// CommandLine

CommandLine::CommandLine(const std::string& purpose,
                         const std::string& name) noexcept {
  auto app = std::make_unique<CLI::App>(purpose, name);
  // Commands below this one inherit it.
  app->set_help_flag("-h,--help", kHelpOfHelp);
  impl_ = std::make_unique<Impl>(app.get());
  impl_->owned = std::move(app);
}

CommandLine::CommandLine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CommandLine::CommandLine(CommandLine&&) noexcept = default;
CommandLine& CommandLine::operator=(CommandLine&&) noexcept = default;
CommandLine::~CommandLine() = default;

Option CommandLine::AddOption(const std::string& names, std::string* target,
                              const std::string& help) noexcept {
  return impl_->Add(names, target, help);
}

Option CommandLine::AddOption(const std::string& names,
                              std::vector<std::string>* target,
                              const std::string& help) noexcept {
  return impl_->Add(names, target, help);
}

Option CommandLine::AddOption(const std::string& names, int* target,
                              const std::string& help) noexcept {
  return impl_->Add(names, target, help);
}

Option CommandLine::AddOption(const std::string& names, uint32_t* target,
                              const std::string& help) noexcept {
  return impl_->Add(names, target, help);
}

Option CommandLine::AddOption(const std::string& names, uint64_t* target,
                              const std::string& help) noexcept {
  return impl_->Add(names, target, help);
}

Option CommandLine::AddOption(const std::string& names, double* target,
                              const std::string& help) noexcept {
  return impl_->Add(names, target, help);
}

Option CommandLine::AddOption(
    const std::string& names,
    std::function<void(const std::vector<std::string>&)> take,
    const std::string& help) noexcept {
  return impl_->Define(
      impl_->app->add_option_function<std::vector<std::string>>(names, take,
                                                                help));
}

Option CommandLine::AddFlag(const std::string& names, bool* target,
                            const std::string& help) noexcept {
  return impl_->Define(impl_->app->add_flag(names, *target, help));
}

Option CommandLine::AddFlag(const std::string& names,
                            std::function<void(int64_t)> take,
                            const std::string& help) noexcept {
  return impl_
      ->Define(impl_->app->add_flag_function(names, std::move(take), help))
      .Check(WhyNoFlagValue);
}

void CommandLine::NoHelpFlag() noexcept {
  // It is the first definition of every command.
  if (impl_->app->get_help_ptr() != nullptr) impl_->definitions.pop_front();
  impl_->app->set_help_flag();
}

void CommandLine::Usage(std::vector<std::string> lines) noexcept {
  impl_->usages = std::move(lines);
}

void CommandLine::Footer(const std::string& text) noexcept {
  impl_->footer = text;
}

void CommandLine::AllowExtras() noexcept { impl_->app->allow_extras(); }

CommandLine* CommandLine::AddCommand(const std::string& name,
                                     const std::string& purpose) noexcept {
  CLI::App* const app = impl_->app->add_subcommand(name, purpose);
  app->fallthrough();
  // Not make_unique, as the constructor is private.
  impl_->commands.push_back(std::unique_ptr<CommandLine>(
      // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): no memory, no help
      new CommandLine(std::make_unique<Impl>(app))));
  return impl_->commands.back().get();
}

void CommandLine::AtMostOneCommand() noexcept {
  impl_->app->require_subcommand(0, 1);
}

template <typename Call>
CommandLine::Outcome CommandLine::Impl::Run(const Call& parse) {
  error.clear();
  plain_error.clear();
  try {
    parse();
    return Outcome::kParsed;
  } catch (const CLI::CallForHelp&) {
    return Outcome::kHelp;
  } catch (const std::exception& thrown) {
    plain_error = thrown.what();
  }
  error = WhyNotParsed(*app, plain_error);
  return Outcome::kError;
}

CommandLine::Outcome CommandLine::Parse(int argc,
                                        const char* const* argv) noexcept {
  return impl_->Run([this, argc, argv] { impl_->app->parse(argc, argv); });
}

CommandLine::Outcome CommandLine::Parse(
    std::vector<std::string> arguments) noexcept {
  // CLI11 takes them from the end.
  std::reverse(arguments.begin(), arguments.end());
  return impl_->Run(
      [this, &arguments] { impl_->app->parse(std::move(arguments)); });
}

absl::optional<int> CommandLine::ParseForMain(
    int argc, const char* const* argv) noexcept {
  const Outcome outcome = Parse(argc, argv);
  if (outcome == Outcome::kParsed) return absl::nullopt;
  if (outcome == Outcome::kHelp) return PrintResult(name(), Help());
  std::fprintf(stderr, "%s: %s; see %s --help\n", name().c_str(),
               error().c_str(), name().c_str());
  return 2;
}

const std::string& CommandLine::error() const { return impl_->error; }

const std::string& CommandLine::plain_error() const {
  return impl_->plain_error;
}

std::string CommandLine::Impl::FullName() const {
  std::string name = app->get_name();
  for (const CLI::App* above = app->get_parent(); above != nullptr;
       above = above->get_parent()) {
    name = absl::StrCat(above->get_name(), " ", name);
  }
  return name;
}

std::string CommandLine::Impl::Usage() const {
  const std::string name = FullName();
  if (!usages.empty()) {
    return absl::StrCat(
        "Usage: ",
        absl::StrJoin(usages, "\n       ",
                      [&name](std::string* out, const std::string& line) {
                        absl::StrAppend(out, name, " ", line);
                      }),
        "\n");
  }
  std::string usage = absl::StrCat(
      "Usage: ", name, commands.empty() ? "" : " COMMAND", " [flags]");
  for (const Option::Definition& one : definitions) {
    const CLI::Option& option = *one.option;
    if (option.nonpositional()) continue;
    const bool list = option.get_items_expected_max() > 1;
    absl::StrAppend(&usage, option.get_required() ? " " : " [",
                    option.get_name(), list ? "..." : "",
                    option.get_required() ? "" : "]");
  }
  return usage + "\n";
}

std::string CommandLine::Impl::Help() const {
  // Where CLI11 puts an option that has no group of its own.
  constexpr absl::string_view kNoGroup = "Options";
  std::string help;
  const std::string purpose = app->get_description();
  if (!purpose.empty()) {
    absl::StrAppend(&help, purpose, absl::EndsWith(purpose, ".") ? "" : ".",
                    "\n\n");
  }
  absl::StrAppend(&help, Usage());
  std::string arguments;
  // The flags' rows by the headings, in the order of their first flag.
  std::vector<std::pair<std::string, std::string>> groups;
  std::string of_help;
  for (const Option::Definition& one : definitions) {
    const CLI::Option& option = *one.option;
    std::string text = option.get_description();
    std::vector<std::string> notes;
    if (!one.range.empty()) notes.push_back(one.range);
    if (!option.get_default_str().empty()) {
      notes.push_back(absl::StrCat("default ", option.get_default_str()));
    }
    if (!notes.empty()) {
      absl::StrAppend(&text, text.empty() ? "" : " ", "(",
                      absl::StrJoin(notes, "; "), ")");
    }
    if (!option.nonpositional()) {
      if (text.empty()) continue;
      AppendHelpRow(absl::StrCat("  ", option.get_name()), text, &arguments);
      continue;
    }
    const CommandFlag flag = FlagOf(option);
    const std::string left = FlagUsage(flag.names, flag.argument);
    // It comes last, wherever it was defined.
    if (flag.names.back() == "--help") {
      AppendHelpRow(left, text, &of_help);
      continue;
    }
    const std::string heading =
        option.get_group() == kNoGroup ? "Flags" : option.get_group();
    auto group = std::find_if(
        groups.begin(), groups.end(),
        [&heading](const auto& known) { return known.first == heading; });
    if (group == groups.end()) {
      group = groups.emplace(groups.end(), heading, "");
    }
    AppendHelpRow(left, text, &group->second);
  }
  if (groups.empty()) groups.push_back({"Flags", ""});
  groups.back().second += of_help;
  if (!arguments.empty()) absl::StrAppend(&help, "\nArguments:\n", arguments);
  for (const auto& [heading, rows] : groups) {
    if (!rows.empty()) absl::StrAppend(&help, "\n", heading, ":\n", rows);
  }
  if (!commands.empty()) absl::StrAppend(&help, "\nCommands:\n");
  for (const auto& command : commands) {
    AppendHelpRow(absl::StrCat("  ", command->name()),
                  command->impl_->app->get_description(), &help);
  }
  const absl::string_view end = absl::StripAsciiWhitespace(footer);
  if (!end.empty()) absl::StrAppend(&help, "\n", end, "\n");
  return help;
}

std::string CommandLine::Help() const noexcept {
  const CommandLine* const given = given_command();
  return given == nullptr ? impl_->Help() : given->Help();
}

std::vector<CommandFlag> CommandLine::Flags() const noexcept {
  return FlagsOf(*impl_->app);
}

std::vector<Option> CommandLine::options() const noexcept {
  std::vector<Option> all;
  all.reserve(impl_->definitions.size());
  for (Option::Definition& one : impl_->definitions) {
    all.push_back(Option(&one));
  }
  return all;
}

bool CommandLine::Given(const std::string& name) const noexcept {
  return impl_->app->count(name) > 0;
}

std::vector<std::string> CommandLine::remaining() const noexcept {
  return impl_->app->remaining(/*recurse=*/true);
}

std::string CommandLine::name() const noexcept {
  return impl_->app->get_name();
}

bool CommandLine::parsed() const noexcept { return impl_->app->parsed(); }

std::vector<const CommandLine*> CommandLine::commands() const noexcept {
  std::vector<const CommandLine*> all;
  all.reserve(impl_->commands.size());
  for (const auto& command : impl_->commands) all.push_back(command.get());
  return all;
}

std::vector<std::string> CommandLine::words() const {
  std::vector<std::string> words;
  for (const auto& command : impl_->commands) words.push_back(command->name());
  return words;
}

const CommandLine* CommandLine::given_command() const noexcept {
  const std::vector<CLI::App*> given = impl_->app->get_subcommands();
  if (given.empty()) return nullptr;
  for (const auto& command : impl_->commands) {
    if (command->impl_->app == given.front()) return command.get();
  }
  return nullptr;
}

}  // namespace fncache
