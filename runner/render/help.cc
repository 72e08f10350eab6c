// SPDX-License-Identifier: Apache-2.0
#include "runner/render/help.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace fncache::runner::render {
namespace {

using Group = FlagHelp::Group;

constexpr char kIntroduction[] =
    R"(Renders what Crossplane would apply for a composite resource (XR): runs the
Composition's pipeline against running functions, and prints the XR, its composed
resources and, where asked for, results and context. Requests, documents,
messages and exit codes are those of `crossplane render`; it needs no cluster and
no Docker.

Usage: fncache render [flags] XR COMPOSITION [FUNCTIONS]
       fncache render [flags] --all PATH COMPOSITION [FUNCTIONS]

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
    --mask @composite-conditions &
  fncache render xr.yaml composition.yaml \
    --function function-fncache=127.0.0.1:9443 --trace

More: render a whole folder of XRs; write a composition and see what it does.

  fncache render --all xrs/ composition.yaml functions.yaml -x > rendered.yaml
  fncache render xr.yaml composition.yaml functions.yaml -rxc --watch

Exit codes: 0; 1 where it cannot be rendered, with `crossplane: error: WHY` on
stderr; 80 for flags that do not fit and for an XR, Composition or XRD file that
is not there; 255 after --timeout; 130 after Ctrl-C. Of several XRs the highest.
)";

constexpr size_t kWidth = 80;
constexpr size_t kTextColumn = 34;

struct Section {
  Group group;
  const char* title;
};
constexpr Section kSections[] = {
    {Group::kInputs,
     "What exists already (a PATH is a YAML file, or a folder of such files):"},
    {Group::kFunctions, "Functions:"},
    {Group::kOutput, "Output:"},
    {Group::kMany, "Many at once:"},
};

// `  -o, --observed-resources PATH   text`, the text wrapped at its column.
void AppendRow(const FlagHelp& row, std::string* out) {
  std::string line = absl::StrCat(
      "  ", row.short_name.empty() ? "   " : row.short_name + ",", " ",
      row.name, row.argument.empty() ? "" : " ", row.argument);
  if (line.size() >= kTextColumn) {
    absl::StrAppend(out, line, "\n");
    line.clear();
  }
  line.resize(kTextColumn, ' ');
  const std::string text =
      absl::StrCat(row.text, row.repeats.empty() ? "" : "; ", row.repeats);
  bool first = true;
  for (const absl::string_view word :
       absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!first && line.size() + 1 + word.size() > kWidth) {
      absl::StrAppend(out, line, "\n");
      line.assign(kTextColumn, ' ');
      first = true;
    }
    absl::StrAppend(&line, first ? "" : " ", word);
    first = false;
  }
  absl::StrAppend(out, line, "\n");
}

}  // namespace

std::string HelpText(const std::vector<FlagHelp>& rows) {
  std::string help = kIntroduction;
  for (const Section& section : kSections) {
    absl::StrAppend(&help, section.title, "\n");
    for (const FlagHelp& row : rows) {
      if (row.group == section.group) AppendRow(row, &help);
    }
    absl::StrAppend(&help, "\n");
  }
  return absl::StrCat(help, kExamples);
}

}  // namespace fncache::runner::render
