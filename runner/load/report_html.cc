// SPDX-License-Identifier: Apache-2.0
#include "runner/load/report_html.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/duration.h"
#include "runner/load/compare.h"
#include "runner/load/format.h"
#include "runner/load/html.h"
#include "runner/load/verdict.h"

namespace fncache::runner::load {
namespace {

struct Line {
  std::string name;
  int color = 0;
  bool later = false;
  std::vector<std::pair<double, double>> points;
};

constexpr double kWidth = 600, kHeight = 240, kLeft = 74, kBottom = 26,
                 kTop = 12, kRight = 8;

// A round number at or above.
double RoundUp(double value) {
  if (value <= 0) return 1;
  const double unit = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 2.5, 5.0, 10.0}) {
    if (unit * step >= value * 0.999999) return unit * step;
  }
  return value;
}

// Between the marks of a time axis that ends at `end` seconds: at most five
// steps, of lengths that people count in.
double TimeStep(double end) {
  for (const double step : {0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0,
                            60.0, 120.0, 300.0, 600.0, 900.0, 1800.0}) {
    if (end / step <= 5) return step;
  }
  return 3600 * std::ceil(end / 5 / 3600);
}

std::string TimeMark(double seconds) {
  return FormatGoDuration(absl::Milliseconds(std::llround(seconds * 1e3)));
}

std::string Chart(absl::string_view title, const std::vector<Line>& lines,
                  const std::function<std::string(double)>& format,
                  double least_top = 0) {
  double top = least_top, end = 0;
  for (const Line& line : lines) {
    for (const auto& [x, y] : line.points) {
      top = std::max(top, y);
      end = std::max(end, x);
    }
  }
  if (least_top == 0) top = RoundUp(top);
  if (end <= 0) end = 1;
  const auto x_of = [&](double x) {
    return kLeft + x / end * (kWidth - kLeft - kRight);
  };
  const auto y_of = [&](double y) {
    return kHeight - kBottom - y / top * (kHeight - kBottom - kTop);
  };
  std::string out = absl::StrCat("<figure><figcaption>", Escape(title), "<br>");
  for (const Line& line : lines) {
    if (line.points.empty()) continue;
    absl::StrAppend(&out,
                    "<span class=\"k\"><svg viewBox=\"0 0 16 6\" "
                    "aria-hidden=\"true\"><path class=\"l s",
                    line.color, line.later ? " later" : "",
                    "\" d=\"M0 3H16\"></path></svg> ", Escape(line.name),
                    "</span>");
  }
  absl::StrAppendFormat(&out,
                        "</figcaption><svg viewBox=\"0 0 %.0f %.0f\" "
                        "role=\"img\" aria-label=\"%s\">",
                        kWidth, kHeight, Escape(title));
  for (int i = 0; i <= 4; ++i) {
    const double y = top * i / 4;
    absl::StrAppendFormat(
        &out,
        "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"></path><text x=\"%.1f\" "
        "y=\"%.1f\" text-anchor=\"end\">%s</text>",
        kLeft, y_of(y), kWidth - kRight, kLeft - 5, y_of(y) + 4,
        Escape(format(y)));
  }
  const double apart = TimeStep(end);
  for (int i = 0; i * apart <= end; ++i) {
    const double x = x_of(i * apart);
    absl::StrAppendFormat(&out,
                          "<text x=\"%.1f\" y=\"%.1f\" "
                          "text-anchor=\"%s\">%s</text>",
                          x, kHeight - 5,
                          i == 0                     ? "start"
                          : x > kWidth - kRight - 20 ? "end"
                                                     : "middle",
                          Escape(TimeMark(i * apart)));
  }
  for (const Line& line : lines) {
    if (line.points.empty()) continue;
    absl::StrAppend(&out, "<path class=\"l s", line.color,
                    line.later ? " later" : "", "\" d=\"");
    // At most about 600 points; each is the largest of its group.
    const size_t step = line.points.size() / 600 + 1;
    for (size_t i = 0; i < line.points.size(); i += step) {
      double y = 0;
      const size_t last = std::min(i + step, line.points.size());
      for (size_t j = i; j < last; ++j) y = std::max(y, line.points[j].second);
      absl::StrAppendFormat(&out, "%s%.1f %.1f", i == 0 ? "M" : "L",
                            x_of(line.points[i].first), y_of(y));
    }
    // A single point would not show.
    if (line.points.size() == 1) absl::StrAppend(&out, "h2");
    absl::StrAppend(&out, "\"><title>", Escape(line.name), "</title></path>");
  }
  return absl::StrCat(out, "</svg></figure>");
}

