// SPDX-License-Identifier: Apache-2.0
#include "proxy/settings/help.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cache/key/mask.h"
#include "common/help_text.h"
#include "proxy/settings/settings.h"

namespace fncache::proxy::settings {
namespace {

// Appends `text` in lines of at most 80 columns, each after `indent` spaces.
void AppendWrapped(absl::string_view text, size_t indent, std::string* out) {
  const std::string margin(indent, ' ');
  std::string line = margin;
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    if (line.size() > indent && line.size() + 1 + word.size() > 80) {
      absl::StrAppend(out, line, "\n");
      line = margin;
    }
    absl::StrAppend(&line, line.size() > indent ? " " : "", word);
  }
  absl::StrAppend(out, line, "\n");
}

std::string FirstSentence(const std::string& text) {
  const size_t end = text.find(". ");
  return end == std::string::npos ? text : text.substr(0, end + 1);
}

std::string DefaultText(const Setting& setting) {
  std::string value = setting.default_value.value_or(setting.default_note);
  if (setting.default_variable.empty()) return value;
  return absl::StrCat("$", setting.default_variable, ", else ", value);
}

std::string ScopeText(const Setting& setting) {
  switch (setting.scope) {
    case SettingScope::kDaemon:
      return "the daemon";
    case SettingScope::kBoth:
      return "each function; given outside `functions:` it is their default";
    case SettingScope::kFunction:
      return absl::StrCat(
          "each function; beside `functions:` in its entries "
          "only",
          setting.entry_key.empty()
              ? ""
              : absl::StrCat(", as `", setting.entry_key, "`"));
  }
  return "";
}

std::string SettingUsage(const Setting& setting) {
  return setting.metavar.empty()
             ? FlagName(setting.key)
             : absl::StrCat(FlagName(setting.key), " ", setting.metavar);
}

// The most important settings, one line each. The groups explain all of them.
void AppendFirstSettings(std::string* out) {
  constexpr const char* kFirst[] = {"upstream",  "listen", "tls_dir",
                                    "cache.dir", "mask",   "ttl.min"};
  absl::StrAppend(out, "The settings that matter first:\n");
  for (const char* const key : kFirst) {
    const Setting& setting = *ServeSettings().Find(key);
    AppendHelpRow(FlagUsage({FlagName(key)}, setting.metavar),
                  FirstSentence(setting.help), out);
  }
}

void AppendGroups(std::string* out,
                  void (*heading)(const std::string&, std::string*),
                  void (*append)(const Setting&, std::string*)) {
  std::string group;
  for (const Setting& setting : ServeSettings().settings()) {
    if (setting.group != group) {
      group = setting.group;
      heading(group, out);
    }
    append(setting, out);
  }
}

void AppendNamedSets(std::string* out) {
  absl::StrAppend(out, R"(
## Named sets of masks

`mask` accepts these names beside paths. A name stands for its paths, which make
the key; several names, and paths beside them, add up. `--check` and /statusz show
the paths of the names. YAML reserves `@` at the start of a text, so a name needs
quotes in the file and in the variable: `mask: ["@versions", "@times"]`.
)");
  for (const cache::key::NamedMaskSet& set : cache::key::NamedMaskSets()) {
    absl::StrAppend(out, "\n### `", set.name, "`\n\n");
    AppendWrapped(absl::StrCat("Masks ", set.meaning, ":"), 0, out);
    absl::StrAppend(out, "\n");
    for (const std::string& path : set.paths) {
      absl::StrAppend(out, "- `", path, "`\n");
    }
  }
}

}  // namespace

std::vector<CommandFlag> ServeCommandFlags() {
  std::vector<CommandFlag> flags = {
      {{"--config"}, "FILE", "A YAML file with settings.", false},
      {{"--check"},
       "",
       "Check settings, masks and certificates, print the effective settings "
       "as YAML, and exit. It stays off the network.",
       false},
      {{"--check-shared"},
       "",
       "Do the same, then try what the daemon does with the server of "
       "shared.url.",
       false},
      {{"-h", "--help"}, "", kHelpOfHelp, false}};
  for (const Setting& setting : ServeSettings().settings()) {
    flags.push_back({{FlagName(setting.key)},
                     setting.metavar,
                     setting.help,
                     setting.kind == Setting::Kind::kList});
  }
  return flags;
}

