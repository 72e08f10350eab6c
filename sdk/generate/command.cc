// SPDX-License-Identifier: Apache-2.0
#include "sdk/generate/command.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/command_line.h"
#include "common/nearest.h"
#include "common/standard_streams.h"
#include "common/utf8.h"
#include "sdk/generate/definitions.h"
#include "sdk/generate/generate.h"
#include "sdk/generate/init.h"

namespace fncache::sdk {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

struct Flags {
  std::vector<std::string> paths;
  std::string out;
  std::vector<std::string> kinds;
  std::vector<std::string> versions;
  std::vector<std::string> inputs;
  InitOptions init;
};

struct Line {
  CommandLine top{"Helps to write composition functions in C++.",
                  "fncache sdk"};
  CommandLine* generate;
  CommandLine* init;
};

// A variable of a shell that is not set: neither `/` nor `.` is meant.
std::string WhyNoFolder(const std::string& folder) {
  return folder.empty() ? "must not be empty" : "";
}

Line MakeLine(Flags* flags) {
  Line made;
  made.top.Footer(R"(
Examples:
  fncache sdk init function-hello
  fncache sdk generate package/ --out models
  fncache sdk COMMAND --help

Exit codes: 0; 1 if it cannot be done; 2 for flags that do not fit.)");
  CommandLine* const generate = made.top.AddCommand(
      "generate", "Generate C++ classes of the kinds in CRDs");
  made.generate = generate;
  generate->Usage({"[flags] --out DIR FILE|DIR..."});
  generate
      ->AddOption("FILE|DIR", &flags->paths,
                  "CRDs, XRDs, OpenAPI v3 documents of an API server")
      .Required();
  generate->AddOption("--out", &flags->out, "Headers go to DIR/model")
      .TypeName("DIR")
      .Required()
      .Check(&WhyNoFolder);
  generate
      ->AddOption("--kind", &flags->kinds,
                  "Only this kind, and what it is made of")
      .Repeats()
      .TypeName("KIND");
  generate->AddOption("--version", &flags->versions, "Only this version")
      .Repeats()
      .TypeName("VERSION");
  generate
      ->AddOption("--input", &flags->inputs,
                  "This kind is the function's input: its header has the "
                  "schema. A FILE stands for all of its kinds")
      .Repeats()
      .TypeName("KIND|FILE");
  generate->Footer(R"(
A kind of group storage.example.org in version v1 is the header
DIR/model/org/example/storage/v1/KIND.h, and the same is its namespace. A folder
stands for all its .yaml, .yml and .json files; other documents are ignored.
Files that the generator did not write are never replaced.

Example:
  fncache sdk generate package/ crds/bucket.yaml --out models --input Input

Exit codes: 0; 1 for documents that are wrong (FILE:LINE: why) or files that
cannot be written; 2 for flags that do not fit.)");

  CommandLine* const init = made.top.AddCommand(
      "init", "Write the project of a function, to begin with");
  made.init = init;
  init->Usage({"[flags] DIR"});
  init->AddOption("DIR", &flags->init.folder, "A new or empty folder")
      .Required()
      .Check(&WhyNoFolder);
  init->AddOption("--name", &flags->init.name,
                  "The function's name; default: function- and the folder's")
      .TypeName("function-NAME");
  init->AddOption("--xrd", &flags->init.xrd,
                  "The definition of the composite that the function is for")
      .TypeName("FILE");
  init->Footer(R"(
The project builds, and its tests pass, with the packages fncache and
fncache-dev. Its README.md says how.

Example:
  fncache sdk init storage --name function-storage --xrd definition.yaml

Exit codes: 0; 1 if the folder is not empty, or cannot be written, or the
definition is wrong (FILE:LINE: why); 2 for flags that do not fit.)");
  return made;
}

int Fail(const std::string& name, int code, absl::string_view why) {
  std::fprintf(
      stderr, "%s: %s%s\n", name.c_str(), Printable(why).c_str(),
      code == kBadUsage ? absl::StrCat("; see ", name, " --help").c_str() : "");
  return code;
}

// Why there is no command to run.
std::string NoCommand(const std::string& given) {
  const std::vector<std::string> words = SdkWords();
  return absl::StrCat(
      given.empty() ? "a command is missing"
                    : absl::StrCat("command: \"", PrintableStart(given),
                                   "\" is not accepted"),
      DidYouMean(given, words), "; accepted: ", absl::StrJoin(words, ", "));
}

absl::Status RunGenerate(const Flags& flags, std::string* report) {
  GenerateOptions options;
  options.kinds = {flags.kinds.begin(), flags.kinds.end()};
  options.versions = {flags.versions.begin(), flags.versions.end()};
  std::vector<std::string> paths = flags.paths;
  for (const std::string& input : flags.inputs) {
    // No kind has these characters.
    if (input.find_first_of("./") == std::string::npos) {
      options.inputs.insert(input);
      continue;
    }
    if (std::find(paths.begin(), paths.end(), input) == paths.end()) {
      paths.push_back(input);
    }
    auto documents = ReadAll({input});
    if (!documents.ok()) return documents.status();
    std::vector<Definition> definitions;
    for (const auto& document : *documents) {
      absl::Status found = FindDefinitions(document, &definitions);
      if (!found.ok()) return found;
    }
    for (const Definition& definition : definitions) {
      options.inputs.insert(QualifiedName(definition));
    }
  }
  auto documents = ReadAll(paths);
  if (!documents.ok()) return documents.status();
  auto headers = Generate(*documents, options);
  if (absl::IsNotFound(headers.status())) {
    return absl::NotFoundError(absl::StrCat(absl::StrJoin(paths, ", "), ": ",
                                            headers.status().message()));
  }
  if (!headers.ok()) return headers.status();
  absl::Status written = WriteHeaders(*headers, flags.out);
  if (written.ok()) {
    *report = absl::StrCat(flags.out, "/model: ", headers->size(),
                           headers->size() == 1 ? " header\n" : " headers\n");
  }
  return written;
}

}  // namespace

