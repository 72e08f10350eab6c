// SPDX-License-Identifier: Apache-2.0
// fncache: dispatches to its commands. Each command owns its own flags; what is
// made of all of them (the list, completions, the manual's pages) is made here.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "commit.h"
#include "common/grpc_log.h"
#include "common/help_text.h"
#include "common/nearest.h"
#include "common/standard_streams.h"
#include "common/threads.h"
#include "common/utf8.h"
#include "common/version.h"
#include "insight/explain/command.h"
#include "openssl/crypto.h"
#include "program/command.h"
#include "program/completion.h"
#include "program/man_page.h"
#include "proxy/admin/command.h"
#include "proxy/admin/record.h"
#include "proxy/health_command.h"
#include "proxy/serve_command.h"
#include "proxy/settings/help.h"
#include "proxy/settings/what_if_settings.h"
#include "runner/advise/command.h"
#include "runner/demo/command.h"
#include "runner/function/command.h"
#include "runner/load/command.h"
#include "runner/load/options.h"
#include "runner/probe/command.h"
#include "runner/render/command.h"
#include "runner/render/flags.h"
#include "runner/render/internal_command.h"
#include "runner/replay/command.h"
#include "sdk/generate/command.h"

namespace {

using fncache::CommandFlag;
using fncache::PrintResult;
using fncache::program::Command;

int HelpMain(int argc, char** argv);
int VersionMain(int argc, char** argv);
int CompletionMain(int argc, char** argv);

const std::vector<CommandFlag>& HelpFlag() {
  static const auto* const flags = new std::vector<CommandFlag>{
      {{"-h", "--help"}, "", fncache::kHelpOfHelp, false}};
  return *flags;
}

std::vector<CommandFlag> HelpFlags() {
  std::vector<CommandFlag> flags = {
      {{"--man"},
       "",
       "As a page of the manual: fncache help --man serve | man -l -",
       false}};
  flags.push_back(HelpFlag().front());
  return flags;
}

// The end of a small command's help.
std::string FlagsText(const std::vector<CommandFlag>& flags) {
  std::string text = "Flags:\n";
  for (const CommandFlag& flag : flags) {
    fncache::AppendHelpRow(fncache::FlagUsage(flag.names, flag.argument),
                           flag.help, &text);
  }
  return absl::StrCat(
      text, "\nExit codes: 0; 2 for a command line that does not fit.\n");
}

std::string HelpHelp() {
  return absl::StrCat(R"(Explains a command, or lists all of them.

Usage: fncache help [COMMAND [SUBCOMMAND]...]
       fncache help --man [COMMAND]

Examples:
  fncache help serve
  fncache help admin stats

)",
                      FlagsText(HelpFlags()));
}

std::string VersionHelp() {
  return absl::StrCat(
      R"(Prints the version and, where it is known, the commit it was built from.

Usage: fncache version [flags]

)",
      FlagsText(HelpFlag()));
}

std::string CompletionHelp() {
  return absl::StrCat(
      R"(Prints a script that teaches a shell to complete commands, flags and files.

Usage: fncache completion bash|zsh|fish

For this session of bash:
  . <(fncache completion bash)

For every session to come:
  fncache completion bash > ~/.local/share/bash-completion/completions/fncache
  fncache completion zsh > ~/.zfunc/_fncache    # where ~/.zfunc is in $fpath
  fncache completion fish > ~/.config/fish/completions/fncache.fish

)",
      FlagsText(HelpFlag()));
}

// `advise --live` knows no daemon, and `admin` no advice.
absl::StatusOr<std::map<std::string, std::string>> RecordLive(
    const fncache::runner::advise::LiveRequest& request) {
  return fncache::proxy::admin::RecordTrace(
      {request.socket, request.cache_dir, request.dir, request.for_time});
}

