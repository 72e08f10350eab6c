// SPDX-License-Identifier: Apache-2.0
#include "runner/render/flags.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/command_flags.h"
#include "common/command_line.h"
#include "common/duration.h"
#include "common/help_text.h"
#include "common/utf8.h"
#include "runner/render/help.h"
#include "runner/render/input_file.h"

namespace fncache::runner::render {
namespace {

using apiextensions::fn::proto::v1::Capability;
using Texts = std::vector<std::string>;
using Set = std::function<absl::Status(const Texts&, RenderFlags*)>;
using DefaultText = std::function<std::string(const RenderFlags&)>;

// A flag: its row of the help, and how it is stored.
struct Flag {
  FlagHelp help;
  // Takes what was given, in the order of the command line: at least one text,
  // of a switch each `true` or `false`. InvalidArgument names the flag and what
  // it takes.
  Set set;
  // The default as a text that `set` would make it of; null = it has none.
  DefaultText default_text = nullptr;
};

absl::Status Refused(absl::string_view flag, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", why));
}

// `a,b` is two; `\,` is a comma.
Texts SplitEscaped(const std::string& text, char separator) {
  Texts parts;
  std::string part;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == separator) {
      part += text[++i];
    } else if (text[i] == separator) {
      parts.push_back(std::move(part));
      part.clear();
    } else {
      part += text[i];
    }
  }
  if (!part.empty()) parts.push_back(std::move(part));
  return parts;
}

Texts SplitAll(const Texts& texts, char separator) {
  Texts all;
  for (const std::string& text : texts) {
    for (std::string& part : SplitEscaped(text, separator)) {
      all.push_back(std::move(part));
    }
  }
  return all;
}

// The path that an argument names, as the reference reads it: a shell leaves
// the `~/` of `--xrd=~/xrd.yaml` alone.
std::string PathOf(const std::string& argument) {
  const char* const home = std::getenv("HOME");
  absl::string_view below = argument;
  return home != nullptr && absl::ConsumePrefix(&below, "~/")
             ? absl::StrCat(home, "/", below)
             : NamedFile(argument);
}

// Setters, each for a kind of flag. If a flag is given twice, the last counts,
// unless it is a list, or said otherwise.

Set Switch(bool RenderFlags::*field) {
  return [field](const Texts& given, RenderFlags* flags) {
    flags->*field = given.back() == "true";
    return absl::OkStatus();
  };
}

Set Text(std::string RenderFlags::*field) {
  return [field](const Texts& given, RenderFlags* flags) {
    flags->*field = given.back();
    return absl::OkStatus();
  };
}

Set File(std::string RenderFlags::*field) {
  return [field](const Texts& given, RenderFlags* flags) {
    flags->*field = PathOf(given.back());
    return absl::OkStatus();
  };
}

// A file that must be there. The reference keeps the first of several, and does
// not look for the others.
Set ExistingFile(std::string RenderFlags::*field) {
  return [field](const Texts& given, RenderFlags* flags) {
    flags->*field = PathOf(given.front());
    return absl::OkStatus();
  };
}

Set Files(std::vector<std::string> RenderFlags::*field) {
  return [field](const Texts& given, RenderFlags* flags) {
    for (const std::string& path : SplitAll(given, ',')) {
      (flags->*field).push_back(PathOf(path));
    }
    return absl::OkStatus();
  };
}

absl::Status SplitPairs(const char* name, const Texts& texts,
                        RenderFlags::Pairs* pairs) {
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return Refused(name, absl::StrCat("expected \"<key>=<value>\" but got \"",
                                        Printable(text), "\""));
    }
    pairs->emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return absl::OkStatus();
}

absl::Status SetContextValues(const Texts& given, RenderFlags* flags) {
  return SplitPairs("--context-values", SplitAll(given, ';'),
                    &flags->context_values);
}

absl::Status SetContextFiles(const Texts& given, RenderFlags* flags) {
  const absl::Status status = SplitPairs(
      "--context-files", SplitAll(given, ';'), &flags->context_files);
  for (auto& [key, path] : flags->context_files) path = NamedFile(path);
  return status;
}

