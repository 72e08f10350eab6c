// SPDX-License-Identifier: Apache-2.0
#include "runner/load/command.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/file.h"
#include "common/file_limit.h"
#include "common/standard_streams.h"
#include "common/threads.h"
#include "common/utf8.h"
#include "common/version.h"
#include "runner/load/ci_reports.h"
#include "runner/load/compare.h"
#include "runner/load/daemons.h"
#include "runner/load/format.h"
#include "runner/load/generator.h"
#include "runner/load/measure.h"
#include "runner/load/options.h"
#include "runner/load/pipeline_load.h"
#include "runner/load/progress_line.h"
#include "runner/load/raw_load.h"
#include "runner/load/real_scheduler.h"
#include "runner/load/report_html.h"
#include "runner/load/results.h"
#include "runner/load/summary.h"
#include "runner/load/threshold.h"
#include "runner/load/verdict.h"
#include "runner/render/context_steps.h"
#include "runner/render/inputs.h"

namespace fncache::runner::load {
namespace {

constexpr int kCannotRun = 1;
constexpr int kBadUsage = 2;
constexpr int kFailed = 99;
constexpr int kInterrupted = 130;
constexpr size_t kMaxFile = 256u << 20;
// GitHub Actions shows what is appended to the file that it names.
constexpr char kStepSummary[] = "GITHUB_STEP_SUMMARY";

std::atomic<int> interrupts{0};

void OnInterrupt(int /*signal*/) {
  // The second one ends the process, whatever it waits for.
  if (++interrupts > 1) _exit(kInterrupted);
}

void HandleSignals() {
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
  // The trace drops what a limit of file sizes (ulimit -f) does not take.
  sigaction(SIGXFSZ, &action, nullptr);
}

std::string StepSummaryFile() {
  const char* const path = std::getenv(kStepSummary);
  return path == nullptr ? "" : path;
}

absl::Status AppendToFile(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "ae");
  bool written = file != nullptr;
  if (file != nullptr) {
    written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    written = std::fclose(file) == 0 && written;
  }
  if (written) return absl::OkStatus();
  return absl::UnknownError(
      absl::StrCat("cannot append to ", path, " of $", kStepSummary));
}

int Fail(int code, absl::string_view why) {
  Say(absl::StrCat("fncache load: ", Printable(why), "\n"));
  return code;
}

absl::StatusOr<LoadResults> ReadResults(const std::string& path) {
  const auto text = ReadSmallFile(path, kMaxFile);
  if (!text.ok()) return text.status();
  auto results = ResultsFromJson(*text);
  if (!results.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", results.status().message()));
  }
  return results;
}

std::vector<ThresholdResults> EvaluateAll(
    const std::vector<Threshold>& thresholds, const LoadResults& results) {
  std::vector<ThresholdResults> all;
  for (const Threshold& threshold : thresholds) {
    all.push_back(Evaluate(threshold, results));
  }
  return all;
}

bool AllHold(const std::vector<ThresholdResults>& thresholds) {
  return std::all_of(thresholds.begin(), thresholds.end(),
                     [](const ThresholdResults& one) { return one.ok; });
}

class Session {
 public:
  explicit Session(LoadOptions options) : options_(std::move(options)) {}

  int Run();

 private:
  absl::Status Load();
  absl::Status CheckFunctions() const;
  absl::Status CheckUpgrades() const;
  absl::Status ReadThresholds();
  absl::StatusOr<LoadResults> Once(const LoadOptions& options,
                                   const std::vector<Threshold>& limits);
  absl::Status FindMax(LoadResults* last);
  int Report(LoadResults results);
  absl::Status WriteFiles(const LoadResults& results,
                          const std::vector<std::string>& worse) const;
  int ExitCode(const LoadResults& results, bool worse) const;
  // Where nothing was measured, since composites could not settle.
  int ReportUnsettled(const LoadResults& results) const;