const std::vector<Command>& Commands() {
  static const auto* const commands = [] {
    auto* all = new std::vector<Command>{
        {"serve",
         "answer a function's repeated calls from memory or disk",
         [](int argc, char** argv) {
           return fncache::proxy::ServeMain(argc, argv, fncache::Commit());
         },
         fncache::proxy::settings::ServeHelp,
         fncache::proxy::settings::ServeCommandFlags,
         {}},
        {"admin", "stats, look-up, purge, explain, reload of a running daemon",
         fncache::proxy::admin::AdminMain, fncache::proxy::admin::AdminHelp,
         fncache::proxy::admin::AdminCommandFlags,
         fncache::proxy::admin::AdminWords(),
         /*takes_files=*/false},
        {"health",
         "ask a daemon whether it is well, as a container's probe",
         fncache::proxy::HealthMain,
         fncache::proxy::HealthHelp,
         fncache::proxy::HealthCommandFlags,
         {}},
        {"demo",
         "show calls, hits, a crash and an expiry here, in under a minute",
         fncache::runner::demo::DemoMain,
         fncache::runner::demo::DemoHelp,
         fncache::runner::demo::DemoCommandFlags,
         {}},
        {"function",
         "a small composition function to put behind the proxy",
         fncache::runner::function::FunctionMain,
         fncache::runner::function::FunctionHelp,
         fncache::runner::function::FunctionCommandFlags,
         {}},
        {"render",
         "what Crossplane would apply for a composite resource",
         fncache::runner::render::RenderMain,
         fncache::runner::render::RenderHelp,
         fncache::runner::render::RenderCommandFlags,
         {},
         /*takes_files=*/true},
        {"explain",
         "why requests missed, and which mask would have saved them",
         fncache::insight::explain::ExplainMain,
         fncache::insight::explain::ExplainHelp,
         fncache::insight::explain::ExplainCommandFlags,
         {},
         /*takes_files=*/true},
        {"probe",
         "which fields of a request a function's answer depends on",
         fncache::runner::probe::ProbeMain,
         fncache::runner::probe::ProbeHelp,
         fncache::runner::probe::ProbeCommandFlags,
         {},
         /*takes_files=*/true},
        {"advise",
         "safe settings as YAML, from a trace or a running daemon",
         [](int argc, char** argv) {
           return fncache::runner::advise::AdviseMain(
               argc, argv, fncache::proxy::settings::WhatIfSettings(),
               RecordLive);
         },
         fncache::runner::advise::AdviseHelp,
         fncache::runner::advise::AdviseCommandFlags,
         {},
         /*takes_files=*/true},
        {"load",
         "load-test pipelines, and measure what a cache is worth",
         fncache::runner::load::LoadMain,
         fncache::runner::load::LoadHelp,
         fncache::runner::load::LoadCommandFlags,
         {"report"},
         /*takes_files=*/true},
        {"replay",
         "what other settings would give, from a trace; or replay it",
         [](int argc, char** argv) {
           return fncache::runner::replay::ReplayMain(
               argc, argv, fncache::proxy::settings::WhatIfSettings());
         },
         fncache::runner::replay::ReplayHelp,
         fncache::runner::replay::ReplayCommandFlags,
         {},
         /*takes_files=*/true},
        {"sdk", "projects and models for functions in C++",
         fncache::sdk::SdkMain, fncache::sdk::SdkHelp,
         fncache::sdk::SdkCommandFlags, fncache::sdk::SdkWords(),
         /*takes_files=*/false},
        {"internal",
         "the engine that crossplane render --crossplane-binary runs",
         fncache::runner::render::InternalMain,
         fncache::runner::render::InternalHelp,
         fncache::runner::render::InternalCommandFlags,
         {"render"}},
        {"help", "explain a command", HelpMain, HelpHelp, HelpFlags, {}},
        {"version",
         "the version, and the commit it was built from",
         VersionMain,
         VersionHelp,
         [] { return HelpFlag(); },
         {}},
        {"completion",
         "a script for bash, zsh or fish that completes all this",
         CompletionMain,
         CompletionHelp,
         [] { return HelpFlag(); },
         {"bash", "zsh", "fish"}},
    };
    std::vector<std::string> names;
    for (const Command& command : *all) names.push_back(command.name);
    for (Command& command : *all) {
      if (command.name == "help") command.words = names;
    }
    return all;
  }();
  return *commands;
}

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const Command& command : Commands()) names.push_back(command.name);
  return names;
}

const Command* Find(absl::string_view name) {
  for (const Command& command : Commands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

std::string Help() {
  std::string help =
      "A caching proxy for Crossplane's composition functions.\n\n"
      "Usage: fncache COMMAND [flags]\n\nCommands:\n";
  for (const Command& command : Commands()) {
    absl::StrAppend(&help, "  ", command.name,
                    std::string(12 - command.name.size(), ' '), command.purpose,
                    "\n");
  }
  return absl::StrCat(help,
                      "\nfncache help COMMAND, or fncache COMMAND --help, "
                      "explains a command.\n");
}

std::string VersionText() {
  const absl::string_view commit = fncache::Commit();
  return absl::StrCat("fncache ", fncache::Version(),
                      commit.empty() ? "" : " (commit ", commit,
                      commit.empty() ? "" : ")");
}

// The page of `command`, or of the binary itself where that is null.
std::string ManPageOf(const Command* command) {
  fncache::program::ManPage page;
  page.version = VersionText();
  if (command != nullptr) {
    page.name = absl::StrCat("fncache-", command->name);
    page.purpose = command->purpose;
    page.help = command->help();
    page.see_also = "fncache(1)";
  } else {
    page.name = "fncache";
    page.purpose = "a caching proxy for Crossplane's composition functions";
    page.help = Help();
    page.see_also = absl::StrJoin(
        CommandNames(), ", ", [](std::string* out, const std::string& name) {
          absl::StrAppend(out, "fncache-", name, "(1)");
        });
  }
  return fncache::program::PrintManPage(page);
}

int Refuse(absl::string_view command, absl::string_view why) {
  std::fprintf(stderr, "%s: %s\n", std::string(command).c_str(),
               std::string(why).c_str());
  return 2;
}

std::string UnknownCommand(absl::string_view name) {
  return absl::StrCat("unknown command \"",
                      fncache::Printable(name.substr(0, 100)), "\"",
                      fncache::DidYouMean(name, CommandNames()),
                      "; accepted: ", absl::StrJoin(CommandNames(), ", "),
                      " (see fncache --help)");
}

// The arguments of a small command of this file: its words, at most one but for
// help, and which of its flags stand among them.
struct Arguments {
  bool help = false;
  bool man = false;
  std::vector<std::string> words;
  std::string wrong;  // why they are not accepted
};

Arguments Parse(const Command& command, int argc, char** argv) {
  Arguments parsed;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      parsed.help = true;
    } else if (argument == "--man" && command.name == "help") {
      parsed.man = true;
    } else if (!argument.empty() && argument[0] != '-' &&
               !command.words.empty() &&
               (parsed.words.empty() || command.name == "help")) {
      parsed.words.push_back(argument);
    } else if (parsed.wrong.empty()) {
      parsed.wrong = absl::StrCat(fncache::NotTaken(argument, command.flags()),
                                  "; see fncache ", command.name, " --help");
    }
  }
  return parsed;
}