// Counts over latency, both ends of the axis by the logarithm.
std::string Histogram(absl::string_view title, const LatencySummary& first,
                      const LatencySummary* later) {
  constexpr int kBars = 60;
  double low = INFINITY, high = 0;
  for (const LatencySummary* one : {&first, later}) {
    if (one == nullptr || one->buckets.empty()) continue;
    low = std::min(low, std::max(one->buckets.front().first, 1e-9));
    high = std::max(high, one->buckets.back().first);
  }
  if (!(low < INFINITY)) return "";
  high = std::max(high, low * 1.1);
  const double span = std::log(high / low);
  std::string out = absl::StrCat("<figure><figcaption>", Escape(title),
                                 "</figcaption><svg viewBox=\"0 0 600 140\" "
                                 "role=\"img\" aria-label=\"",
                                 Escape(title), "\">");
  double top = 0;
  std::vector<std::vector<double>> all;
  for (const LatencySummary* one : {&first, later}) {
    if (one == nullptr) continue;
    std::vector<double> bars(kBars, 0);
    double sum = 0;
    for (const auto& [end, count] : one->buckets) {
      const int bar = std::min(
          kBars - 1,
          std::max(0, static_cast<int>(std::log(std::max(end, low) / low) /
                                       span * kBars)));
      bars[static_cast<size_t>(bar)] += static_cast<double>(count);
      sum += static_cast<double>(count);
    }
    for (double& bar : bars) {
      bar /= std::max(sum, 1.0);
      top = std::max(top, bar);
    }
    all.push_back(std::move(bars));
  }
  for (size_t run = 0; run < all.size(); ++run) {
    for (int i = 0; i < kBars; ++i) {
      const double share = all[run][static_cast<size_t>(i)];
      if (share <= 0) continue;
      const double height = std::max(1.0, share / top * 110);
      const double from = low * std::exp(span * i / kBars);
      const double to = low * std::exp(span * (i + 1) / kBars);
      absl::StrAppendFormat(
          &out,
          "<rect class=\"bar%s\" x=\"%.1f\" y=\"%.1f\" width=\"9\" "
          "height=\"%.1f\"><title>%s to %s: %s</title></rect>",
          run > 0 ? " later" : "", i * 10.0 + 0.5, 115 - height, height,
          Escape(FormatSeconds(from)), Escape(FormatSeconds(to)),
          Escape(FormatPercent(share)));
    }
  }
  for (int i = 0; i <= 3; ++i) {
    absl::StrAppendFormat(
        &out, "<text x=\"%.1f\" y=\"134\" text-anchor=\"%s\">%s</text>",
        i * 200.0,
        i == 0   ? "start"
        : i == 3 ? "end"
                 : "middle",
        Escape(FormatSeconds(low * std::exp(span * i / 3))));
  }
  return absl::StrCat(out, "</svg></figure>");
}

Line Series(absl::string_view name, int color, bool later,
            const LoadResults& run,
            const std::function<double(const TimelinePoint&)>& value) {
  Line line;
  line.name = absl::StrCat(name, later ? ", later run" : "");
  line.color = color;
  line.later = later;
  for (const TimelinePoint& point : run.timeline) {
    const double y = value(point);
    if (std::isfinite(y)) line.points.emplace_back(point.at, y);
  }
  return line;
}

std::vector<std::string> Cells(uint64_t count, double rate,
                               const LatencySummary& latency) {
  return {absl::StrCat(count),        FormatRate(rate),
          FormatSeconds(latency.p50), FormatSeconds(latency.p90),
          FormatSeconds(latency.p99), FormatSeconds(latency.p999),
          FormatSeconds(latency.max)};
}