std::string SdkHelp() {
  Flags flags;
  return MakeLine(&flags).top.Help();
}

std::vector<std::string> SdkWords() {
  Flags flags;
  return MakeLine(&flags).top.words();
}

std::vector<CommandFlag> SdkCommandFlags() {
  Flags values;
  const Line made = MakeLine(&values);
  std::vector<CommandFlag> all = made.top.Flags();
  for (const CommandLine* const command : made.top.commands()) {
    for (CommandFlag& flag : command->Flags()) {
      if (flag.names.back() != "--help") all.push_back(std::move(flag));
    }
  }
  return all;
}

int SdkMain(int argc, char** argv) {
  Flags flags;
  Line line = MakeLine(&flags);
  std::string name = line.top.name();
  const CommandLine::Outcome outcome = line.top.Parse(argc, argv);
  if (outcome == CommandLine::Outcome::kHelp) {
    return PrintResult(name, line.top.Help());
  }
  const CommandLine* const command = line.top.given_command();
  if (command == nullptr) {
    const std::vector<std::string> extras = line.top.remaining();
    const std::string given = extras.empty() ? "" : extras.front();
    return Fail(
        name, kBadUsage,
        absl::StartsWith(given, "-") ? line.top.error() : NoCommand(given));
  }
  absl::StrAppend(&name, " ", command->name());
  if (outcome == CommandLine::Outcome::kError) {
    return Fail(name, kBadUsage, line.top.error());
  }
  std::string report;
  absl::Status status;
  if (command == line.init) {
    status = Init(flags.init);
    report = absl::StrCat(flags.init.folder, ": see README.md there\n");
  } else {
    status = RunGenerate(flags, &report);
  }
  return status.ok() ? PrintResult(name, report)
                     : Fail(name, kFailed, status.message());
}

}  // namespace fncache::sdk