absl::Status SetTargets(const Texts& given, RenderFlags* flags) {
  RenderFlags::Pairs targets;
  const absl::Status status = SplitPairs("--function", given, &targets);
  if (!status.ok()) return status;
  for (auto& [name, target] : targets) {
    if (name.empty() || target.empty()) {
      return Refused("--function",
                     "expected NAME=TARGET, such as "
                     "function-auto-ready=127.0.0.1:9443");
    }
    flags->targets.push_back({std::move(name), std::move(target)});
  }
  return absl::OkStatus();
}

absl::Status SetAnnotations(const Texts& given, RenderFlags* flags) {
  for (const std::string& text : SplitAll(given, ',')) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      // The reference command does not call this bad usage.
      return absl::FailedPreconditionError(
          absl::StrCat("cannot apply function annotation overrides: invalid "
                       "function annotation format \"",
                       Printable(text), "\", expected key=value"));
    }
    flags->annotations.emplace_back(text.substr(0, equals),
                                    text.substr(equals + 1));
  }
  return absl::OkStatus();
}

Set Time(const char* name, absl::Duration RenderFlags::*field) {
  return [name, field](const Texts& given, RenderFlags* flags) {
    const auto duration = ParsePositiveGoDuration(given.back());
    if (!duration.ok()) return Refused(name, duration.status().message());
    flags->*field = *duration;
    return absl::OkStatus();
  };
}

absl::Status SetJobs(const Texts& given, RenderFlags* flags) {
  if (absl::SimpleAtoi(given.back(), &flags->jobs) && flags->jobs >= 1) {
    return absl::OkStatus();
  }
  return Refused("--jobs",
                 absl::StrCat("expected a whole number from 1 on, but got \"",
                              Printable(given.back()), "\""));
}

constexpr std::pair<const char*, RenderFlags::Color> kColors[] = {
    {"auto", RenderFlags::Color::kAuto},
    {"always", RenderFlags::Color::kAlways},
    {"never", RenderFlags::Color::kNever},
};

absl::Status SetColor(const Texts& given, RenderFlags* flags) {
  for (const auto& [name, color] : kColors) {
    if (given.back() != name) continue;
    flags->color = color;
    return absl::OkStatus();
  }
  return Refused("--color",
                 absl::StrCat("\"", Printable(given.back()),
                              "\" is not accepted; accepted: auto, always, "
                              "never"));
}

std::string ColorText(const RenderFlags& flags) {
  for (const auto& [name, color] : kColors) {
    if (color == flags.color) return name;
  }
  return "";
}

// Returns the capability's name without its prefix, as the flag takes it (in
// any case, and with - for _).
std::string CapabilityName(Capability capability) {
  constexpr absl::string_view kPrefix = "CAPABILITY_";
  return Capability_Name(capability).substr(kPrefix.size());
}

std::string CapabilityNames() {
  return absl::StrJoin(
      engine::AllCapabilities(), ", ",
      [](std::string* out, Capability one) { *out += CapabilityName(one); });
}

absl::Status DropCapabilities(const Texts& given, RenderFlags* flags) {
  for (const std::string& name : given) {
    const std::string wanted = absl::StrReplaceAll(
        absl::AsciiStrToUpper(name), {{"-", "_"}, {"CAPABILITY_", ""}});
    const auto is_wanted = [&wanted](Capability capability) {
      return CapabilityName(capability) == wanted;
    };
    const auto all = engine::AllCapabilities();
    if (std::none_of(all.begin(), all.end(), is_wanted)) {
      return Refused(
          "--without-capability",
          absl::StrCat("\"", Printable(name),
                       "\" is not accepted; accepted: ", CapabilityNames()));
    }
    auto& kept = flags->capabilities;
    kept.erase(std::remove_if(kept.begin(), kept.end(), is_wanted), kept.end());
  }
  return absl::OkStatus();
}

absl::Status Ignore(const Texts& /*given*/, RenderFlags* /*flags*/) {
  return absl::OkStatus();
}

