// SPDX-License-Identifier: Apache-2.0
#include "runner/render/help.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/help_text.h"

namespace fncache::runner::render {
namespace {

using Group = FlagHelp::Group;

constexpr char kIntroduction[] =
    R"(Renders what Crossplane would apply for a composite resource (XR): runs the
Composition's pipeline against running functions, and prints the XR, its
composed resources and, where asked for, results and context. Requests,
documents, messages and exit codes are those of `crossplane render`; it needs no
cluster and no Docker.

Usage: fncache render [flags] XR COMPOSITION [FUNCTIONS]
       fncache render [flags] --all PATH COMPOSITION [FUNCTIONS]

Arguments:
  XR           YAML file of the composite resource
  COMPOSITION  YAML file of the Composition, of mode Pipeline
  FUNCTIONS    YAML file, or folder of such files, of the Functions and where
               they listen (below); not needed where --function names them all

One of the files, also of those below, may be - for standard input.

)";

constexpr char kExamples[] =
    R"(Where functions listen, as FUNCTIONS has it:

  apiVersion: pkg.crossplane.io/v1
  kind: Function
  metadata:
    name: function-auto-ready
    annotations:
      render.crossplane.io/runtime: Development
      render.crossplane.io/runtime-development-target: localhost:9443

Try it, with a function that needs nothing else (fncache function --help has a
step for the Composition):

  fncache function --insecure --listen 127.0.0.1:9444 &
  fncache render xr.yaml composition.yaml \
    --function function-fncache=127.0.0.1:9444 --trace

See a cache at work: put it in front, and render through it twice. The mask is
for the time that an XR without conditions is stamped with on every run.

  fncache serve --insecure --listen 127.0.0.1:9443 --upstream 127.0.0.1:9444 \
    --mask @times &
  fncache render xr.yaml composition.yaml \
    --function function-fncache=127.0.0.1:9443 --trace

More: render a whole folder of XRs; write a composition and see what it does.

  fncache render --all xrs/ composition.yaml functions.yaml -x > rendered.yaml
  fncache render xr.yaml composition.yaml functions.yaml -rxc --watch

Exit codes: 0; 1 where it cannot be rendered, with `crossplane: error: WHY` on
stderr; 80 for flags that do not fit and for an XR, Composition or XRD file that
is not there; 255 after --timeout; 130 after Ctrl-C. Of several XRs the highest.
)";

struct Section {
  Group group;
  const char* title;
};
constexpr Section kSections[] = {
    {Group::kInputs,
     "Existing resources (a PATH is a YAML file, or a folder of such files):"},
    {Group::kFunctions, "Functions:"},
    {Group::kOutput, "Output:"},
    {Group::kMany, "Many at once:"},
};

void AppendRow(const FlagHelp& row, std::string* out) {
  std::vector<std::string> names;
  if (!row.short_name.empty()) names.push_back(row.short_name);
  names.push_back(row.name);
  AppendHelpRow(
      FlagUsage(names, row.argument),
      absl::StrCat(row.text, row.repeats.empty() ? "" : "; ", row.repeats),
      out);
}

}  // namespace

std::string HelpText(const std::vector<FlagHelp>& rows) {
  std::string help = kIntroduction;
  for (const Section& section : kSections) {
    absl::StrAppend(&help, section.title, "\n");
    for (const FlagHelp& row : rows) {
      if (row.group == section.group) AppendRow(row, &help);
    }
    if (section.group == kSections[std::size(kSections) - 1].group) {
      AppendHelpRow(FlagUsage({"-h", "--help"}, ""), kHelpOfHelp, &help);
    }
    absl::StrAppend(&help, "\n");
  }
  return absl::StrCat(help, kExamples);
}

}  // namespace fncache::runner::render
