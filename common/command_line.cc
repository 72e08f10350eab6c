// SPDX-License-Identifier: Apache-2.0
#include "common/command_line.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/utf8.h"

namespace fncache {
namespace {

// Longer errors of CLI11 are cut off: they contain arguments.
constexpr size_t kMostErrorBytes = 300;

// Columns of the help.
constexpr size_t kColumns = 80;

// Breaks `line` at spaces, so that it fits in `width` columns.
std::string Wrapped(absl::string_view line, size_t width) {
  std::string wrapped;
  size_t used = 0;
  for (const absl::string_view word : absl::StrSplit(line, ' ')) {
    const bool fits = used + 1 + word.size() <= width;
    if (used > 0) wrapped += fits ? ' ' : '\n';
    used = (used > 0 && fits ? used + 1 : 0) + word.size();
    absl::StrAppend(&wrapped, word);
  }
  return wrapped;
}

class WrappingFormatter : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    const size_t width = kColumns - get_column_width();
    const std::vector<absl::string_view> lines =
        absl::StrSplit(option->get_description(), '\n');
    return absl::StrJoin(lines, "\n",
                         [width](std::string* out, absl::string_view line) {
                           *out += Wrapped(line, width);
                         });
  }
};

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

  std::unique_ptr<CLI::App> owned;  // null for a command below another
  CLI::App* app;
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

Option Option::OneValueEach() const noexcept {
  definition_->option->allow_extra_args(false);
  return *this;
}

Option Option::Range(int min, int max) const noexcept {
  definition_->option->check(CLI::Range(min, max));
  return *this;
}

Option Option::Positive() const noexcept {
  definition_->option->check(CLI::PositiveNumber);
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
  app->formatter(std::make_shared<WrappingFormatter>());
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

void CommandLine::Footer(const std::string& text) noexcept {
  impl_->app->footer(text);
}

void CommandLine::Label(const std::string& word,
                        const std::string& replacement) noexcept {
  impl_->app->get_formatter()->label(word, replacement);
}

void CommandLine::AllowExtras() noexcept { impl_->app->allow_extras(); }

CommandLine* CommandLine::AddCommand(const std::string& name,
                                     const std::string& purpose) noexcept {
  CLI::App* const app = impl_->app->add_subcommand(name, purpose);
  app->fallthrough();
  // Not make_unique, as the constructor is private.
  impl_->commands.push_back(std::unique_ptr<CommandLine>(
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
  try {
    impl_->app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return impl_->app->exit(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
  return absl::nullopt;
}

const std::string& CommandLine::error() const { return impl_->error; }

const std::string& CommandLine::plain_error() const {
  return impl_->plain_error;
}

std::string CommandLine::Help() const noexcept { return impl_->app->help(); }

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

const CommandLine* CommandLine::given_command() const noexcept {
  const std::vector<CLI::App*> given = impl_->app->get_subcommands();
  if (given.empty()) return nullptr;
  for (const auto& command : impl_->commands) {
    if (command->impl_->app == given.front()) return command.get();
  }
  return nullptr;
}

}  // namespace fncache