std::string Summary(const LoadResults& run) {
  const auto& pipelines = run.pipelines;
  std::string out = "<div class=\"cards\">";
  absl::StrAppend(&out, Card("pipelines", absl::StrCat(pipelines.count)),
                  Card("rate", FormatRate(pipelines.rate)),
                  Card("p50", FormatSeconds(pipelines.latency.p50)),
                  Card("p99", FormatSeconds(pipelines.latency.p99)),
                  Card("hit rate", FormatPercent(run.hit_rate)),
                  Card("function runs", absl::StrCat(run.function_runs)),
                  Card("failed", absl::StrCat(pipelines.errors),
                       pipelines.errors > 0 ? "bad" : ""),
                  Card("late, dropped",
                       absl::StrCat(pipelines.late, ", ", pipelines.dropped)));
  if (run.composites.count > 0) {
    absl::StrAppend(&out,
                    Card("ready", absl::StrCat(run.composites.ready, " of ",
                                               run.composites.count)));
  }
  absl::StrAppend(&out, "</div>");
  for (const std::string& warning : Warnings(run)) {
    absl::StrAppend(&out, "<p class=\"bad\">", Escape(warning), ".</p>");
  }
  if (run.verdict.has_value()) {
    absl::StrAppend(&out, "<p>Verdict: ",
                    Escape(absl::StrJoin(VerdictSentences(run), "; ")),
                    ".</p>");
  }
  if (run.interrupted) {
    absl::StrAppend(&out, "<p class=\"bad\">The run was interrupted.</p>");
  }
  return out;
}

std::string Steps(const LoadResults& run) {
  std::string rows;
  const auto row = [&](const std::string& name, const std::string& outcome,
                       std::vector<std::string> cells) {
    cells.insert(cells.begin(), {name, outcome});
    absl::StrAppend(&rows, Row(cells, "td", 2));
  };
  row("pipelines", "",
      Cells(run.pipelines.count, run.pipelines.rate, run.pipelines.latency));
  row("service time", "",
      Cells(run.pipelines.count, run.pipelines.rate,
            run.pipelines.service_time));
  for (const CallResults& calls : run.calls) {
    row(absl::StrCat(calls.step, " (", calls.function, ")"), calls.outcome,
        Cells(calls.count, calls.rate, calls.latency));
  }
  return Table(
      Row({"", "outcome", "count", "rate", "p50", "p90", "p99", "p99.9", "max"},
          "th", 2),
      rows);
}

std::string Thresholds(const LoadResults& run, absl::string_view which) {
  if (run.thresholds.empty()) return "";
  std::string rows;
  for (const ThresholdResults& one : run.thresholds) {
    absl::StrAppend(&rows, "<tr><td class=\"t\">", Escape(one.expression),
                    "</td><td>", Escape(FormatValue(one.expression, one.value)),
                    "</td><td class=\"",
                    one.ok ? "good\">holds" : "bad\">fails", "</td></tr>");
  }
  return absl::StrCat("<h2>Thresholds", which, "</h2>",
                      Table(Row({"threshold", "value", ""}, "th"), rows));
}

std::string Errors(const LoadResults& run, absl::string_view which) {
  if (run.errors.empty()) return "";
  std::string rows;
  for (const ErrorResults& error : run.errors) {
    absl::StrAppend(
        &rows, Row({error.message, error.example, absl::StrCat(error.count)},
                   "td", 2));
  }
  return absl::StrCat(
      "<h2>Errors", which, "</h2>",
      Table(Row({"message", "such as", "count"}, "th", 2), rows));
}

std::string Pairs(absl::string_view title,
                  const std::map<std::string, std::string>& pairs) {
  std::string rows;
  for (const auto& [name, value] : pairs) {
    absl::StrAppend(&rows, Row({name, value}, "td", 2));
  }
  return absl::StrCat("<h2>", Escape(title), "</h2>",
                      Table(Row({"", ""}, "th", 2), rows));
}

}  // namespace