std::vector<Flag> MakeTable() {
  using Group = FlagHelp::Group;
  using Flags = RenderFlags;
  return {
      {{"-o", "--observed-resources", "PATH", Group::kInputs,
        "composed resources, as the cluster has them"},
       File(&Flags::observed)},
      {{"-e", "--required-resources", "PATH", Group::kInputs,
        "what functions may require", "repeats, or A,B"},
       Files(&Flags::required)},
      {{"", "--extra-resources", "PATH", Group::kInputs,
        "the same, by its older name", "repeats, or A,B"},
       Files(&Flags::extra)},
      {{"-s", "--required-schemas", "DIR", Group::kInputs,
        "OpenAPI v3 documents, *.json, from kubectl get --raw "
        "/openapi/v3/GROUP-VERSION"},
       Text(&Flags::schemas)},
      {{"", "--openapi-url", "URL", Group::kInputs,
        "schemas from an API server instead, such as http://127.0.0.1:8001 of "
        "kubectl proxy"},
       Text(&Flags::openapi_url)},
      {{"", "--openapi-token-file", "FILE", Group::kInputs,
        "bearer token for it"},
       Text(&Flags::openapi_token_file)},
      {{"", "--openapi-ca", "FILE", Group::kInputs,
        "PEM of the authority that signed its certificate"},
       Text(&Flags::openapi_ca)},
      {{"", "--function-credentials", "PATH", Group::kInputs,
        "Secrets for the steps' credentials"},
       File(&Flags::credentials)},
      {{"", "--xrd", "FILE", Group::kInputs,
        "the XR's definition: fills in defaults, tells a legacy XR from a "
        "modern one"},
       ExistingFile(&Flags::definition)},
      {{"", "--context-values", "KEY=YAML", Group::kInputs,
        "context before the first step", "repeats, or A;B"},
       SetContextValues},
      {{"", "--context-files", "KEY=FILE", Group::kInputs,
        "the same from files; values win", "repeats, or A;B"},
       SetContextFiles},

      {{"", "--function", "NAME=TARGET", Group::kFunctions,
        "where NAME listens, HOST:PORT or any gRPC target; adds to FUNCTIONS, "
        "or replaces",
        "repeats"},
       SetTargets},
      {{"-a", "--function-annotations", "KEY=VALUE", Group::kFunctions,
        "annotation for all Functions", "repeats, or A,B"},
       SetAnnotations},
      {{"", "--tls-dir", "DIR", Group::kFunctions,
        "tls.crt, tls.key and ca.crt that the runner has; without, functions "
        "are called in plaintext"},
       Text(&Flags::tls_dir)},
      {{"", "--without-capability", "NAME", Group::kFunctions,
        absl::StrCat("do not advertise it, as an older runner would: one of ",
                     CapabilityNames()),
        "repeats"},
       DropCapabilities},
      {{"", "--timeout", "DURATION", Group::kFunctions,
        "for everything, or for each XR of --all"},
       Time("--timeout", &Flags::timeout),
       [](const Flags& flags) { return FormatGoDuration(flags.timeout); }},
      {{"", "--step-timeout", "DURATION", Group::kFunctions,
        "for all calls of one step together"},
       Time("--step-timeout", &Flags::step_timeout)},

      {{"-r", "--include-function-results", "", Group::kOutput,
        "a document of kind Result for every event"},
       Switch(&Flags::include_results)},
      {{"-x", "--include-full-xr", "", Group::kOutput,
        "the XR with all that its file has"},
       Switch(&Flags::include_full_composite)},
      {{"-c", "--include-context", "", Group::kOutput,
        "the context that the last step left"},
       Switch(&Flags::include_context)},
      {{"", "--trace", "", Group::kOutput,
        "on stderr, for each call: how long it took, what a cache in front "
        "said, what it depends on as the function says, what it changed"},
       Switch(&Flags::trace)},
      {{"", "--color", "WHEN", Group::kOutput,
        "colors in the trace: auto (on a terminal, unless $NO_COLOR is set), "
        "always or never"},
       SetColor,
       ColorText},
      {{"", "--watch", "", Group::kOutput,
        "repeat the render whenever an input file changes"},
       Switch(&Flags::watch)},

      {{"", "--all", "PATH", Group::kMany,
        "every document of a file, or of the *.yaml and *.yml of a folder, is "
        "an XR. Documents come in the order of files; an observed resource "
        "goes to the XR that its controller reference names. Progress on "
        "stderr",
        "repeats, or A,B"},
       Files(&Flags::all)},
      {{"", "--jobs", "N", Group::kMany, "renders at the same time"},
       SetJobs,
       [](const Flags& flags) { return absl::StrCat(flags.jobs); }},
      {{"", "--expect", "DIR", Group::kMany,
        "compare with the files in DIR that have the names of the XRs' files, "
        "instead of printing: a diff, and exit code 1 where documents differ"},
       Text(&Flags::expect)},
      {{"", "--update", "", Group::kMany,
        "with --expect: write the files that differ"},
       Switch(&Flags::update)},

      // The reference command has these, and there is no use for them here:
      // which engine to run, where packages are kept, projects.
      {{"", "--crossplane-version", "TEXT", Group::kHidden, ""}, Ignore, {}},
      {{"", "--crossplane-image", "TEXT", Group::kHidden, ""}, Ignore, {}},
      {{"", "--crossplane-binary", "FILE", Group::kHidden, ""}, Ignore, {}},
      {{"", "--crossplane-docker-network", "NAME", Group::kHidden, ""},
       Ignore,
       {}},
      {{"", "--config", "FILE", Group::kHidden, ""}, Ignore, {}},
      {{"", "--cache-dir", "DIR", Group::kHidden, ""}, Ignore, {}},
      {{"", "--max-concurrency", "N", Group::kHidden, ""}, Ignore, {}},
      {{"", "--verbose", "", Group::kHidden, ""}, Ignore, {}},
      {{"-f", "--project-file", "FILE", Group::kHidden, ""},
       Text(&Flags::project),
       {}},
  };
}