  LoadOptions options_;
  render::RenderInputs inputs_;
  std::vector<std::string> messages_;
  std::vector<Threshold> thresholds_;
  std::vector<Threshold> wanted_;  // --find-max
  absl::optional<LoadResults> baseline_;
  std::string found_;
};

absl::Status Session::Load() {
  for (const std::string& path :
       {options_.json, options_.html, options_.junit, options_.csv,
        options_.summary_markdown, StepSummaryFile()}) {
    if (path.empty() || path == "-") continue;
    absl::Status status = CheckWritable(path);
    if (!status.ok()) return status;
  }
  for (const std::string& path : options_.requests) {
    auto message = ReadSmallFile(path, 64u << 20);
    if (!message.ok()) return message.status();
    messages_.push_back(*std::move(message));
  }
  if (options_.requests.empty()) {
    auto inputs = render::LoadRenderInputs(options_.render);
    if (!inputs.ok()) return inputs.status();
    inputs_ = *std::move(inputs);
    for (const auto& composite : inputs_.composites) {
      if (!composite.status.ok()) {
        return absl::Status(
            composite.status.code(),
            absl::StrCat(composite.where, ": ", composite.status.message()));
      }
    }
    if (inputs_.composites.empty()) {
      return absl::InvalidArgumentError("there is no XR");
    }
  }
  if (!options_.baseline.empty()) {
    auto baseline = ReadResults(options_.baseline);
    if (!baseline.ok()) return baseline.status();
    baseline_ = *std::move(baseline);
  }
  return absl::OkStatus();
}

// A pipeline with a function that is nowhere would fail each time.
absl::Status Session::CheckFunctions() const {
  std::set<std::string> known = {render::kContextFunction};
  for (const client::FunctionTarget& function : inputs_.functions) {
    known.insert(function.name);
  }
  for (const engine::PipelineStep& step : inputs_.composition->steps) {
    if (known.count(step.function) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "step ", step.name, " calls ", step.function,
        ", of which nothing says where it is: give --function ", step.function,
        "=HOST:PORT, or a FUNCTIONS file that lists it"));
  }
  return absl::OkStatus();
}

// A function that no step calls cannot be upgraded.
absl::Status Session::CheckUpgrades() const {
  std::set<std::string> called;
  for (const engine::PipelineStep& step : inputs_.composition->steps) {
    called.insert(step.function);
  }
  for (const FunctionUpgrade& upgrade : options_.upgrades) {
    if (called.count(upgrade.function) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        upgrade.location, ": function: \"", upgrade.function,
        "\" is not accepted; accepted: ", absl::StrJoin(called, ", ")));
  }
  return absl::OkStatus();
}

absl::Status Session::ReadThresholds() {
  ThresholdNames names;
  if (options_.requests.empty()) {
    std::set<std::string> functions;
    for (const engine::PipelineStep& step : inputs_.composition->steps) {
      names.steps.push_back(step.name);
      functions.insert(step.function);
    }
    names.functions.assign(functions.begin(), functions.end());
  } else {
    names.steps = {"request"};
    names.functions = {options_.target};
  }
  const auto read = [&](const char* flag,
                        const std::vector<std::string>& expressions,
                        std::vector<Threshold>* thresholds) {
    for (const std::string& expression : expressions) {
      auto threshold = ParseThreshold(expression, names);
      if (!threshold.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat(flag, ": ", threshold.status().message()));
      }
      thresholds->push_back(*std::move(threshold));
    }
    return absl::OkStatus();
  };
  absl::Status status = read("--threshold", options_.thresholds, &thresholds_);
  status.Update(read("--find-max", options_.find_max, &wanted_));
  return status;
}

