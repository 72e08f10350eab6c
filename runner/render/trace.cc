// SPDX-License-Identifier: Apache-2.0
#include "runner/render/trace.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cache/key/hint.h"
#include "common/duration.h"
#include "common/utf8.h"
#include "runner/render/context_steps.h"
#include "runner/render/state_diff.h"

// extra_resources is deprecated, and functions still use it.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fncache::runner::render {
namespace {

namespace fnv1 = apiextensions::fn::proto::v1;
using Lines = std::vector<std::string>;

// Writes a duration to 10 microseconds, a shorter one to the nanosecond.
std::string Took(absl::Duration took) {
  const absl::Duration cut = absl::Trunc(took, absl::Microseconds(10));
  return FormatGoDuration(cut > absl::ZeroDuration() ? cut : took);
}

std::string Selector(const fnv1::ResourceSelector& selector) {
  std::string text =
      Printable(absl::StrCat(selector.api_version(), " ", selector.kind()));
  if (selector.has_namespace_()) {
    absl::StrAppend(&text, " in \"", Printable(selector.namespace_()), "\"");
  }
  if (selector.match_case() == fnv1::ResourceSelector::kMatchName) {
    absl::StrAppend(&text, " named \"", Printable(selector.match_name()), "\"");
  }
  const std::map<std::string, std::string> labels(
      selector.match_labels().labels().begin(),
      selector.match_labels().labels().end());
  if (!labels.empty()) {
    absl::StrAppend(
        &text, " with ",
        Printable(absl::StrJoin(labels, ", ", absl::PairFormatter("="))));
  }
  return text;
}

template <typename Map>
std::map<std::string, typename Map::mapped_type> Sorted(const Map& map) {
  return {map.begin(), map.end()};
}

// A repeated call was given this because the last answer had asked for it.
void AddGiven(const fnv1::RunFunctionRequest& request, Lines* lines) {
  const auto items = [lines](const char* what, const auto& map) {
    for (const auto& [name, resources] : Sorted(map)) {
      lines->push_back(absl::StrCat("  given ", what, " \"", Printable(name),
                                    "\": ", resources.items_size(), " found"));
    }
  };
  items("resources", request.required_resources());
  items("extra resources", request.extra_resources());
  for (const auto& [name, schema] : Sorted(request.required_schemas())) {
    lines->push_back(
        absl::StrCat("  given schema \"", Printable(name),
                     schema.has_openapi_v3() ? "\": found" : "\": none"));
  }
}

void AddRequirements(const fnv1::Requirements& requirements, Lines* lines) {
  const auto resources = [lines](const char* what, const auto& map) {
    for (const auto& [name, selector] : Sorted(map)) {
      lines->push_back(absl::StrCat("  requires ", what, " \"", Printable(name),
                                    "\": ", Selector(selector)));
    }
  };
  resources("resources", requirements.resources());
  resources("extra resources", requirements.extra_resources());
  for (const auto& [name, selector] : Sorted(requirements.schemas())) {
    lines->push_back(absl::StrCat(
        "  requires schema \"", Printable(name), "\": ",
        Printable(absl::StrCat(selector.api_version(), " ", selector.kind()))));
  }
}

const char* SeverityText(fnv1::Severity severity) {
  switch (severity) {
    case fnv1::SEVERITY_FATAL:
      return "FATAL";
    case fnv1::SEVERITY_WARNING:
      return "WARNING";
    case fnv1::SEVERITY_NORMAL:
      return "NORMAL";
    default:
      return "unknown severity";
  }
}

const char* StatusText(fnv1::Status status) {
  switch (status) {
    case fnv1::STATUS_CONDITION_TRUE:
      return "True";
    case fnv1::STATUS_CONDITION_FALSE:
      return "False";
    default:
      return "Unknown";
  }
}

void AddResults(const fnv1::RunFunctionResponse& response, Lines* lines) {
  for (const auto& condition : response.conditions()) {
    lines->push_back(Printable(absl::StrCat(
        "  condition ", condition.type(), ": ", StatusText(condition.status()),
        ", ", condition.reason(), condition.message().empty() ? "" : ": ",
        condition.message())));
  }
  for (const auto& result : response.results()) {
    lines->push_back(Printable(absl::StrCat(
        "  ", SeverityText(result.severity()), ": ", result.message())));
  }
}

// The function's hint as it came, and why a daemon would refuse it.
std::string HintLine(absl::string_view hint) {
  const absl::Status status = cache::key::Hint::Parse({hint}).status();
  return absl::StrCat(
      "  ", cache::key::kHintField, ": ", Printable(hint),
      status.ok() ? "" : absl::StrCat(" (refused: ", status.message(), ")"));
}

void AddAll(const Lines& more, Lines* lines) {
  for (const std::string& line : more) lines->push_back("  " + line);
}

// Escape sequences of ECMA-48 (SGR).
constexpr char kBold[] = "\033[1m";
constexpr char kRed[] = "\033[31m";
constexpr char kGreen[] = "\033[32m";
constexpr char kYellow[] = "\033[33m";
constexpr char kPlain[] = "\033[0m";

// The color of a line, by its start: one for added, removed, changed and wrong;
// "" for all else.
const char* ColorOf(absl::string_view line) {
  if (!absl::ConsumePrefix(&line, "  ")) return kBold;
  if (absl::StartsWith(line, "+ ") || absl::StartsWith(line, "  + ")) {
    return kGreen;
  }
  if (absl::StartsWith(line, "~ ") || absl::StartsWith(line, "WARNING: ")) {
    return kYellow;
  }
  const bool bad = absl::StartsWith(line, "- ") ||
                   absl::StartsWith(line, "FATAL: ") ||
                   absl::StartsWith(line, "failed: ");
  return bad ? kRed : "";
}

// Each line sets its own color and ends it, so that text between two calls, or
// a cut line, is not colored.
std::string InColor(absl::string_view lines) {
  std::string colored;
  for (const absl::string_view line :
       absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const char* const color = ColorOf(line);
    absl::StrAppend(&colored, color, line, *color == '\0' ? "" : kPlain, "\n");
  }
  return colored;
}

// The lines of one call. Its answer is compared with `before_desired` and
// `before_context`.
std::string DescribeCall(const engine::CallReport& report, int steps,
                         const fnv1::State& before_desired,
                         const google::protobuf::Struct& before_context) {
  const fnv1::RunFunctionResponse& response = report.result.response;
  std::string first = absl::StrCat("step ", report.step_index + 1, "/", steps,
                                   " \"", Printable(report.step), "\" (",
                                   Printable(report.function), ")");
  if (report.call > 1) absl::StrAppend(&first, ", call ", report.call);
  absl::StrAppend(&first, ": ", Took(report.took));
  if (!report.result.cache_status.empty()) {
    absl::StrAppend(&first, ", cache: ", Printable(report.result.cache_status));
  }
  Lines lines = {std::move(first)};
  if (report.call > 1) AddGiven(report.request, &lines);
  if (report.result.hint) lines.push_back(HintLine(*report.result.hint));
  if (!report.result.status.ok()) {
    lines.push_back(
        absl::StrCat("  failed: ", Printable(report.result.status.message())));
    return absl::StrCat(absl::StrJoin(lines, "\n"), "\n");
  }
  AddRequirements(response.requirements(), &lines);
  const Lines desired =
      DiffStates("desired", before_desired, response.desired());
  const Lines context = DiffMaps("context", before_context, response.context());
  AddAll(desired, &lines);
  AddAll(context, &lines);
  AddResults(response, &lines);
  if (desired.empty() && context.empty()) {
    lines.push_back("  changes nothing in desired state or context");
  }
  return absl::StrCat(absl::StrJoin(lines, "\n"), "\n");
}

}  // namespace

RenderTrace::RenderTrace(int steps, std::string title, bool color,
                         std::function<void(const std::string&)> print)
    : steps_(steps),
      title_(title.empty() ? "" : absl::StrCat(Printable(title), ": ")),
      color_(color),
      print_(std::move(print)) {}

void RenderTrace::OnCall(const engine::CallReport& report) {
  // The step that reads the context for -c answers none and changes nothing.
  if (report.step == kCaptureStep && report.function == kContextFunction) {
    return;
  }
  const bool repeated = report.call > 1;
  const std::string lines = absl::StrCat(
      title_,
      DescribeCall(report, steps_,
                   repeated ? last_.desired() : report.request.desired(),
                   repeated ? last_.context() : report.request.context()));
  print_(color_ ? InColor(lines) : lines);
  last_ = report.result.response;
}

}  // namespace fncache::runner::render
