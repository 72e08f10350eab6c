// SPDX-License-Identifier: Apache-2.0
#include "runner/load/pipeline_load.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/clock.h"
#include "insight/trace/writer.h"
#include "runner/client/function_client.h"
#include "runner/load/answer_workers.h"
#include "runner/load/callers.h"
#include "runner/load/model/simulation.h"
#include "runner/load/pipeline_loop.h"
#include "runner/load/pipeline_watcher.h"
#include "runner/load/real_scheduler.h"
#include "runner/load/verdict.h"
#include "runner/render/context_steps.h"

namespace fncache::runner::load {
namespace {

namespace trace = insight::trace;

std::vector<engine::EngineInput> Templates(const render::RenderInputs& inputs) {
  std::vector<engine::EngineInput> all;
  for (const render::CompositeToRender& composite : inputs.composites) {
    all.push_back(render::InputOf(inputs, composite));
  }
  return all;
}

// Why no composite could settle. `given_up`: the time after which settling was
// cancelled; infinite if it ended before.
std::string WhyUnsettled(const PipelineWatcher::Failure& failure,
                         const std::vector<client::FunctionTarget>& targets,
                         absl::Duration given_up, const absl::Status& status) {
  std::string text = "no pipeline succeeded";
  if (given_up != absl::InfiniteDuration()) {
    absl::StrAppend(&text, " within ", absl::FormatDuration(given_up));
  }
  const auto target = std::find_if(
      targets.begin(), targets.end(),
      [&](const auto& one) { return one.name == failure.function; });
  if (failure.function.empty() || target == targets.end()) {
    return absl::StrCat(text, ": ",
                        failure.why.empty() ? status.message() : failure.why);
  }
  return absl::StrCat(text, ": ", failure.function, " at ", target->target,
                      ": ", failure.why.empty() ? "no answer" : failure.why);
}

// Lets all composites settle, and fills `results`.
absl::Status Settle(model::Simulation* simulation,
                    const PipelineLoadHooks& hooks, Reach* reach,
                    const PipelineWatcher& watcher,
                    const std::vector<client::FunctionTarget>& targets,
                    absl::Duration patience,
                    const std::function<void()>& abandon,
                    LoadResults* all_results) {
  auto* const results = &all_results->settle;
  const int64_t give_up = MonotonicNanos() + absl::ToInt64Nanoseconds(patience);
  bool stopped = false;
  bool given_up = false;
  const auto settled = simulation->Settle([&] {
    const model::Counters counters = simulation->counters();
    all_results->unreached = reach->Look();
    // A function that is slow has neither failed nor succeeded yet.
    given_up = counters.settled_ok == 0 && !watcher.failure().why.empty() &&
               MonotonicNanos() >= give_up;
    stopped = hooks.stop("settle", counters.ready, counters.composites);
    if (!stopped && !given_up && all_results->unreached.empty()) return false;
    abandon();
    return true;
  });
  const std::vector<UnreachedResults>& unreached = all_results->unreached;
  if (!unreached.empty()) {
    results->failure = UnreachedSentence(unreached[0]);
    return absl::UnavailableError(results->failure);
  }
  if (!settled.ok()) {
    if (stopped) return settled.status();
    results->failure = WhyUnsettled(
        watcher.failure(), targets,
        given_up ? patience : absl::InfiniteDuration(), settled.status());
    return absl::UnavailableError(results->failure);
  }
  results->pipelines = settled->pipelines;
  results->calls = settled->calls;
  results->seconds = absl::ToDoubleSeconds(settled->took);
  results->ready = settled->ready;
  results->never = settled->never;
  results->changing = settled->changing;
  return absl::OkStatus();
}

}  // namespace

absl::Status RunPipelineLoad(const LoadOptions& options,
                             const render::RenderInputs& inputs,
                             const PipelineLoadHooks& hooks, Measure* measure,
                             LoadResults* results) {
  std::unique_ptr<trace::TraceWriter> writer;
  if (!options.trace_dir.empty()) {
    trace::TraceOptions tracing;
    tracing.dir = options.trace_dir;
    tracing.level = options.trace_level;
    tracing.writer = "load";
    tracing.settings = options.given;
    auto made = trace::TraceWriter::Create(std::move(tracing));
    if (!made.ok()) return made.status();
    writer = *std::move(made);
  }
  // No function's name has a blank in it.
  const auto name_of = [](const FunctionUpgrade& upgrade) {
    return absl::StrCat(upgrade.function, " at ", upgrade.location);
  };
  std::vector<client::FunctionTarget> targets = inputs.functions;
  for (const FunctionUpgrade& upgrade : options.upgrades) {
    targets.push_back({name_of(upgrade), upgrade.target});
  }
  const model::Simulation* simulating = nullptr;
  PipelineWatcher watcher(measure, &simulating, writer.get(), options.patience);
  AnswerWorkers workers(StartThreads(),
                        [measure](int64_t wait) { measure->AddWait(wait); });
  Callers functions;
  for (int i = 0; i < options.connections; ++i) {
    client::FunctionClientOptions connection;
    connection.functions = targets;
    connection.tls_dir = options.render.tls_dir;
    connection.threads = 1;
    connection.begin_thread = &WakeOnTime;
    connection.run = [&workers](std::function<void()> work) {
      workers.Run(std::move(work));
    };
    connection.metadata = [&watcher] {
      return std::vector<std::pair<std::string, std::string>>{
          {"fncache-phase", PhaseName(watcher.phase())}};
    };
    auto made = client::FunctionClient::Create(std::move(connection));
    if (!made.ok()) return made.status();
    functions.Add(*std::move(made));
  }
  const auto abandon = [&watcher, &functions] {
    watcher.Discard();
    functions.Cancel();
  };
  const auto cancel = [&watcher, &functions] {
    watcher.Cancelled();
    functions.Cancel();
  };
  render::ContextSteps caller(&functions, inputs.context);
  SystemClock clock;
  const bool by_model = options.loop == LoadOptions::Loop::kModel;
  RealScheduler scheduler(&clock, by_model ? StartThreads() : 1,
                          [&](int64_t lag) {
                            if (by_model) measure->AddLag(lag);
                          });
  model::ModelOptions modelled = options.model;
  for (const FunctionUpgrade& upgrade : options.upgrades) {
    modelled.events[upgrade.event].action = [&functions, &name_of, &upgrade] {
      functions.Upgrade(upgrade.function, name_of(upgrade));
    };
  }
  absl::optional<model::Simulation> made;
  const auto simulate = [&]() -> model::Simulation& {
    simulating = nullptr;
    made.emplace(modelled, Templates(inputs), &caller, &scheduler, &clock,
                 &watcher);
    simulating = &*made;
    return *made;
  };
  simulate();
  Reach reach(&functions, hooks.warn);
  if (!by_model || modelled.start != model::StartFrom::kCreate) {
    const absl::Status settled = Settle(&*made, hooks, &reach, watcher, targets,
                                        options.patience, abandon, results);
    if (!settled.ok()) return settled;
    // There is no steady state that could be measured.
    if (by_model && results->settle.never > 0) {
      modelled.start = model::StartFrom::kCreate;
      simulate();
      if (hooks.warn != nullptr) {
        hooks.warn("composites never settle: measured as with --start create");
      }
    }
  }
  model::Simulation& simulation = *made;
  const model::Counters before = simulation.counters();
  PipelineLoop run(options, hooks, &simulation, &watcher, &clock, measure,
                   &reach, abandon, cancel);
  switch (options.loop) {
    case LoadOptions::Loop::kModel:
      run.ByModel();
      break;
    case LoadOptions::Loop::kOpen:
      run.BySchedule();
      break;
    case LoadOptions::Loop::kClosed:
      run.ByConcurrency();
      break;
  }
  measure->Stop(MonotonicNanos());
  const model::Counters after = simulation.counters();
  auto& composites = results->composites;
  composites.count = after.composites;
  composites.ready = after.ready;
  composites.requeues = after.requeues - before.requeues;
  composites.breaker_openings =
      after.breaker_openings - before.breaker_openings;
  composites.events_dropped = after.events_dropped - before.events_dropped;
  composites.lost_ready = after.lost_ready;
  composites.unmarked = after.unmarked;
  composites.deleted = after.deleted;
  results->unreached = run.unreached();
  if (results->settle.never == 0) {
    model::Restless restless = simulation.restless();
    results->settle.never = restless.composites;
    results->settle.changing = std::move(restless.changing);
  }
  // At a given rate, composites that never settle leave the demand unknown.
  if (results->settle.never > 0 && !by_model) {
    return writer == nullptr ? absl::OkStatus() : writer->Flush();
  }
  const model::Demand demand = simulation.demand();
  VerdictResults& verdict = results->verdict.emplace();
  verdict.shortest = absl::ToDoubleSeconds(demand.shortest);
  verdict.longest = absl::ToDoubleSeconds(demand.longest);
  verdict.needed = demand.pipelines;
  verdict.churn = demand.churn;
  if (results->settle.never > 0) verdict.measured.emplace(0);
  verdict.created = after.composites - before.composites;
  verdict.workers = static_cast<uint64_t>(options.model.workers);
  const LatencySummary ready = Summarize(watcher.ready());
  verdict.created_ready = watcher.ready().count();
  verdict.ready_p50 = ready.p50;
  verdict.ready_p95 = ready.p95;
  if (writer != nullptr) return writer->Flush();
  return absl::OkStatus();
}

}  // namespace fncache::runner::load