absl::StatusOr<LoadResults> Session::Once(
    const LoadOptions& options, const std::vector<Threshold>& limits) {
  Measure measure;
  LoadResults results;
  results.tool_version = Version();
  results.started =
      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
  results.settings = options.given;
  results.machine = Machine();
  ProgressLine progress(options.progress);
  Daemons daemons(options.admin_urls);
  absl::Status scraped;
  bool aborted = false;
  int64_t judged = MonotonicNanos();
  const auto stop = [&](const char* phase, uint64_t ready,
                        uint64_t composites) {
    progress.Tell(measure, phase, ready, composites);
    if (interrupts > 0 || !scraped.ok() || aborted) return true;
    const int64_t now = MonotonicNanos();
    if (options.abort_on_fail && measure.measuring() &&
        now - judged >= 1'000'000'000) {
      judged = now;
      LoadResults so_far;
      measure.Fill(&so_far);
      for (const Threshold& threshold : limits) {
        const ThresholdResults evaluated = Evaluate(threshold, so_far);
        if (MayAbort(threshold) && evaluated.value.has_value() &&
            !evaluated.ok) {
          aborted = true;
        }
      }
    }
    return aborted;
  };
  const auto on_start = [&] {
    judged = MonotonicNanos();
    if (!options.admin_urls.empty()) scraped = daemons.Before();
  };
  absl::Status status;
  if (options.requests.empty()) {
    PipelineLoadHooks hooks;
    hooks.stop = stop;
    hooks.on_start = on_start;
    hooks.warn = [&progress](const std::string& text) { progress.Warn(text); };
    status = RunPipelineLoad(options, inputs_, hooks, &measure, &results);
  } else {
    RawOptions raw;
    raw.targets = {options.target};
    raw.messages = messages_;
    raw.metadata = options.metadata;
    raw.tls_dir = options.render.tls_dir;
    raw.connections = options.connections;
    absl::optional<Schedule> schedule;
    if (options.loop == LoadOptions::Loop::kOpen) {
      if (options.stages.empty()) {
        schedule.emplace(options.rate);
      } else {
        schedule.emplace(options.stages);
      }
      raw.schedule = &*schedule;
    } else {
      raw.concurrency = options.concurrency;
    }
    raw.total = options.total;
    raw.warmup = options.warmup;
    raw.duration = options.duration;
    raw.max_in_flight = options.max_in_flight;
    raw.stop = [&] { return stop("measure", 0, 0); };
    raw.on_start = on_start;
    status = RunRawLoad(raw, &measure);
  }
  progress.End();
  status.Update(scraped);
  const bool unsettled = !results.settle.failure.empty();
  if (!status.ok() && interrupts == 0 && !unsettled) return status;
  measure.Fill(&results);
  results.interrupted = interrupts > 0;
  if (unsettled) {
    // There are no data, so that no count of errors is low either.
    for (const Threshold& threshold : limits) {
      results.thresholds.push_back(
          {threshold.expression, absl::nullopt, /*ok=*/false});
    }
    return results;
  }
  // Calls that were under way at either end of a closed loop or a warm-up.
  const bool exact = options.warmup == absl::ZeroDuration() &&
                     interrupts == 0 &&
                     (options.requests.empty() || options.total > 0 ||
                      options.loop == LoadOptions::Loop::kOpen);
  double most = 0;
  for (const TimelinePoint& point : results.timeline) {
    most = std::max(most, point.in_flight);
  }
  const auto under_way = static_cast<uint64_t>(most) +
                         static_cast<uint64_t>(options.concurrency) + 64;
  status = daemons.After(exact ? 0 : 2 * under_way, &results);
  if (!status.ok()) return status;
  JudgeGenerator(options, &results);
  FillVerdict(&results);
  results.thresholds = EvaluateAll(limits, results);
  return results;
}

