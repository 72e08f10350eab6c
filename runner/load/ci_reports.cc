// SPDX-License-Identifier: Apache-2.0
#include "runner/load/ci_reports.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "runner/load/format.h"
#include "runner/load/html.h"

namespace fncache::runner::load {
namespace {

// A text in Markdown as GitHub reads it, in which HTML counts, and in a table,
// in which a bar would be the cell's end. (XML takes what Escape makes of a
// text as it is: there is no control character in it.)
std::string Cell(absl::string_view text) {
  return absl::StrReplaceAll(
      Escape(text), {{"|", "\\|"}, {"*", "\\*"}, {"_", "\\_"}, {"`", "\\`"}});
}

std::string TableRow(const std::vector<std::string>& cells) {
  return absl::StrCat("| ", absl::StrJoin(cells, " | "), " |\n");
}

std::string LatencyRow(const std::string& name, uint64_t count, double rate,
                       const LatencySummary& latency) {
  return TableRow({name, absl::StrCat(count), FormatRate(rate),
                   FormatSeconds(latency.p50), FormatSeconds(latency.p95),
                   FormatSeconds(latency.p99), FormatSeconds(latency.max)});
}

}  // namespace

std::string JunitText(const LoadResults& results,
                      const std::vector<Check>& checks) {
  const auto failed = std::count_if(checks.begin(), checks.end(),
                                    [](const Check& one) { return !one.ok; });
  const std::string counts = absl::StrFormat(
      "name=\"fncache load\" tests=\"%d\" failures=\"%d\" "
      "errors=\"0\" time=\"%.3f\"",
      checks.size(), failed, results.duration);
  std::string text =
      absl::StrCat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites ",
                   counts, ">\n<testsuite ", counts, " timestamp=\"",
                   Escape(results.started), "\">\n");
  for (const Check& check : checks) {
    absl::StrAppend(&text, "<testcase classname=\"fncache load\" name=\"",
                    Escape(check.name), "\"");
    if (check.ok) {
      absl::StrAppend(&text, "/>\n");
    } else {
      absl::StrAppend(&text, "><failure message=\"", Escape(check.why),
                      "\"/></testcase>\n");
    }
  }
  return absl::StrCat(text, "</testsuite>\n</testsuites>\n");
}

std::string MarkdownText(const LoadResults& results,
                         const std::vector<Check>& checks) {
  const auto held = std::count_if(checks.begin(), checks.end(),
                                  [](const Check& one) { return one.ok; });
  const auto& pipelines = results.pipelines;
  std::string text = absl::StrFormat(
      "## fncache load: %d of %d checks hold\n\n%d pipelines in %s, %d failed",
      held, checks.size(), pipelines.count, FormatSeconds(results.duration),
      pipelines.errors);
  if (results.hit_rate.has_value()) {
    absl::StrAppend(&text, "; hit rate ", FormatPercent(results.hit_rate));
  }
  absl::StrAppend(&text, "; functions ran ", results.function_runs, " times",
                  results.interrupted ? "; interrupted" : "", "\n\n");
  for (const std::string& warning : Warnings(results)) {
    absl::StrAppend(&text, "- **", Cell(warning), "**\n");
  }
  for (const std::string& sentence : VerdictSentences(results)) {
    absl::StrAppend(&text, "- ", Cell(sentence), "\n");
  }
  absl::StrAppend(&text, "\n", TableRow({"check", "", "found"}),
                  TableRow({"---", "---", "---"}));
  for (const Check& check : checks) {
    absl::StrAppend(
        &text, TableRow({Cell(check.name), check.ok ? "holds" : "**fails**",
                         Cell(check.why)}));
  }
  absl::StrAppend(
      &text, "\n", TableRow({"", "count", "rate", "p50", "p95", "p99", "max"}),
      TableRow({"---", "---:", "---:", "---:", "---:", "---:", "---:"}),
      LatencyRow("pipelines", pipelines.count, pipelines.rate,
                 pipelines.latency));
  for (const CallResults& calls : results.calls) {
    absl::StrAppend(&text, LatencyRow(absl::StrCat(Cell(calls.step), ", ",
                                                   Cell(calls.outcome)),
                                      calls.count, calls.rate, calls.latency));
  }
  if (results.errors.empty()) return text;
  absl::StrAppend(&text, "\n", TableRow({"error", "count", "such as"}),
                  TableRow({"---", "---:", "---"}));
  for (const ErrorResults& error : results.errors) {
    absl::StrAppend(&text,
                    TableRow({Cell(error.message), absl::StrCat(error.count),
                              Cell(error.example)}));
  }
  return text;
}

std::string CsvText(const LoadResults& results) {
  std::string text =
      "at,seconds,pipelines,errors,late,dropped,calls,hits,misses,stale,"
      "collapsed,p50,p90,p99,max,hit_p99,miss_p99,ready,in_flight\n";
  for (const TimelinePoint& point : results.timeline) {
    absl::StrAppendFormat(
        &text, "%.3f,%.3f,%d,%d,%d,%d,%d,%d,%d,%d,%d,", point.at, point.seconds,
        point.pipelines, point.errors, point.late, point.dropped, point.calls,
        point.hits, point.misses, point.stale, point.collapsed);
    absl::StrAppendFormat(&text, "%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%d,%.6g\n",
                          point.p50, point.p90, point.p99, point.max,
                          point.hit_p99, point.miss_p99, point.ready,
                          point.in_flight);
  }
  return text;
}

}  // namespace fncache::runner::load