std::string ServeHelp() {
  std::string out =
      R"(Answers a function's repeated calls from memory or disk.

Usage: fncache serve --insecure --upstream TARGET [flags]
       fncache serve --config FILE [flags]

)";
  AppendFirstSettings(&out);
  absl::StrAppend(&out, R"(
Examples:
  A function on this machine, in plaintext:
    fncache serve --insecure --upstream localhost:9444
  With certificates as Crossplane mounts them, and entries that outlive a
  restart:
    fncache serve --tls-dir /tls/server --upstream localhost:9444 \
      --cache-dir /cache --generation v1.2.0
  Several functions, from a file with `functions:` (a list with name, listen,
  upstream and any setting of a function); checked, not started:
    fncache serve --config fncache.yaml --check

Each setting is a flag, an environment variable and a key of the file: --ttl-max
1h, FNCACHE_TTL_MAX=1h, ttl: {max: 1h}. Where several are given, the first of
these counts: the function's own entry under `functions:`, flag, environment,
file. The flag of a list repeats; its variable is a YAML list, [a, b]. A size is
256MiB, 256Mi (the same) or 64MB, a duration 90s or 1h30m. An address without a
host, :9443, is 0.0.0.0:9443.

Most settings can change while it runs: it reads the file again when its content
has changed, or on SIGHUP. --check tells which. A file with an error leaves all
as it was, and the log says why.

Command:
  --config FILE  (env FNCACHE_CONFIG)
      A YAML file with settings.
  --check
      Check settings, masks and certificates, print the effective settings as
      YAML, and exit. It stays off the network.
  --check-shared
      Do the same, then try what the daemon does with the server of shared.url:
      log in, read its time, fill, read and delete a value. Print what it is.
  -h, --help
      Print this.
)");
  AppendGroups(
      &out,
      [](const std::string& group, std::string* text) {
        absl::StrAppend(text, "\n", group, ":\n");
      },
      [](const Setting& setting, std::string* text) {
        absl::StrAppend(
            text, "  ", SettingUsage(setting),
            setting.kind == Setting::Kind::kList ? "  (repeats)" : "",
            "  (env ", EnvironmentName(setting.key), ")\n");
        AppendWrapped(setting.help, 6, text);
        AppendWrapped(absl::StrCat("Default: ", DefaultText(setting),
                                   ". Accepted: ", setting.accepted, "."),
                      6, text);
      });
  absl::StrAppend(&out, R"(
Exit codes: 0 after a drain (or a check that found nothing), 1 if
something that is needed is not to be had (a file that cannot be read, a port
taken, a directory locked, with --check-shared the server), 2 for settings that
do not fit.
)");
  return out;
}

std::string ReloadNotes() {
  std::vector<absl::string_view> now;
  std::vector<absl::string_view> restart = {
      "the entries of functions (their number and names)"};
  for (const Setting& setting : ServeSettings().settings()) {
    (setting.reloads ? now : restart).push_back(setting.key);
  }
  std::string text;
  AppendWrapped(absl::StrCat("Can change while it runs (the file's content, or "
                             "SIGHUP): ",
                             absl::StrJoin(now, ", "), "."),
                /*indent=*/2, &text);
  AppendWrapped(
      absl::StrCat("Take a restart: ", absl::StrJoin(restart, ", "), "."),
      /*indent=*/2, &text);
  // The first column of the indent becomes the comment's sign.
  for (size_t line = 0; line < text.size(); line = text.find('\n', line) + 1) {
    text[line] = '#';
  }
  return text;
}

std::string ServeReference() {
  std::string out =
      R"(# Settings of `fncache serve`

Which settings does the daemon have, and what are their names, defaults and ranges?
The table in `proxy/settings/settings.cc` writes this page. A test compares both, and
prints the command that writes it again.

A setting has one name in three spellings: a key of the file that `--config`
names (dots are nesting: `ttl: {max: 1h}`), a flag and an environment variable.
A function's own entry under `functions:` takes precedence, then flag, environment,
top level of the file, default. A list's flag repeats, and its variable is a YAML flow
list. A size is `256MiB`, `256Mi` (the same) or `64MB`. A duration is `90s` or `1h30m`.
An address to listen on may omit its host: `:9443` is `0.0.0.0:9443`. `functions:` is a
list of maps. Then `name`, `listen` and `upstream` come from its entries only, and each
entry has its own. A wrong setting stops the start with one line and exit code 2.
`--check` prints the settings in effect, and which of them can change while it runs.

A setting that says `changes: while it runs` takes effect when the file's content
changes (checked every 10 seconds) or on SIGHUP. The others need a restart.
[running.md](running.md#changing-settings-while-it-runs) has the details.
)";
  AppendGroups(
      &out,
      [](const std::string& group, std::string* text) {
        absl::StrAppend(text, "\n## ", group, "\n");
      },
      [](const Setting& setting, std::string* text) {
        absl::StrAppend(text, "\n### `", setting.key, "`\n\n");
        AppendWrapped(setting.help, 0, text);
        absl::StrAppend(
            text, "\n- flag: `", SettingUsage(setting), "`\n- environment: `",
            EnvironmentName(setting.key),
            "`\n- default: ", DefaultText(setting),
            "\n- accepted: ", setting.accepted, "\n- of: ", ScopeText(setting),
            "\n- changes: ", setting.reloads ? "while it runs" : "at a restart",
            "\n");
      });
  AppendNamedSets(&out);
  return out;
}

}  // namespace fncache::proxy::settings
