// SPDX-License-Identifier: Apache-2.0
#include "program/completion.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace fncache::program {
namespace {

// The flags that the binary takes in a command's place.
constexpr char kGlobalFlags[] = "--help --version";

// The first sentence of a help text: enough to distinguish flags.
std::string Summary(const std::string& help) {
  const size_t end = help.find(". ");
  std::string first = help.substr(0, end);
  if (absl::EndsWith(first, ".")) first.pop_back();
  return first;
}

bool TakesFile(const CommandFlag& flag) {
  return flag.argument == "FILE" || flag.argument == "DIR" ||
         flag.argument == "PATH";
}

bool TakesOtherText(const CommandFlag& flag) {
  return !flag.argument.empty() && !TakesFile(flag);
}

// The names of those flags for which `wanted` holds, or of all.
std::string Names(const std::vector<CommandFlag>& flags,
                  bool (*wanted)(const CommandFlag&) = nullptr) {
  std::vector<std::string> names;
  for (const CommandFlag& flag : flags) {
    if (wanted != nullptr && !wanted(flag)) continue;
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  return absl::StrJoin(names, " ");
}

// `text` as one word of any of the three shells.
std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string CommandNames(const std::vector<Command>& commands) {
  return absl::StrJoin(commands, " ",
                       [](std::string* out, const Command& command) {
                         absl::StrAppend(out, command.name);
                       });
}

// Text within the brackets of one of zsh's specifications of an argument.
std::string ZshEscaped(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
}

// A flag as zsh's _arguments wants it: (others)NAME[help]:VALUE:action.
void AppendZshFlag(const CommandFlag& flag, std::string* out) {
  for (const std::string& name : flag.names) {
    std::string spec;
    if (flag.repeats) {
      spec = "*";
    } else if (flag.names.size() > 1) {
      // Once one of its names is given, none is offered.
      spec = absl::StrCat("(", absl::StrJoin(flag.names, " "), ")");
    }
    // `=`: the value may be in the same word.
    const bool joined = !flag.argument.empty() && absl::StartsWith(name, "--");
    absl::StrAppend(&spec, name, joined ? "=" : "", "[",
                    ZshEscaped(Summary(flag.help)), "]");
    if (!flag.argument.empty()) {
      absl::StrAppend(&spec, ":", ZshEscaped(flag.argument), ":",
                      TakesFile(flag) ? "_files" : "");
    }
    absl::StrAppend(out, " \\\n        ", Quoted(spec));
  }
}

}  // namespace

std::string BashCompletion(const std::vector<Command>& commands) {
  std::string out = absl::StrCat(R"(# bash completion for fncache: put it into
# ~/.local/share/bash-completion/completions/fncache, or for one session run
#   . <(fncache completion bash)
_fncache() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  # bash takes --flag=value for three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
  COMPREPLY=()
  local words= flags= files= texts= takes_files=
  if ((COMP_CWORD == 1)); then
    words=')",
                                 CommandNames(commands), " ", kGlobalFlags,
                                 R"('
  else
    case ${COMP_WORDS[1]} in
)");
  for (const Command& command : commands) {
    const std::vector<CommandFlag> flags = command.flags();
    absl::StrAppend(&out, "      ", command.name, ")\n", "        words='",
                    absl::StrJoin(command.words, " "), "'\n        flags='",
                    Names(flags), "'\n        files='", Names(flags, TakesFile),
                    "'\n        texts='", Names(flags, TakesOtherText),
                    "'\n        takes_files=", command.takes_files ? "yes" : "",
                    "\n        ;;\n");
  }
  absl::StrAppend(&out, R"(    esac
    if [[ " $texts " == *" $before "* ]]; then return; fi
    if [[ " $files " == *" $before "* ]]; then
      words= flags= takes_files=yes
    elif [[ $current == -* ]]; then
      words=$flags takes_files=
    fi
  fi
  if [[ -n $takes_files ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  fi
}
complete -F _fncache fncache
)");
  return out;
}

std::string ZshCompletion(const std::vector<Command>& commands) {
  std::string out = R"(#compdef fncache
# zsh completion for fncache: put it into a folder of $fpath as _fncache.
_fncache() {
  if ((CURRENT == 2)); then
    local -a commands=(
)";
  for (const Command& command : commands) {
    absl::StrAppend(
        &out, "      ",
        Quoted(absl::StrCat(command.name, ":", ZshEscaped(command.purpose))),
        "\n");
  }
  absl::StrAppend(&out, R"(    )
    _describe command commands
    compadd -- )",
                  kGlobalFlags, R"(
    return
  fi
  local command=${words[2]}
  shift words
  ((CURRENT--))
  case $command in
)");
  for (const Command& command : commands) {
    absl::StrAppend(&out, "    ", command.name, ")\n      _arguments");
    for (const CommandFlag& flag : command.flags()) AppendZshFlag(flag, &out);
    if (!command.words.empty()) {
      absl::StrAppend(&out, " \\\n        ",
                      Quoted(absl::StrCat(
                          "1: :(", absl::StrJoin(command.words, " "), ")")));
    } else if (command.takes_files) {
      absl::StrAppend(&out, " \\\n        '*:file:_files'");
    }
    absl::StrAppend(&out, "\n      ;;\n");
  }
  absl::StrAppend(&out, R"(  esac
}
_fncache "$@"
)");
  return out;
}

std::string FishCompletion(const std::vector<Command>& commands) {
  std::string out =
      "# fish completion for fncache: put it into\n"
      "# ~/.config/fish/completions/fncache.fish.\n"
      "\n"
      "# Whether the command is $argv[1]. fish's own test looks at every word, "
      "but\n"
      "# one such as `render` is a command and an argument of others.\n"
      "function __fncache_is\n"
      "  set -l words (commandline -opc)\n"
      "  test (count $words) -gt 1; and test $words[2] = $argv[1]\n"
      "end\n"
      "complete -c fncache -f\n"
      "complete -c fncache -n __fish_use_subcommand -l help -d 'Help'\n"
      "complete -c fncache -n __fish_use_subcommand -l version -d 'Version'\n";
  for (const Command& command : commands) {
    absl::StrAppend(&out, "complete -c fncache -n __fish_use_subcommand -a ",
                    command.name, " -d ", Quoted(command.purpose), "\n");
  }
  for (const Command& command : commands) {
    const std::string of = absl::StrCat("complete -c fncache -n '__fncache_is ",
                                        command.name, "'");
    for (const std::string& word : command.words) {
      absl::StrAppend(&out, of, " -a ", word, "\n");
    }
    if (command.takes_files) absl::StrAppend(&out, of, " -F\n");
    for (const CommandFlag& flag : command.flags()) {
      absl::StrAppend(&out, of);
      for (const std::string& name : flag.names) {
        absl::StrAppend(&out, absl::StartsWith(name, "--") ? " -l " : " -s ",
                        name.substr(name.find_first_not_of('-')));
      }
      if (TakesFile(flag)) absl::StrAppend(&out, " -r -F");
      if (TakesOtherText(flag)) absl::StrAppend(&out, " -x");
      absl::StrAppend(&out, " -d ", Quoted(Summary(flag.help)), "\n");
    }
  }
  return out;
}

}  // namespace fncache::program