// Doubles until it fails, then halves the gap; ends within a tenth.
absl::Status Session::FindMax(LoadResults* last) {
  const bool by_rate = options_.loop == LoadOptions::Loop::kOpen;
  LoadOptions options = options_;
  const auto trial = [&](double size) -> absl::StatusOr<bool> {
    if (by_rate) {
      options.rate = size;
      options.given["--rate"] = absl::StrCat(size);
    } else {
      options.model.composites = static_cast<int>(size);
      options.given["--composites"] = absl::StrCat(size);
    }
    auto results = Once(options, wanted_);
    if (!results.ok()) return results.status();
    if (!results->settle.failure.empty()) {
      *last = *std::move(results);
      return absl::UnavailableError(last->settle.failure);
    }
    const bool holds = AllHold(results->thresholds);
    std::string values;
    for (const ThresholdResults& one : results->thresholds) {
      absl::StrAppend(&values, "  ", one.expression, " ",
                      FormatValue(one.expression, one.value));
    }
    const bool interrupted = results->interrupted;
    Say(absl::StrCat("fncache load: ", by_rate ? "rate " : "composites ", size,
                     interrupted ? " was interrupted"
                     : holds     ? " holds"
                                 : " fails",
                     Printable(values), "\n"));
    if (holds || last->started.empty()) *last = *std::move(results);
    if (interrupted) last->interrupted = true;
    return holds;
  };
  double low = 0;
  const auto found = [&](absl::string_view what) {
    return absl::StrCat(what, by_rate ? "--rate " : "--composites ", low, "\n");
  };
  const auto cut_short = [&] {
    found_ = low > 0 ? found("interrupted; the most that held until then: ")
                     : "interrupted before anything held\n";
    return absl::OkStatus();
  };
  double high = by_rate ? options_.rate : options_.model.composites;
  const double most = 1e6;
  for (;;) {
    const auto holds = trial(high);
    if (!holds.ok()) return holds.status();
    if (interrupts > 0) return cut_short();
    if (!*holds) break;
    low = high;
    if (high >= most) break;
    high = std::min(most, high * 2);
  }
  const double first = by_rate ? options_.rate : options_.model.composites;
  while (high - low > (by_rate ? std::max(high / 10, first / 16)
                               : std::max(1.0, std::floor(high / 10)))) {
    double middle = (low + high) / 2;
    if (!by_rate) middle = std::floor(middle);
    if (middle <= low || middle >= high) break;
    const auto holds = trial(middle);
    if (!holds.ok()) return holds.status();
    if (interrupts > 0) return cut_short();
    (*holds ? low : high) = middle;
  }
  found_ = low > 0 ? found("the most that holds: ")
                   : "nothing that was tried holds\n";
  return absl::OkStatus();
}

absl::Status Session::WriteFiles(const LoadResults& results,
                                 const std::vector<std::string>& worse) const {
  const std::vector<Check> checks =
      Checks(results, baseline_.has_value() ? &worse : nullptr);
  const LoadResults* const before =
      baseline_.has_value() ? &*baseline_ : nullptr;
  absl::Status status;
  const auto write = [&status](const std::string& path, const auto& text) {
    if (!path.empty()) status.Update(WriteTextFile(path, text()));
  };
  write(options_.json == "-" ? "" : options_.json,
        [&] { return ResultsToJson(results); });
  write(options_.html, [&] {
    return before == nullptr ? ReportHtml(results, nullptr)
                             : ReportHtml(*before, &results);
  });
  write(options_.junit, [&] { return JunitText(results, checks); });
  write(options_.csv, [&] { return CsvText(results); });
  write(options_.summary_markdown,
        [&] { return MarkdownText(results, checks); });
  if (const std::string path = StepSummaryFile(); !path.empty()) {
    status.Update(AppendToFile(path, MarkdownText(results, checks)));
  }
  return status;
}

int Session::ExitCode(const LoadResults& results, bool worse) const {
  if (results.interrupted) return kInterrupted;
  if (!results.unreached.empty()) {
    return Fail(kCannotRun, UnreachedSentence(results.unreached[0]));
  }
  const bool disagrees = results.daemon.has_value() && !results.daemon->agrees;
  if (disagrees) {
    Fail(kCannotRun, absl::StrCat("--admin-url: the daemon counted otherwise: ",
                                  results.daemon->disagreement));
  }
  if (worse || !AllHold(results.thresholds)) return kFailed;
  if (!results.thresholds.empty() && results.settle.never > 0) return kFailed;
  if (EveryPipelineFailed(results)) {
    return Fail(kCannotRun, "every pipeline failed");
  }
  return disagrees ? kCannotRun : 0;
}

int Session::ReportUnsettled(const LoadResults& results) const {
  absl::Status status;
  if (options_.json == "-") status.Update(WriteStdout(ResultsToJson(results)));
  status.Update(WriteFiles(results, {}));
  const int code = Fail(kCannotRun, results.settle.failure);
  if (!status.ok()) return Fail(kCannotRun, status.message());
  if (results.interrupted) return kInterrupted;
  return results.unreached.empty() && !AllHold(results.thresholds) ? kFailed
                                                                   : code;
}

