// SPDX-License-Identifier: Apache-2.0
#include "runner/replay/report.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/json_tree.h"
#include "common/text_table.h"
#include "common/utf8.h"
#include "runner/load/format.h"
#include "runner/load/html.h"

namespace fncache::runner::replay {
namespace {

using insight::whatif::Outcome;
using insight::whatif::Tally;
using load::Escape;
using Cells = std::vector<std::string>;

double Rate(uint64_t count, double seconds) {
  return static_cast<double>(count) / seconds;
}

std::string Age(const Outcome& outcome, double Outcome::Ages::*part) {
  return outcome.ages.has_value() ? load::FormatSeconds(*outcome.ages.*part)
                                  : "-";
}

const Cells& Columns() {
  static const auto* const columns =
      new Cells{"settings",   "hit rate",  "of bytes", "runs",    "function s",
                "reconciles", "evictions", "age p50",  "age p99", "age max"};
  return *columns;
}

Cells CellsOf(absl::string_view name, const Outcome& outcome) {
  return {Printable(name),
          load::FormatPercent(outcome.all.HitRate()),
          load::FormatPercent(outcome.all.ByteHitRate()),
          absl::StrCat(outcome.all.function_runs),
          absl::StrFormat("%.3f", outcome.all.function_seconds),
          load::FormatRate(Rate(outcome.pipelines, outcome.seconds)),
          absl::StrCat(outcome.evictions),
          Age(outcome, &Outcome::Ages::p50),
          Age(outcome, &Outcome::Ages::p99),
          Age(outcome, &Outcome::Ages::max)};
}

// The trace says nothing of what was evicted.
Cells MeasuredCells(const Outcome& measured) {
  Cells cells = CellsOf("measured", measured);
  cells[6] = "-";
  return cells;
}

std::vector<Cells> GroupRows(const Report& report, const Row& row) {
  std::vector<Cells> rows = {{report.by, "hit rate", "measured", "runs",
                              "measured", "function s", "measured"}};
  for (const Group& group : row.groups) {
    rows.push_back({group.name.empty() ? "-" : Printable(group.name),
                    load::FormatPercent(group.predicted.HitRate()),
                    load::FormatPercent(group.measured.HitRate()),
                    absl::StrCat(group.predicted.function_runs),
                    absl::StrCat(group.measured.function_runs),
                    absl::StrFormat("%.3f", group.predicted.function_seconds),
                    absl::StrFormat("%.3f", group.measured.function_seconds)});
  }
  return rows;
}

JsonTree OrNull(absl::optional<double> value) {
  return value.has_value() ? JsonTree(*value) : JsonTree();
}

JsonTree AgesJson(const Outcome& outcome) {
  if (!outcome.ages.has_value()) return JsonTree();
  return {{"p50", outcome.ages->p50},
          {"p99", outcome.ages->p99},
          {"max", outcome.ages->max}};
}

JsonTree RowJson(const Report& report, const Row& row) {
  std::map<std::string, std::string> what_if;
  for (const auto& [key, value] : row.question.what_if) {
    // A list's values are given one by one.
    const auto [at, first] = what_if.emplace(key, value);
    if (!first) absl::StrAppend(&at->second, ",", value);
  }
  const Outcome& outcome = row.outcome;
  const Outcome& measured = report.measured;
  JsonTree all = {
      {"what_if", what_if},
      {"hit_rate", OrNull(outcome.all.HitRate())},
      {"measured_hit_rate", OrNull(measured.all.HitRate())},
      {"byte_hit_rate", OrNull(outcome.all.ByteHitRate())},
      {"measured_byte_hit_rate", OrNull(measured.all.ByteHitRate())},
      {"hits", outcome.all.hits},
      {"stale", outcome.all.stale},
      {"collapsed", outcome.all.collapsed},
      {"misses", outcome.all.misses},
      {"bypasses", outcome.all.bypasses},
      {"function_runs", outcome.all.function_runs},
      {"measured_function_runs", measured.all.function_runs},
      {"function_seconds", outcome.all.function_seconds},
      {"measured_function_seconds", measured.all.function_seconds},
      {"reconciles_per_second", Rate(outcome.pipelines, outcome.seconds)},
      {"measured_reconciles_per_second",
       Rate(measured.pipelines, measured.seconds)},
      {"evictions", outcome.evictions},
      {"served_age", AgesJson(outcome)},
      {"measured_served_age", AgesJson(measured)}};
  JsonTree groups = JsonTree::Array();
  for (const Group& group : row.groups) {
    groups.Append(
        {{"name", group.name},
         {"hit_rate", OrNull(group.predicted.HitRate())},
         {"measured_hit_rate", OrNull(group.measured.HitRate())},
         {"function_runs", group.predicted.function_runs},
         {"measured_function_runs", group.measured.function_runs},
         {"function_seconds", group.predicted.function_seconds},
         {"measured_function_seconds", group.measured.function_seconds}});
  }
  if (!report.by.empty()) all.Set("by", groups);
  JsonTree thresholds = JsonTree::Array();
  for (const load::ThresholdResults& one : row.thresholds) {
    thresholds.Append({{"expression", one.expression},
                       {"value", OrNull(one.value)},
                       {"ok", one.ok}});
  }
  all.Set("thresholds", thresholds);
  return all;
}

std::string CsvField(absl::string_view text) {
  if (text.find_first_of(",\"\r\n") == absl::string_view::npos) {
    return std::string(text);
  }
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string CsvNumber(absl::optional<double> value) {
  return value.has_value() ? absl::StrFormat("%.6f", *value) : "";
}

void CsvRow(absl::string_view settings, absl::string_view group,
            const Tally& tally, const Outcome* outcome, std::string* csv) {
  absl::StrAppend(
      csv, CsvField(settings), ",", CsvField(group), ",",
      CsvNumber(tally.HitRate()), ",", CsvNumber(tally.ByteHitRate()), ",",
      tally.hits, ",", tally.stale, ",", tally.collapsed, ",", tally.misses,
      ",", tally.bypasses, ",", tally.function_runs, ",",
      CsvNumber(tally.function_seconds), ",",
      outcome == nullptr
          ? ""
          : CsvNumber(Rate(outcome->pipelines, outcome->seconds)),
      ",", outcome == nullptr ? "" : absl::StrCat(outcome->evictions));
  for (const auto part :
       {&Outcome::Ages::p50, &Outcome::Ages::p99, &Outcome::Ages::max}) {
    absl::StrAppend(csv, ",",
                    outcome == nullptr || !outcome->ages.has_value()
                        ? ""
                        : CsvNumber(*outcome->ages.*part));
  }
  absl::StrAppend(csv, "\n");
}

// The masks that are suggested, each with its number in the settings' names.
std::vector<Cells> MaskRows(const Report& report) {
  std::vector<Cells> rows = {{"", "suggested mask", "the function"}};
  for (size_t i = 0; i < report.masks.size(); ++i) {
    for (const std::string& mask : report.masks[i].masks) {
      rows.push_back({absl::StrCat(i + 1), Printable(mask), "was not asked"});
    }
  }
  return rows;
}

std::string ThresholdLine(const load::ThresholdResults& one) {
  return absl::StrCat(one.ok ? "  holds  " : "  FAILS  ",
                      Printable(one.expression), "  (",
                      load::FormatValue(one.expression, one.value), ")\n");
}

}  // namespace

std::string ReportText(const Report& report) {
  std::vector<Cells> rows = {Columns(), MeasuredCells(report.measured)};
  for (const Row& row : report.rows) {
    rows.push_back(CellsOf(row.question.Label(), row.outcome));
  }
  std::string text = absl::StrFormat(
      "%d calls in %s, arrivals as %s\n\n", report.measured.calls,
      load::FormatSeconds(report.measured.seconds),
      report.arrivals == "model" ? "the runner would make them" : "recorded");
  absl::StrAppend(&text, TextTable(rows, {false, true, true, true, true, true,
                                          true, true, true, true}));
  for (const Row& row : report.rows) {
    if (!row.groups.empty()) {
      absl::StrAppend(&text, "\n", Printable(row.question.Label()), ":\n",
                      TextTable(GroupRows(report, row),
                                {false, true, true, true, true, true, true}));
    }
    if (!row.thresholds.empty()) {
      absl::StrAppend(&text, "\nthresholds, ", Printable(row.question.Label()),
                      ":\n");
    }
    for (const load::ThresholdResults& one : row.thresholds) {
      absl::StrAppend(&text, ThresholdLine(one));
    }
  }
  if (!report.masks.empty()) {
    absl::StrAppend(&text, "\n",
                    TextTable(MaskRows(report), {true, false, false}));
  }
  if (!report.notes.empty()) absl::StrAppend(&text, "\n");
  for (const std::string& note : report.notes) {
    absl::StrAppend(&text, Printable(note), "\n");
  }
  return text;
}

std::string ReportJson(const Report& report) {
  JsonTree settings = JsonTree::Array();
  for (const Row& row : report.rows) settings.Append(RowJson(report, row));
  JsonTree masks = JsonTree::Array();
  for (const auto& share : report.masks) {
    for (const std::string& mask : share.masks) masks.Append(mask);
  }
  const JsonTree all = {{"version", 1},
                        {"trace", report.trace},
                        {"arrivals", report.arrivals},
                        {"calls", report.measured.calls},
                        {"seconds", report.measured.seconds},
                        {"settings", settings},
                        {"suggested_masks", masks},
                        {"notes", report.notes}};
  return all.Dump(2, JsonTree::Order::kSorted) + "\n";
}

std::string ReportCsv(const Report& report) {
  std::string csv =
      "settings,group,hit_rate,byte_hit_rate,hits,stale,collapsed,misses,"
      "bypasses,function_runs,function_seconds,reconciles_per_second,evictions,"
      "age_p50,age_p99,age_max\n";
  CsvRow("measured", "", report.measured.all, &report.measured, &csv);
  bool first = true;
  for (const Row& row : report.rows) {
    for (const Group& group : row.groups) {
      if (first) CsvRow("measured", group.name, group.measured, nullptr, &csv);
    }
    first = false;
    CsvRow(row.question.Label(), "", row.outcome.all, &row.outcome, &csv);
    for (const Group& group : row.groups) {
      CsvRow(row.question.Label(), group.name, group.predicted, nullptr, &csv);
    }
  }
  return csv;
}

std::string ReportPage(const Report& report) {
  std::string out = absl::StrCat(
      load::PageHead(absl::StrCat("fncache replay, ", report.trace)),
      "<body><h1>fncache replay</h1><p class=\"dim\">", Escape(report.trace),
      ", ", report.measured.calls, " calls in ",
      Escape(load::FormatSeconds(report.measured.seconds)), ", arrivals as ",
      report.arrivals == "model" ? "the runner would make them" : "recorded",
      "</p><div class=\"cards\">",
      load::Card("measured hit rate",
                 load::FormatPercent(report.measured.all.HitRate())));
  const Row* best = nullptr;
  for (const Row& row : report.rows) {
    if (best == nullptr || row.outcome.all.HitRate().value_or(0) >
                               best->outcome.all.HitRate().value_or(0)) {
      best = &row;
    }
  }
  if (best != nullptr) {
    absl::StrAppend(
        &out,
        load::Card("best hit rate",
                   load::FormatPercent(best->outcome.all.HitRate())),
        load::Card("with", best->question.Label()));
  }
  std::string rows = load::Row(MeasuredCells(report.measured), "td");
  for (const Row& row : report.rows) {
    absl::StrAppend(
        &rows, load::Row(CellsOf(row.question.Label(), row.outcome), "td"));
  }
  absl::StrAppend(&out, "</div>\n<h2>Settings</h2>",
                  load::Table(load::Row(Columns(), "th"), rows), "\n");
  for (const Row& row : report.rows) {
    if (!row.groups.empty()) {
      const std::vector<Cells> groups = GroupRows(report, row);
      rows.clear();
      for (size_t i = 1; i < groups.size(); ++i) {
        absl::StrAppend(&rows, load::Row(groups[i], "td"));
      }
      absl::StrAppend(&out, "<h2>", Escape(row.question.Label()), "</h2>",
                      load::Table(load::Row(groups[0], "th"), rows), "\n");
    }
    if (row.thresholds.empty()) continue;
    rows.clear();
    for (const load::ThresholdResults& one : row.thresholds) {
      absl::StrAppend(&rows,
                      load::Row({one.expression,
                                 load::FormatValue(one.expression, one.value),
                                 one.ok ? "holds" : "fails"},
                                "td"));
    }
    absl::StrAppend(
        &out, "<h2>Thresholds, ", Escape(row.question.Label()), "</h2>",
        load::Table(load::Row({"threshold", "value", ""}, "th"), rows), "\n");
  }
  if (!report.masks.empty()) {
    const std::vector<Cells> masks = MaskRows(report);
    rows.clear();
    for (size_t i = 1; i < masks.size(); ++i) {
      absl::StrAppend(&rows, load::Row(masks[i], "td", 3));
    }
    absl::StrAppend(&out, "<h2>Suggested masks</h2>",
                    load::Table(load::Row(masks[0], "th", 3), rows), "\n");
  }
  for (const std::string& note : report.notes) {
    absl::StrAppend(&out, "<p class=\"dim\">", Escape(note), "</p>");
  }
  return absl::StrCat(out, "</body></html>\n");
}

std::string MrcCsv(const std::vector<std::pair<uint64_t, Outcome>>& points) {
  std::string csv =
      "cache_memory,miss_ratio,hit_rate,byte_hit_rate,function_runs,"
      "function_seconds,evictions\n";
  for (const auto& [bytes, outcome] : points) {
    const absl::optional<double> rate = outcome.all.HitRate();
    absl::StrAppend(
        &csv, bytes, ",",
        CsvNumber(rate.has_value() ? absl::optional<double>(1 - *rate) : rate),
        ",", CsvNumber(rate), ",", CsvNumber(outcome.all.ByteHitRate()), ",",
        outcome.all.function_runs, ",", CsvNumber(outcome.all.function_seconds),
        ",", outcome.evictions, "\n");
  }
  return csv;
}

}  // namespace fncache::runner::replay
