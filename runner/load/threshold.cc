// SPDX-License-Identifier: Apache-2.0
#include "runner/load/threshold.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/duration.h"
#include "common/nearest.h"
#include "common/utf8.h"

namespace fncache::runner::load {
namespace {

using Texts = std::vector<std::string>;

const Texts& Metrics() {
  static const auto* const all =
      new Texts{"pipeline", "service", "call", "errors", "hits",
                "late",     "dropped", "runs", "ready"};
  return *all;
}

bool IsTime(absl::string_view metric) {
  return metric == "pipeline" || metric == "service" || metric == "call";
}

Texts LabelsOf(absl::string_view metric) {
  if (metric == "call") return {"step", "function", "outcome"};
  if (metric == "errors" || metric == "hits" || metric == "runs") {
    return {"step", "function"};
  }
  return {};
}

absl::Status Wrong(absl::string_view expression, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", Printable(expression), "\": ", why));
}

absl::Status Unknown(absl::string_view expression, absl::string_view what,
                     absl::string_view given, const Texts& accepted) {
  return Wrong(
      expression,
      absl::StrCat("there is no ", what, " \"", Printable(given), "\"",
                   DidYouMean(given, accepted), "; accepted: ",
                   accepted.empty() ? "none" : absl::StrJoin(accepted, ", ")));
}

absl::Status ReadLabels(absl::string_view text, const ThresholdNames& names,
                        Threshold* threshold) {
  const Texts outcomes = {"hit",       "miss",   "stale",
                          "collapsed", "bypass", "none"};
  const Texts labels = LabelsOf(threshold->metric);
  for (const absl::string_view pair : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> halves =
        absl::StrSplit(pair, absl::MaxSplits('=', 1));
    const absl::string_view label = absl::StripAsciiWhitespace(halves.first);
    const std::string value(absl::StripAsciiWhitespace(halves.second));
    if (!absl::c_linear_search(labels, label)) {
      return Unknown(threshold->expression,
                     absl::StrCat("label for ", threshold->metric), label,
                     labels);
    }
    const Texts& known = label == "step"       ? names.steps
                         : label == "function" ? names.functions
                                               : outcomes;
    if (!absl::c_linear_search(known, value)) {
      return Unknown(threshold->expression, label, value, known);
    }
    (label == "step"       ? threshold->step
     : label == "function" ? threshold->function
                           : threshold->outcome) = value;
  }
  return absl::OkStatus();
}

absl::Status ReadAggregate(absl::string_view text, Threshold* threshold) {
  Texts accepted = {"count", "rate"};
  if (IsTime(threshold->metric)) {
    accepted = {"p(N)", "avg", "mean", "min", "max", "med", "count", "rate"};
    absl::string_view number = text;
    if (absl::ConsumePrefix(&number, "p(") &&
        absl::ConsumeSuffix(&number, ")")) {
      if (!absl::SimpleAtod(number, &threshold->percentile) ||
          !(threshold->percentile > 0 && threshold->percentile <= 100)) {
        return Wrong(threshold->expression,
                     absl::StrCat(text,
                                  " is not accepted; accepted: p(N) with N "
                                  "above 0, at most 100"));
      }
      threshold->aggregate = "p";
      return absl::OkStatus();
    }
  }
  if (text == "p(N)" || !absl::c_linear_search(accepted, text)) {
    return Unknown(threshold->expression,
                   absl::StrCat("aggregate of ", threshold->metric), text,
                   accepted);
  }
  threshold->aggregate = std::string(text);
  return absl::OkStatus();
}

absl::Status ReadValue(absl::string_view text, Threshold* threshold) {
  const bool time = IsTime(threshold->metric) &&
                    threshold->aggregate != "count" &&
                    threshold->aggregate != "rate";
  if (time) {
    if (const auto duration = ParseGoDuration(text); duration.ok()) {
      threshold->value = absl::ToDoubleSeconds(*duration);
      return absl::OkStatus();
    }
    return Wrong(threshold->expression,
                 absl::StrCat("\"", Printable(text),
                              "\" is not accepted; accepted: ", kDurationForm));
  }
  double factor = 1;
  if (absl::ConsumeSuffix(&text, "%")) factor = 0.01;
  if (!absl::SimpleAtod(text, &threshold->value) ||
      !std::isfinite(threshold->value)) {
    return Wrong(threshold->expression,
                 absl::StrCat("\"", Printable(text),
                              "\" is not accepted; accepted: a number"));
  }
  threshold->value *= factor;
  return absl::OkStatus();
}