const std::vector<Flag>& Table() {
  static const auto* const table = new std::vector<Flag>(MakeTable());
  return *table;
}

absl::Status CheckFile(const char* what, const std::string& path,
                       bool or_directory = false) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) {
    std::string why = std::strerror(errno);
    why[0] = absl::ascii_tolower(why[0]);
    return absl::NotFoundError(
        absl::StrCat(what, ": stat ", Printable(path), ": ", why));
  }
  if (S_ISDIR(found.st_mode) && !or_directory) {
    return Refused(what, absl::StrCat("\"", Printable(path),
                                      "\" exists but is a directory"));
  }
  return absl::OkStatus();
}

absl::Status TakeFiles(const Texts& files, RenderFlags* flags) {
  const size_t first = flags->all.empty() ? 1 : 0;
  // As the reference command does, before it says what is missing besides.
  if (first == 1 && !files.empty()) {
    flags->composite = PathOf(files[0]);
    if (const auto status = CheckFile("<composite-resource>", flags->composite);
        !status.ok()) {
      return status;
    }
  }
  if (files.size() < first + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected \"", first == 1 ? "<composite-resource> " : "",
        "<composition> [<functions>]\" (see fncache render --help)"));
  }
  if (files.size() > first + 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected argument ", Printable(files[first + 2]),
                     first == 0 ? "; --all repeats, or takes A,B"
                                : "; several XRs: --all PATH",
                     " (see fncache render --help)"));
  }
  flags->composition = PathOf(files[first]);
  if (files.size() > first + 1) flags->functions = PathOf(files[first + 1]);
  // The reference reads it only where no functions are given.
  if (!flags->project.empty() && flags->functions.empty() &&
      flags->targets.empty()) {
    return Refused("--project-file",
                   "projects are not supported; give FUNCTIONS or --function");
  }
  if (const auto status = CheckFile("<composition>", flags->composition);
      !status.ok()) {
    return status;
  }
  for (const std::string& path : flags->all) {
    const auto status = CheckFile("--all", path, /*or_directory=*/true);
    if (!status.ok()) return status;
  }
  return flags->definition.empty() ? absl::OkStatus()
                                   : CheckFile("--xrd", flags->definition);
}

absl::Status CheckSchemas(const RenderFlags& flags) {
  if (!flags.openapi_url.empty() && !flags.schemas.empty()) {
    return Refused("--openapi-url", "not together with --required-schemas");
  }
  if (flags.openapi_url.empty() &&
      !(flags.openapi_token_file.empty() && flags.openapi_ca.empty())) {
    return Refused("--openapi-token-file, --openapi-ca",
                   "need --openapi-url URL");
  }
  return absl::OkStatus();
}