int Session::Report(LoadResults results) {
  std::string text = SummaryText(results);
  std::vector<std::string> worse;
  if (baseline_.has_value()) {
    const std::vector<Change> changes = Compare(*baseline_, results);
    absl::StrAppend(&text, "\nagainst ", Printable(options_.baseline), ":\n",
                    CompareText(changes));
    for (const Change& change : Regressions(changes, options_.max_change)) {
      worse.push_back(
          absl::StrCat(Printable(change.name), " ", FormatChange(change)));
      absl::StrAppend(&text, "  WORSE  ", worse.back(), "\n");
    }
  }
  if (options_.percentiles) {
    absl::StrAppend(&text, "\n", PercentileText(results));
  }
  absl::StrAppend(&text, found_);
  absl::Status status;
  const bool json_to_stdout = options_.json == "-";
  if (json_to_stdout) {
    status.Update(WriteStdout(ResultsToJson(results)));
    Say(text);
  } else {
    status.Update(WriteStdout(text));
  }
  status.Update(WriteFiles(results, worse));
  if (!status.ok()) return Fail(kCannotRun, status.message());
  return ExitCode(results, !worse.empty());
}

int Session::Run() {
  absl::Status status = Load();
  if (!status.ok()) return Fail(kCannotRun, status.message());
  status = ReadThresholds();
  if (options_.requests.empty()) {
    status.Update(CheckFunctions());
    status.Update(CheckUpgrades());
  }
  if (!status.ok()) return Fail(kBadUsage, status.message());
  if (wanted_.empty()) {
    auto results = Once(options_, thresholds_);
    if (!results.ok()) return Fail(kCannotRun, results.status().message());
    if (!results->settle.failure.empty()) return ReportUnsettled(*results);
    return Report(*std::move(results));
  }
  LoadResults last;
  status = FindMax(&last);
  if (!last.settle.failure.empty()) return ReportUnsettled(last);
  if (!status.ok()) return Fail(kCannotRun, status.message());
  const std::vector<ThresholdResults> more = EvaluateAll(thresholds_, last);
  last.thresholds.insert(last.thresholds.end(), more.begin(), more.end());
  return Report(std::move(last));
}

int ReportMain(int argc, char** argv) {
  const auto options = ParseReportOptions(argc, argv);
  if (!options.ok()) return Fail(kBadUsage, options.status().message());
  if (options->help) return PrintResult("fncache load", LoadHelp());
  RaiseFileLimit();
  std::vector<LoadResults> runs;
  for (const std::string& path : options->files) {
    auto results = ReadResults(path);
    if (!results.ok()) return Fail(kCannotRun, results.status().message());
    runs.push_back(*std::move(results));
  }
  std::string text;
  for (const LoadResults& results : runs) {
    absl::StrAppend(&text, results.started, "\n", SummaryText(results), "\n");
    if (options->percentiles) absl::StrAppend(&text, PercentileText(results));
  }
  const LoadResults* const other = runs.size() > 1 ? &runs[1] : nullptr;
  if (other != nullptr) {
    absl::StrAppend(&text, CompareText(Compare(runs[0], *other)));
  }
  if (!options->html.empty()) {
    const absl::Status written =
        WriteTextFile(options->html, ReportHtml(runs[0], other));
    if (!written.ok()) return Fail(kCannotRun, written.message());
  }
  return PrintResult("fncache load", text);
}

}  // namespace

int LoadMain(int argc, char** argv) {
  if (argc > 1 && absl::string_view(argv[1]) == "report") {
    return ReportMain(argc - 1, argv + 1);
  }
  auto options = ParseLoadOptions(argc, argv);
  if (!options.ok()) {
    return Fail(
        absl::IsInvalidArgument(options.status()) ? kBadUsage : kCannotRun,
        options.status().message());
  }
  if (options->help) return PrintResult("fncache load", LoadHelp());
  constexpr int kOwnThreads = 6;
  const absl::Status threads = CheckThreads(
      GrpcThreads() + kOwnThreads + 2 * StartThreads() + options->connections);
  if (!threads.ok()) return Fail(kCannotRun, threads.message());
  HandleSignals();
  return Session(*std::move(options)).Run();
}

}  // namespace fncache::runner::load