bool Matches(const Threshold& threshold, const CallResults& calls) {
  return (threshold.step.empty() || threshold.step == calls.step) &&
         (threshold.function.empty() || threshold.function == calls.function) &&
         (threshold.outcome.empty() || threshold.outcome == calls.outcome);
}

// Latencies of several series as of one.
struct Latencies {
  uint64_t count = 0;
  double sum = 0, min = 0, max = 0;
  std::map<double, uint64_t> buckets;

  void Add(uint64_t number, const LatencySummary& latency) {
    if (number == 0) return;
    min = count == 0 ? latency.min : std::min(min, latency.min);
    max = std::max(max, latency.max);
    count += number;
    sum += latency.mean * static_cast<double>(number);
    for (const auto& [end, times] : latency.buckets) buckets[end] += times;
  }
};

absl::optional<double> ValueOf(const Latencies& all, double duration,
                               const Threshold& threshold) {
  const auto count = static_cast<double>(all.count);
  if (threshold.aggregate == "count") return count;
  if (threshold.aggregate == "rate") {
    if (duration <= 0) return absl::nullopt;
    return count / duration;
  }
  if (all.count == 0) return absl::nullopt;
  if (threshold.aggregate == "avg" || threshold.aggregate == "mean") {
    return all.sum / count;
  }
  if (threshold.aggregate == "min") return all.min;
  if (threshold.aggregate == "max") return all.max;
  const auto value =
      PercentileOf({all.buckets.begin(), all.buckets.end()},
                   threshold.aggregate == "med" ? 50 : threshold.percentile);
  if (!value.has_value()) return value;
  return std::min(*value, all.max);
}

absl::optional<double> Fraction(double part, double whole,
                                const Threshold& threshold) {
  if (whole <= 0) return absl::nullopt;
  return threshold.aggregate == "count" ? part : part / whole;
}

absl::optional<double> ValueOf(const Threshold& threshold,
                               const LoadResults& results) {
  const std::string& metric = threshold.metric;
  if (IsTime(metric)) {
    Latencies all;
    if (metric == "call") {
      bool any = false;
      for (const CallResults& calls : results.calls) {
        if (!Matches(threshold, calls)) continue;
        any = true;
        all.Add(calls.count, calls.latency);
      }
      if (!any) return absl::nullopt;
    } else {
      if (results.pipelines.count == 0) return absl::nullopt;
      all.Add(results.pipelines.count, metric == "pipeline"
                                           ? results.pipelines.latency
                                           : results.pipelines.service_time);
    }
    return ValueOf(all, results.duration, threshold);
  }
  const auto begun = static_cast<double>(results.pipelines.count);
  if (metric == "late") {
    return Fraction(static_cast<double>(results.pipelines.late), begun,
                    threshold);
  }
  if (metric == "dropped") {
    const auto dropped = static_cast<double>(results.pipelines.dropped);
    return Fraction(dropped, begun + dropped, threshold);
  }
  if (metric == "ready") {
    return Fraction(static_cast<double>(results.composites.ready),
                    static_cast<double>(results.composites.count), threshold);
  }
  if (metric == "errors" && threshold.step.empty() &&
      threshold.function.empty()) {
    return Fraction(static_cast<double>(results.pipelines.errors), begun,
                    threshold);
  }
  double calls = 0, errors = 0, hits = 0, misses = 0, runs = 0;
  for (const CallResults& one : results.calls) {
    if (!Matches(threshold, one)) continue;
    const auto count = static_cast<double>(one.count);
    calls += count;
    errors += static_cast<double>(one.errors);
    if (one.outcome == "hit" || one.outcome == "stale" ||
        one.outcome == "collapsed") {
      hits += count;
    } else {
      runs += count - static_cast<double>(one.unreached);
      if (one.outcome == "miss") misses += count;
    }
  }
  if (metric == "errors") return Fraction(errors, calls, threshold);
  if (metric == "hits") return Fraction(hits, hits + misses, threshold);
  if (calls == 0 || results.duration <= 0) return absl::nullopt;  // runs
  return threshold.aggregate == "count" ? runs : runs / results.duration;
}