absl::Status CheckExpect(const RenderFlags& flags) {
  if (flags.update && flags.expect.empty()) {
    return Refused("--update", "needs --expect DIR");
  }
  if (flags.expect.empty()) return absl::OkStatus();
  if (flags.all.empty()) return Refused("--expect", "needs --all PATH");
  return flags.watch ? Refused("--expect", "not together with --watch")
                     : absl::OkStatus();
}

// Standard input can be read once only.
absl::Status CheckStandardInput(const RenderFlags& flags) {
  const std::vector<std::string> paths = InputPaths(flags);
  const auto readers = std::count(paths.begin(), paths.end(), kStandardInput);
  if (readers > 1) {
    return absl::InvalidArgumentError(
        "standard input (-) can be read by one file argument only");
  }
  if (readers > 0 && flags.watch) {
    return Refused("--watch", "standard input (-) cannot be read twice");
  }
  return absl::OkStatus();
}

absl::Status BadUsage(absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(why, " (see fncache render --help)"));
}

}  // namespace

std::string RenderHelp() {
  const RenderFlags defaults;
  std::vector<FlagHelp> rows;
  rows.reserve(Table().size());
  for (const Flag& flag : Table()) {
    rows.push_back(flag.help);
    if (flag.default_text == nullptr) continue;
    absl::StrAppend(&rows.back().text, " (default ",
                    flag.default_text(defaults), ")");
  }
  return HelpText(rows);
}

std::vector<CommandFlag> RenderCommandFlags() {
  std::vector<CommandFlag> all;
  for (const Flag& flag : Table()) {
    // The help leaves out what is accepted only to be ignored.
    if (flag.help.group == FlagHelp::Group::kHidden) continue;
    CommandFlag named;
    if (!flag.help.short_name.empty()) named.names = {flag.help.short_name};
    named.names.push_back(flag.help.name);
    named.argument = flag.help.argument;
    named.help = flag.help.text;
    named.repeats = !flag.help.repeats.empty();
    all.push_back(std::move(named));
  }
  all.push_back({{"-h", "--help"}, "", kHelpOfHelp, false});
  return all;
}

absl::StatusOr<RenderFlags> ParseRenderFlags(int argc, char** argv) {
  RenderFlags flags;
  CommandLine line;
  line.NoHelpFlag();
  line.AllowExtras();
  line.AddFlag("-h,--help", &flags.help,
               "what this command does, and its flags");
  Texts files;
  line.AddOption("FILES", &files).Expected(0, 1 << 20);
  std::vector<Texts> given(Table().size());
  for (size_t i = 0; i < given.size(); ++i) {
    const FlagHelp& row = Table()[i].help;
    const std::string names = absl::StrCat(
        row.short_name, row.short_name.empty() ? "" : ",", row.name);
    Texts* const texts = &given[i];
    if (row.argument.empty()) {
      line.AddFlag(
          names,
          [texts](int64_t times) {
            texts->push_back(times > 0 ? "true" : "false");
          },
          row.text);
      continue;
    }
    line.AddOption(names, texts, row.text).TypeName(row.argument).Repeats();
  }
  if (line.Parse(argc, argv) == CommandLine::Outcome::kError) {
    return BadUsage(line.error());
  }
  if (flags.help) return flags;
  const Texts unknown = line.remaining();
  if (!unknown.empty()) {
    return BadUsage(NotTaken(unknown[0], line.Flags()));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].empty()) continue;
    const absl::Status status = Table()[i].set(given[i], &flags);
    if (!status.ok()) return status;
  }
  absl::Status status = TakeFiles(files, &flags);
  if (status.ok()) status = CheckSchemas(flags);
  if (status.ok()) status = CheckExpect(flags);
  if (status.ok()) status = CheckStandardInput(flags);
  if (!status.ok()) return status;
  return flags;
}

std::vector<std::string> InputPaths(const RenderFlags& flags) {
  std::vector<std::string> paths = flags.all;
  for (const std::string* path :
       {&flags.composite, &flags.composition, &flags.functions, &flags.observed,
        &flags.schemas, &flags.credentials, &flags.definition}) {
    if (!path->empty()) paths.push_back(*path);
  }
  paths.insert(paths.end(), flags.required.begin(), flags.required.end());
  paths.insert(paths.end(), flags.extra.begin(), flags.extra.end());
  for (const auto& [key, path] : flags.context_files) paths.push_back(path);
  return paths;
}

}  // namespace fncache::runner::render
