// SPDX-License-Identifier: Apache-2.0
#include "runner/load/summary.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/utf8.h"
#include "runner/load/format.h"
#include "runner/load/threshold.h"
#include "runner/load/verdict.h"

namespace fncache::runner::load {
namespace {

std::string Row(absl::string_view first, absl::string_view outcome,
                uint64_t count, double rate, const LatencySummary& latency,
                size_t width) {
  return absl::StrFormat("  %-*s %-9s %9d %9s %8s %8s %8s %8s %8s\n",
                         static_cast<int>(width), Printable(first), outcome,
                         count, FormatRate(rate), FormatSeconds(latency.p50),
                         FormatSeconds(latency.p90), FormatSeconds(latency.p99),
                         FormatSeconds(latency.p999),
                         FormatSeconds(latency.max));
}

}  // namespace

std::string SummaryText(const LoadResults& results) {
  std::string text;
  const auto& pipelines = results.pipelines;
  if (results.interrupted) absl::StrAppend(&text, "interrupted\n");
  if (results.settle.pipelines > 0) {
    absl::StrAppend(&text,
                    "settled before, in no count: ", results.settle.pipelines,
                    " pipelines, ", results.settle.calls, " calls in ",
                    FormatSeconds(results.settle.seconds), "\n");
  }
  absl::StrAppend(&text, "measured for ", FormatSeconds(results.duration), ": ",
                  pipelines.count, " pipelines, ", pipelines.errors,
                  " failed, ", pipelines.late, " late, ", pipelines.dropped,
                  " dropped\n\n");
  size_t width = 12;
  for (const CallResults& calls : results.calls) {
    width = std::max(width, Printable(calls.step).size());
  }
  absl::StrAppendFormat(&text, "  %-*s %-9s %9s %9s %8s %8s %8s %8s %8s\n",
                        static_cast<int>(width), "", "outcome", "count", "rate",
                        "p50", "p90", "p99", "p99.9", "max");
  absl::StrAppend(&text, Row("pipelines", "", pipelines.count, pipelines.rate,
                             pipelines.latency, width));
  absl::StrAppend(&text, Row("service time", "", pipelines.count,
                             pipelines.rate, pipelines.service_time, width));
  for (const CallResults& calls : results.calls) {
    absl::StrAppend(&text, Row(calls.step, calls.outcome, calls.count,
                               calls.rate, calls.latency, width));
  }
  absl::StrAppend(&text, "\nhit rate ", FormatPercent(results.hit_rate),
                  "; functions ran ", results.function_runs, " times, ",
                  FormatSeconds(results.function_seconds), "\n");
  const auto& composites = results.composites;
  if (composites.count > 0) {
    absl::StrAppend(&text, "composites ", composites.count, ", ready ",
                    composites.ready, "; requeues ", composites.requeues,
                    "; breaker openings ", composites.breaker_openings,
                    ", events dropped ", composites.events_dropped,
                    "; resources deleted ", composites.deleted, "\n");
  }
  for (const std::string& warning : Warnings(results)) {
    absl::StrAppend(&text, "warning: ", Printable(warning), "\n");
  }
  if (const auto sentences = VerdictSentences(results); !sentences.empty()) {
    absl::StrAppend(&text, results.verdict.has_value() ? "verdict: " : "",
                    absl::StrJoin(sentences, ";\n  "), "\n");
  }
  if (results.daemon.has_value()) {
    absl::StrAppend(&text, "the daemon counted");
    for (const auto& [outcome, count] : results.daemon->outcomes) {
      if (count > 0) {
        absl::StrAppend(&text, " ", Printable(outcome), " ", count);
      }
    }
    absl::StrAppend(
        &text,
        results.daemon->agrees
            ? ": as was measured here\n"
            : absl::StrCat(": disagrees: ",
                           Printable(results.daemon->disagreement), "\n"));
  }
  if (!results.errors.empty()) absl::StrAppend(&text, "errors:\n");
  for (const ErrorResults& error : results.errors) {
    absl::StrAppend(&text, "  ", error.count, " x ", Printable(error.message),
                    "\n      such as ", Printable(error.example), "\n");
  }
  if (!results.thresholds.empty()) absl::StrAppend(&text, "thresholds:\n");
  for (const ThresholdResults& threshold : results.thresholds) {
    absl::StrAppend(&text, threshold.ok ? "  holds  " : "  FAILS  ",
                    Printable(threshold.expression), "  (",
                    FormatValue(threshold.expression, threshold.value), ")\n");
  }
  absl::StrAppendFormat(
      &text, "generator: p99 of starts %s late, of answers %s; %.2f cores\n",
      FormatSeconds(results.generator.lag_p99),
      FormatSeconds(results.generator.wait_p99), results.generator.cpu);
  return text;
}

std::string PercentileText(const LoadResults& results) {
  const LatencySummary& latency = results.pipelines.latency;
  const auto total = static_cast<double>(results.pipelines.count);
  std::string text =
      absl::StrFormat("%12s %14s %10s %14s\n\n", "Value", "Percentile",
                      "TotalCount", "1/(1-Percentile)");
  double left = 1;
  for (int step = 0; step < 100 && total > 0; ++step) {
    const double fraction = 1 - left;
    const auto value =
        PercentileOf(latency.buckets, fraction * 100).value_or(0);
    uint64_t seen = 0;
    for (const auto& [end, count] : latency.buckets) {
      if (end <= value) seen += count;
    }
    const double ms = std::min(value, latency.max) * 1e3;
    if (static_cast<double>(seen) >= total) {
      absl::StrAppendFormat(&text, "%12.3f %14.6f %10d\n", latency.max * 1e3,
                            1.0, seen);
      break;
    }
    absl::StrAppendFormat(&text, "%12.3f %14.6f %10d %14.2f\n", ms, fraction,
                          seen, 1 / left);
    // Five steps from each half to the next, as HdrHistogram has them.
    constexpr double kRounding = 1e-9;
    const double halves = std::floor(std::log2(1 / left + kRounding));
    left -= 1 / (5 * std::pow(2, halves + 1));
    if (left <= 0) break;
  }
  double squares = 0;
  for (const auto& [end, count] : latency.buckets) {
    squares += static_cast<double>(count) * (end - latency.mean) *
               (end - latency.mean);
  }
  const double deviation = total > 0 ? std::sqrt(squares / total) : 0;
  absl::StrAppendFormat(&text,
                        "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n"
                        "#[Max     = %12.3f, Total count    = %12d]\n",
                        latency.mean * 1e3, deviation * 1e3, latency.max * 1e3,
                        results.pipelines.count);
  return text;
}

}  // namespace fncache::runner::load