bool Holds(double value, Threshold::Op op, double bound) {
  switch (op) {
    case Threshold::Op::kLess:
      return value < bound;
    case Threshold::Op::kLessEqual:
      return value <= bound;
    case Threshold::Op::kGreater:
      return value > bound;
    case Threshold::Op::kGreaterEqual:
      return value >= bound;
    case Threshold::Op::kEqual:
      return value == bound;
    case Threshold::Op::kUnequal:
      return value != bound;
  }
  return false;
}

}  // namespace

absl::StatusOr<Threshold> ParseThreshold(absl::string_view expression,
                                         const ThresholdNames& names) {
  Threshold threshold;
  threshold.expression = std::string(absl::StripAsciiWhitespace(expression));
  const absl::string_view all = threshold.expression;
  const size_t metric_end = all.find_first_of("{:<>=! ");
  threshold.metric = std::string(all.substr(0, metric_end));
  if (!absl::c_linear_search(Metrics(), threshold.metric)) {
    return Unknown(all, "metric", threshold.metric, Metrics());
  }
  absl::string_view rest = all.substr(threshold.metric.size());
  rest = absl::StripLeadingAsciiWhitespace(rest);
  if (absl::ConsumePrefix(&rest, "{")) {
    const size_t end = rest.find('}');
    if (end == absl::string_view::npos) return Wrong(all, "a } is missing");
    const auto status = ReadLabels(rest.substr(0, end), names, &threshold);
    if (!status.ok()) return status;
    rest = absl::StripLeadingAsciiWhitespace(rest.substr(end + 1));
  }
  const auto form = [&] {
    return Wrong(all,
                 "is not accepted; accepted: METRIC[{step=S,function=F,"
                 "outcome=O}]:AGG OP VALUE with OP one of <, <=, >, >=, ==, "
                 "!=, such as pipeline:p(95)<2s");
  };
  if (!absl::ConsumePrefix(&rest, ":")) return form();
  const size_t operator_at = rest.find_first_of("<>=!");
  if (operator_at == absl::string_view::npos) return form();
  auto status = ReadAggregate(
      absl::StripAsciiWhitespace(rest.substr(0, operator_at)), &threshold);
  if (!status.ok()) return status;
  rest = rest.substr(operator_at);
  const std::pair<absl::string_view, Threshold::Op> operators[] = {
      {"<=", Threshold::Op::kLessEqual}, {">=", Threshold::Op::kGreaterEqual},
      {"==", Threshold::Op::kEqual},     {"!=", Threshold::Op::kUnequal},
      {"<", Threshold::Op::kLess},       {">", Threshold::Op::kGreater}};
  bool found = false;
  for (const auto& [text, op] : operators) {
    if (!absl::ConsumePrefix(&rest, text)) continue;
    threshold.op = op;
    found = true;
    break;
  }
  if (!found) return form();
  status = ReadValue(absl::StripAsciiWhitespace(rest), &threshold);
  if (!status.ok()) return status;
  return threshold;
}

ThresholdResults Evaluate(const Threshold& threshold,
                          const LoadResults& results) {
  ThresholdResults evaluated;
  evaluated.expression = threshold.expression;
  evaluated.value = ValueOf(threshold, results);
  evaluated.ok = evaluated.value.has_value() &&
                 Holds(*evaluated.value, threshold.op, threshold.value);
  return evaluated;
}

bool MayAbort(const Threshold& threshold) {
  return threshold.metric != "hits" && threshold.metric != "ready" &&
         (threshold.op == Threshold::Op::kLess ||
          threshold.op == Threshold::Op::kLessEqual ||
          (threshold.op == Threshold::Op::kEqual && threshold.value == 0));
}

absl::optional<double> PercentileOf(
    const std::vector<std::pair<double, uint64_t>>& buckets, double percent) {
  uint64_t count = 0;
  for (const auto& bucket : buckets) count += bucket.second;
  if (count == 0) return absl::nullopt;
  const double wanted =
      std::max(1.0, std::ceil(percent / 100 * static_cast<double>(count)));
  uint64_t seen = 0;
  for (const auto& [end, times] : buckets) {
    seen += times;
    if (static_cast<double>(seen) >= wanted) return end;
  }
  return buckets.back().first;
}

}  // namespace fncache::runner::load
