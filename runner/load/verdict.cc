// SPDX-License-Identifier: Apache-2.0
#include "runner/load/verdict.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runner/load/format.h"

namespace fncache::runner::load {
namespace {

// `2 composites`, `1 composite`.
std::string Count(uint64_t number, absl::string_view what) {
  return absl::StrCat(number, " ", what, number == 1 ? "" : "s");
}

std::string NeverText(uint64_t never) {
  return absl::StrCat(Count(never, "composite"),
                      never == 1 ? " never settles" : " never settle");
}

std::string NeedText(const LoadResults& results,
                     const VerdictResults& verdict) {
  const std::string composites = Count(results.composites.count, "composite");
  const bool one = results.composites.count == 1;
  if (verdict.measured.has_value()) {
    return absl::StrCat(
        composites, " ran ", FormatRate(*verdict.measured),
        " in the measured time; there is no rate that they need, because ",
        NeverText(results.settle.never));
  }
  std::string text;
  if (verdict.longest <= 0) {
    text = absl::StrCat(composites, one ? " waits" : " wait",
                        " for no time: no answer has a TTL, and "
                        "--resync is 0");
  } else {
    std::string every = FormatSeconds(verdict.shortest);
    if (verdict.longest > verdict.shortest) {
      absl::StrAppend(&every, " to ", FormatSeconds(verdict.longest));
    }
    text = absl::StrCat(composites, one ? " that comes" : " that come",
                        " back every ", every, one ? " needs " : " need ",
                        FormatRate(verdict.needed));
  }
  if (verdict.churn > 0) {
    absl::StrAppend(&text, ", and for --churn ", FormatRate(verdict.churn));
  }
  return text;
}

std::string ReadyText(const LoadResults& results,
                      const VerdictResults& verdict) {
  if (verdict.created_ready > 0) {
    return absl::StrCat("a new composite is ready after ",
                        FormatSeconds(verdict.ready_p50), " (p50), ",
                        FormatSeconds(verdict.ready_p95), " (p95)");
  }
  if (verdict.created > 0) {
    return absl::StrCat(
        "no ", verdict.created < results.composites.count ? "new " : "",
        "composite became ready within ", FormatSeconds(results.duration));
  }
  return "how soon a new composite is ready was not measured: --start create "
         "does that";
}

std::string BusyText(const VerdictResults& verdict) {
  const auto workers = static_cast<double>(verdict.workers);
  const double busy = *verdict.busy;
  if (busy > 1) {
    return absl::StrFormat("that is more than %d workers do: %.1f are needed",
                           verdict.workers, busy * workers);
  }
  return absl::StrFormat("that keeps %.1f of %d workers busy (%s)",
                         busy * workers, verdict.workers, FormatPercent(busy));
}

}  // namespace

void FillVerdict(LoadResults* results) {
  if (!results->verdict.has_value()) return;
  VerdictResults& verdict = *results->verdict;
  const bool none_ended = results->pipelines.count == 0 && verdict.created > 0;
  if (EveryPipelineFailed(*results) || none_ended) {
    results->verdict.reset();
    return;
  }
  if (verdict.measured.has_value()) {
    verdict.measured = results->pipelines.rate;
  }
  if (results->pipelines.count == 0 || verdict.workers == 0) return;
  verdict.busy = verdict.measured.value_or(verdict.needed + verdict.churn) *
                 results->pipelines.service_time.mean /
                 static_cast<double>(verdict.workers);
}

std::vector<std::string> VerdictSentences(const LoadResults& results) {
  if (!results.verdict.has_value()) {
    // One message again and again has no composites.
    if (results.composites.count == 0) return {};
    if (results.pipelines.errors == results.pipelines.count) {
      return {"no verdict: no pipeline succeeded"};
    }
    if (results.settle.never == 0) return {};
    return {absl::StrCat("no verdict: ", NeverText(results.settle.never))};
  }
  const VerdictResults& verdict = *results.verdict;
  std::vector<std::string> sentences = {NeedText(results, verdict)};
  if (verdict.busy.has_value()) sentences.push_back(BusyText(verdict));
  sentences.push_back(ReadyText(results, verdict));
  return sentences;
}

std::vector<std::string> Warnings(const LoadResults& results) {
  std::vector<std::string> warnings;
  for (const UnreachedResults& one : results.unreached) {
    warnings.push_back(UnreachedSentence(one));
  }
  const auto& settle = results.settle;
  if (!settle.failure.empty()) {
    warnings.push_back(
        absl::StrCat("composites could not settle, so nothing was measured: ",
                     settle.failure));
  }
  if (settle.never > 0) {
    std::string text =
        absl::StrCat(NeverText(settle.never),
                     ", because each answer differs from the one before");
    if (!settle.changing.empty()) {
      absl::StrAppend(&text, ": ", absl::StrJoin(settle.changing, "; "));
    }
    warnings.push_back(std::move(text));
  }
  const auto& composites = results.composites;
  if (composites.lost_ready > 0) {
    warnings.push_back(absl::StrCat(
        composites.lost_ready, " of ", settle.ready,
        " that were ready after settling are no longer ready: failures, "
        "writes to them, or wrong answers"));
  }
  if (composites.unmarked > 0) {
    warnings.push_back(absl::StrCat(
        Count(composites.unmarked, "composite"),
        " cannot become ready: no step says which resources are ready, as a "
        "step of function-auto-ready does"));
  }
  if (results.generator.saturated) {
    warnings.push_back(
        absl::StrCat("the load generator itself was the bottleneck: ",
                     results.generator.why));
  }
  return warnings;
}

std::vector<Check> Checks(const LoadResults& results,
                          const std::vector<std::string>* worse) {
  std::vector<Check> checks;
  const auto& pipelines = results.pipelines;
  if (results.unreached.empty()) {
    checks.push_back({"functions are reached", true, ""});
  }
  for (const UnreachedResults& one : results.unreached) {
    checks.push_back({absl::StrCat("function ", one.function, " is reached"),
                      false, absl::StrCat(one.target, ": ", one.why)});
  }
  const bool measured = results.settle.failure.empty();
  if (measured) {
    checks.push_back(
        {"pipelines succeed", !EveryPipelineFailed(results),
         absl::StrCat(pipelines.errors, " of ", pipelines.count, " failed")});
  } else {
    checks.push_back({"composites settle", false, results.settle.failure});
  }
  if (measured && (results.settle.pipelines > 0 || results.settle.never > 0)) {
    // Without a threshold it is a warning.
    checks.push_back(
        {"composites settle",
         results.settle.never == 0 || results.thresholds.empty(),
         absl::StrCat(results.settle.never, " never settle",
                      results.settle.changing.empty() ? "" : ": ",
                      absl::StrJoin(results.settle.changing, "; "))});
  }
  for (const ThresholdResults& one : results.thresholds) {
    checks.push_back(
        {one.expression, one.ok, FormatValue(one.expression, one.value)});
  }
  if (results.daemon.has_value()) {
    checks.push_back({"the daemon counted the same", results.daemon->agrees,
                      results.daemon->disagreement});
  }
  if (worse != nullptr && measured) {
    checks.push_back({"no worse than the baseline", worse->empty(),
                      absl::StrJoin(*worse, "; ")});
  }
  return checks;
}

std::string UnreachedSentence(const UnreachedResults& one) {
  return absl::StrCat(one.function, " is not reached at ", one.target, ": ",
                      one.why);
}

bool EveryPipelineFailed(const LoadResults& results) {
  return results.pipelines.count > 0 &&
         results.pipelines.errors == results.pipelines.count;
}

}  // namespace fncache::runner::load
