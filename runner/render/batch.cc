// SPDX-License-Identifier: Apache-2.0
#include "runner/render/batch.h"

#include <memory>
#include <utility>

#include "common/mutex.h"
#include "runner/render/context_steps.h"
#include "runner/render/trace.h"

namespace fncache::runner::render {
namespace {

// One render, until it is done: its caller of the functions, and the reports of
// its calls.
struct Job : public engine::PipelineObserver {
  Job(client::FunctionCaller* functions, google::protobuf::Struct context)
      : caller(functions, std::move(context)) {}

  void OnCall(const engine::CallReport& report) override {
    if (!report.result.status.ok()) {
      failed_call =
          FailedCall{std::string(report.step), std::string(report.function),
                     report.result.status};
    }
    if (trace != nullptr) trace->OnCall(report);
  }

  ContextSteps caller;
  std::unique_ptr<RenderTrace> trace;  // may be null
  absl::Time deadline;
  absl::optional<FailedCall> failed_call;
};

// Counts how many run, and keeps what came of those that ended.
class Results {
 public:
  Results(std::vector<Rendered>* into, int jobs) : into_(into), jobs_(jobs) {}

  void Put(size_t index, Rendered rendered) {
    MutexLock lock(&mutex_);
    failed_ += rendered.outcome.status.ok() ? 0 : 1;
    (*into_)[index] = std::move(rendered);
    --running_;
    ++done_;
    changed_.Signal();
  }

  // Blocks until another may start.
  void Start() {
    MutexLock lock(&mutex_);
    while (running_ >= jobs_) changed_.Wait(&mutex_);
    ++running_;
  }

  // Blocks until more than `known` are done or none runs; how many are.
  int WaitForMore(int known, int* failed) {
    MutexLock lock(&mutex_);
    while (done_ <= known && running_ > 0) changed_.Wait(&mutex_);
    *failed = failed_;
    return done_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<Rendered>* const into_ ABSL_GUARDED_BY(mutex_);
  const int jobs_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  int done_ ABSL_GUARDED_BY(mutex_) = 0;
  int failed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::vector<Rendered> RenderAll(const RenderInputs& inputs,
                                const BatchOptions& options,
                                client::FunctionCaller* functions,
                                Clock* clock) {
  const int count = static_cast<int>(inputs.composites.size());
  std::vector<Rendered> all(count);
  // Shared, since the last `done` may still be in Put when all are there.
  const auto results = std::make_shared<Results>(&all, options.jobs);
  // The step that reads the context for -c is not the Composition's.
  const auto& steps = inputs.composition->steps;
  const int shown_steps =
      static_cast<int>(steps.size()) -
      (!steps.empty() && steps.back().name == kCaptureStep ? 1 : 0);
  int known = 0;
  int failed = 0;
  const auto tell = [&](int done, int failed) {
    if (done > known && options.progress) options.progress(done, failed);
    known = done;
  };
  for (int i = 0; i < count; ++i) {
    const CompositeToRender& composite = inputs.composites[i];
    results->Start();
    const int done = results->WaitForMore(-1, &failed);
    tell(done, failed);
    if (!composite.status.ok()) {
      Rendered rendered;
      rendered.outcome.status = composite.status;
      results->Put(i, std::move(rendered));
      continue;
    }
    auto job = std::make_shared<Job>(functions, inputs.context);
    job->deadline = clock->Now() + options.timeout;
    if (options.trace) {
      job->trace = std::make_unique<RenderTrace>(
          shown_steps, count > 1 ? composite.where : "", options.trace_in_color,
          options.trace);
    }
    engine::EngineOptions engine;
    engine.capabilities = options.capabilities;
    engine.deadline = job->deadline;
    engine.step_timeout = options.step_timeout;
    engine::Render(
        InputOf(inputs, composite), engine, &job->caller, clock, job.get(),
        [results, job, clock, i](engine::EngineOutcome outcome) {
          Rendered rendered;
          rendered.context = job->caller.captured();
          rendered.failed_call = std::move(job->failed_call);
          rendered.timed_out = !outcome.status.ok() && !outcome.fatal &&
                               clock->Now() >= job->deadline;
          rendered.outcome = std::move(outcome);
          results->Put(i, std::move(rendered));
        });
  }
  while (known < count) {
    const int done = results->WaitForMore(known, &failed);
    tell(done, failed);
  }
  return all;
}

}  // namespace fncache::runner::render