std::string ReportHtml(const LoadResults& results, const LoadResults* other) {
  std::vector<std::pair<const LoadResults*, bool>> runs = {{&results, false}};
  if (other != nullptr) runs.emplace_back(other, true);

  std::string out =
      absl::StrCat(PageHead(absl::StrCat("fncache load, ", results.started)),
                   "<body><h1>fncache load</h1>");
  for (const auto& [run, later] : runs) {
    absl::StrAppend(&out, "<p class=\"dim\">",
                    other == nullptr ? ""
                    : later          ? "Later run (dashed): "
                                     : "Earlier run: ",
                    Escape(run->started), ", measured for ",
                    Escape(FormatSeconds(run->duration)), "</p>", Summary(*run),
                    "\n");
  }
  if (other != nullptr) {
    std::string rows;
    for (const Change& change : Compare(results, *other)) {
      absl::StrAppend(
          &rows,
          Row({change.name, FormatInterval(change.before, change.unit),
               FormatInterval(change.after, change.unit), FormatChange(change)},
              "td"));
    }
    absl::StrAppend(&out, "<h2>Change</h2>",
                    Table(Row({"", "earlier", "later", "change"}, "th"), rows),
                    "<p class=\"dim\">In parentheses: 95 % intervals.</p>\n");
  }

  std::vector<Line> throughput, latency, calls, hits;
  for (const auto& [run, later] : runs) {
    throughput.push_back(
        Series("pipelines", 0, later, *run, [](const TimelinePoint& p) {
          return static_cast<double>(p.pipelines) / std::max(p.seconds, 1e-9);
        }));
    throughput.push_back(
        Series("calls", 2, later, *run, [](const TimelinePoint& p) {
          return static_cast<double>(p.calls) / std::max(p.seconds, 1e-9);
        }));
    throughput.push_back(
        Series("failed", 1, later, *run, [](const TimelinePoint& p) {
          return static_cast<double>(p.errors) / std::max(p.seconds, 1e-9);
        }));
    latency.push_back(Series("p50", 2, later, *run,
                             [](const TimelinePoint& p) { return p.p50; }));
    latency.push_back(Series("p90", 0, later, *run,
                             [](const TimelinePoint& p) { return p.p90; }));
    latency.push_back(Series("p99", 1, later, *run,
                             [](const TimelinePoint& p) { return p.p99; }));
    calls.push_back(Series(
        "p99 of hits", 0, later, *run,
        [](const TimelinePoint& p) { return p.hits > 0 ? p.hit_p99 : NAN; }));
    calls.push_back(
        Series("p99 of misses", 3, later, *run, [](const TimelinePoint& p) {
          return p.misses > 0 ? p.miss_p99 : NAN;
        }));
    hits.push_back(
        Series("hit rate", 0, later, *run, [](const TimelinePoint& p) {
          const auto hit = static_cast<double>(p.hits + p.stale + p.collapsed);
          const double all = hit + static_cast<double>(p.misses);
          return all > 0 ? hit / all : NAN;
        }));
  }
  const auto a_second = [](double value) { return FormatRate(value); };
  const auto share = [](double value) { return FormatPercent(value); };
  absl::StrAppend(&out, "<h2>Over time</h2><div class=\"charts\">",
                  Chart("Throughput", throughput, a_second),
                  Chart("Pipelines' latency", latency, FormatSeconds),
                  Chart("Hit rate", hits, share, 1),
                  Chart("Calls' latency", calls, FormatSeconds), "</div>\n");

  // By outcome, over all steps; never two outcomes in one.
  absl::StrAppend(&out, "<h2>Latency of calls by outcome",
                  other == nullptr ? ""
                                   : "<span class=\"swatch\"></span>earlier"
                                     "<span class=\"swatch later\"></span>"
                                     "later",
                  "</h2><div class=\"charts\">");
  for (const char* outcome :
       {"hit", "stale", "collapsed", "miss", "bypass", "none"}) {
    std::vector<LatencySummary> merged(2);
    for (size_t i = 0; i < runs.size(); ++i) {
      std::map<double, uint64_t> buckets;
      for (const CallResults& one : runs[i].first->calls) {
        if (one.outcome != outcome) continue;
        for (const auto& [end, count] : one.latency.buckets) {
          buckets[end] += count;
        }
      }
      merged[i].buckets.assign(buckets.begin(), buckets.end());
    }
    absl::StrAppend(&out, Histogram(outcome, merged[0],
                                    other == nullptr ? nullptr : &merged[1]));
  }
  absl::StrAppend(&out, "</div>\n");
  for (const auto& [run, later] : runs) {
    const char* const which = other == nullptr ? ""
                              : later          ? ", later run"
                                               : ", earlier run";
    absl::StrAppend(&out, "<h2>Steps", which, "</h2>", Steps(*run),
                    Thresholds(*run, which), Errors(*run, which));
    if (run->daemon.has_value()) {
      absl::StrAppend(
          &out, "<p>What the daemon itself counted ",
          run->daemon->agrees
              ? "agrees."
              : Escape(absl::StrCat("disagrees: ", run->daemon->disagreement)),
          "</p>");
    }
    std::map<std::string, std::string> settings = run->settings;
    settings["version"] = run->tool_version;
    absl::StrAppend(&out, Pairs(absl::StrCat("Settings", which), settings),
                    Pairs(absl::StrCat("Machine", which), run->machine), "\n");
  }
  return absl::StrCat(out, "</body></html>\n");
}

}  // namespace fncache::runner::load