// The help of a command below `command`: what it prints with --help. `words`
// are its name and those below it.
int HelpBelow(const Command& command, const std::vector<std::string>& words) {
  if (std::find(command.words.begin(), command.words.end(), words.front()) ==
      command.words.end()) {
    return Refuse(
        "fncache help",
        absl::StrCat(
            "unknown command \"",
            fncache::Printable(words.front().substr(0, 100)), "\" of ",
            command.name, fncache::DidYouMean(words.front(), command.words),
            "; accepted: ",
            command.words.empty() ? "none"
                                  : absl::StrJoin(command.words, ", ")));
  }
  std::vector<std::string> texts = {command.name};
  texts.insert(texts.end(), words.begin(), words.end());
  texts.emplace_back("--help");
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  return command.run(static_cast<int>(arguments.size()), arguments.data());
}

int HelpMain(int argc, char** argv) {
  const Arguments arguments = Parse(*Find("help"), argc, argv);
  if (arguments.help) return PrintResult("fncache help", HelpHelp());
  if (!arguments.wrong.empty()) return Refuse("fncache help", arguments.wrong);
  const std::vector<std::string>& words = arguments.words;
  const Command* const command = words.empty() ? nullptr : Find(words.front());
  if (!words.empty() && command == nullptr) {
    return Refuse("fncache help", UnknownCommand(words.front()));
  }
  if (arguments.man) {
    if (words.size() > 1) {
      return Refuse("fncache help",
                    "--man: a page is of one command; see fncache help --help");
    }
    return PrintResult("fncache help", ManPageOf(command));
  }
  if (words.size() > 1) {
    return HelpBelow(*command, {words.begin() + 1, words.end()});
  }
  return PrintResult("fncache help",
                     command == nullptr ? Help() : command->help());
}

int VersionMain(int argc, char** argv) {
  const Arguments arguments = Parse(*Find("version"), argc, argv);
  if (arguments.help) return PrintResult("fncache version", VersionHelp());
  if (!arguments.wrong.empty()) {
    return Refuse("fncache version", arguments.wrong);
  }
  return PrintResult("fncache version", absl::StrCat(VersionText(), "\n"));
}

int CompletionMain(int argc, char** argv) {
  const Command& self = *Find("completion");
  const Arguments arguments = Parse(self, argc, argv);
  if (arguments.help) return PrintResult("fncache completion", self.help());
  if (!arguments.wrong.empty()) {
    return Refuse("fncache completion", arguments.wrong);
  }
  const std::string shell =
      arguments.words.empty() ? "" : arguments.words.front();
  if (shell == "bash") {
    return PrintResult("fncache completion",
                       fncache::program::BashCompletion(Commands()));
  }
  if (shell == "zsh") {
    return PrintResult("fncache completion",
                       fncache::program::ZshCompletion(Commands()));
  }
  if (shell == "fish") {
    return PrintResult("fncache completion",
                       fncache::program::FishCompletion(Commands()));
  }
  return Refuse(
      "fncache completion",
      absl::StrCat(shell.empty()
                       ? "a shell is missing"
                       : absl::StrCat("unknown shell \"",
                                      fncache::Printable(shell), "\""),
                   "; accepted: ", absl::StrJoin(self.words, ", ")));
}

}  // namespace

int main(int argc, char** argv) {
  if (!fncache::FillStandardStreams()) return 1;
  fncache::ExitWhereThreadsAreMissing();
  // Debian's abseil detects deadlocks by default: 210 ns a lock instead of 7.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // At exit OpenSSL would free memory that gRPC's threads may still use to
  // connect. These threads cannot be joined.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  fncache::TakeGrpcLog();
  if (argc < 2) {
    std::fputs(Help().c_str(), stderr);
    return 2;
  }
  const absl::string_view name = argv[1];
  if (name == "--help" || name == "-h") return PrintResult("fncache", Help());
  if (name == "--version") {
    return PrintResult("fncache", absl::StrCat(VersionText(), "\n"));
  }
  const Command* const command = Find(name);
  if (command == nullptr) return Refuse("fncache", UnknownCommand(name));
  return command->run(argc - 1, argv + 1);
}
