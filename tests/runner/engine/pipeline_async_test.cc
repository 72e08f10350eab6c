// SPDX-License-Identifier: Apache-2.0
// Pipelines over functions that answer at once, from other threads, and in
// between: the stack does not grow, nothing dangles, thousands run at once.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "common/thread_pool.h"
#include "gtest/gtest.h"
#include "runner/engine/pipeline.h"
#include "tests/runner/fake_functions.h"
#include "tests/runner/messages.h"
#include "text/object.h"

namespace fncache::runner::engine {

using google::protobuf::Struct;
using google::protobuf::Value;
namespace {

namespace fn = apiextensions::fn::proto::v1;

// Requires a schema and an object on its first call, then adds one to the
// number in the context.
client::CallResult Count(const RunFunctionRequest& request) {
  client::CallResult result;
  auto& requirements = *result.response.mutable_requirements();
  (*requirements.mutable_schemas())["s"].set_kind("S");
  (*requirements.mutable_resources())["r"].set_kind("R");
  Struct& context = *result.response.mutable_context();
  context = request.context();
  if (request.required_schemas().contains("s")) {
    Value& count = *text::Ensure(&context, {"count"});
    count.set_number_value(count.number_value() + 1);
  }
  return result;
}

double CountOf(const PipelineOutcome& outcome) {
  if (!outcome.context.has_value()) return -1;
  const Value* const count = text::Find(*outcome.context, {"count"});
  return count == nullptr ? -1 : count->number_value();
}

std::shared_ptr<const Composition> Steps(int steps) {
  auto composition = std::make_shared<Composition>();
  for (int i = 0; i < steps; ++i) {
    composition->steps.emplace_back();
    composition->steps.back().name = absl::StrCat("step-", i);
    composition->steps.back().function = "count";
    composition->steps.back().required_schemas.emplace_back(
        "up", fn::SchemaSelector());
  }
  return composition;
}

// How far down the stack calls are made.
class StackDepth {
 public:
  void Note() {
    const auto at = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    if (highest_ == 0) highest_ = lowest_ = at;
    highest_ = std::max(highest_, at);
    lowest_ = std::min(lowest_, at);
  }
  size_t spread() const { return highest_ - lowest_; }

 private:
  uintptr_t highest_ = 0;
  uintptr_t lowest_ = 0;
};

class CountingSchemas : public SchemaSource {
 public:
  void Find(const std::string&, const std::string&, absl::Time,
            std::function<void(FoundSchema)> done) override {
    depth_.Note();
    ++asked_;
    done(absl::optional<Struct>());
  }
  StackDepth depth_;
  int asked_ = 0;
};

TEST(PipelineAsyncTest, TenThousandStepsAnsweredAtOnceDoNotNest) {
  constexpr int kSteps = 10000;
  StackDepth depth;
  FakeFunctions functions;
  functions.Set("count", [&](const RunFunctionRequest& request) {
    depth.Note();
    return Count(request);
  });
  const auto schemas = std::make_shared<CountingSchemas>();
  PipelineInput input;
  input.composition = Steps(kSteps);
  input.schemas = schemas;
  SimulatedClock clock(absl::UnixEpoch());
  PipelineOutcome outcome;
  RunPipeline(std::move(input), &functions, &clock, nullptr,
              [&](PipelineOutcome ended) { outcome = std::move(ended); });
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(CountOf(outcome), kSteps);
  EXPECT_EQ(schemas->asked_, 2 * kSteps);
  // A frame more a step would be hundreds of kilobytes.
  EXPECT_LT(depth.spread(), 16U << 10);
  EXPECT_LT(schemas->depth_.spread(), 16U << 10);
}

// Answers from the threads of a pool.
class PooledFunctions : public client::FunctionCaller, public SchemaSource {
 public:
  explicit PooledFunctions(int threads) : pool_(threads) {}

  void Call(const std::string&, const RunFunctionRequest& request, absl::Time,
            Done done) override {
    ++calls_;
    // The request may change once Call has returned.
    ThreadPool::Work work = [copy = request, done = std::move(done)](bool) {
      done(Count(copy));
    };
    pool_.Submit(&work);
  }
  void Find(const std::string&, const std::string&, absl::Time,
            std::function<void(FoundSchema)> done) override {
    ThreadPool::Work work = [done = std::move(done)](bool) {
      done(absl::optional<Struct>());
    };
    pool_.Submit(&work);
  }
  int calls() const { return calls_; }

 private:
  std::atomic<int> calls_{0};
  ThreadPool pool_;
};

// Counts, per pipeline, and sees whether two reports of it ever overlap.
class OneAtATime : public PipelineObserver {
 public:
  void OnCall(const CallReport& report) override {
    // tsan finds it if these are not ordered.
    EXPECT_EQ(report.step_index, calls_ / 2);
    EXPECT_EQ(report.call, calls_ % 2 + 1);
    ++calls_;
  }
  int calls() const { return calls_; }

 private:
  int calls_ = 0;
};

TEST(PipelineAsyncTest, ThousandsRunAtOnceOnAFewThreads) {
  constexpr int kPipelines = 2000;
  constexpr int kSteps = 4;
  const auto composition = Steps(kSteps);
  SimulatedClock clock(absl::UnixEpoch());
  std::vector<OneAtATime> observers(kPipelines);
  std::vector<PipelineOutcome> outcomes(kPipelines);
  absl::BlockingCounter left(kPipelines);
  // Outlives the test's functions by their own reference as schema source.
  const auto functions = std::make_shared<PooledFunctions>(4);
  for (int i = 0; i < kPipelines; ++i) {
    PipelineInput input;
    input.composition = composition;
    input.schemas = std::shared_ptr<SchemaSource>(
        std::shared_ptr<void>(), static_cast<SchemaSource*>(functions.get()));
    RunPipeline(std::move(input), functions.get(), &clock, &observers[i],
                [&outcomes, &left, i](PipelineOutcome ended) {
                  outcomes[i] = std::move(ended);
                  ReleaseTo(&outcomes[i]);
                  left.DecrementCount();
                });
  }
  left.Wait();
  for (int i = 0; i < kPipelines; ++i) {
    AcquireFrom(&outcomes[i]);
    EXPECT_TRUE(outcomes[i].status.ok()) << outcomes[i].status;
    EXPECT_EQ(CountOf(outcomes[i]), kSteps);
    EXPECT_EQ(observers[i].calls(), 2 * kSteps);
  }
  EXPECT_EQ(functions->calls(), kPipelines * kSteps * 2);
}

// Calls back on another thread, and returns only after that.
class HastyFunctions : public client::FunctionCaller {
 public:
  void Call(const std::string&, const RunFunctionRequest& request, absl::Time,
            Done done) override {
    std::thread([&] { done(Count(request)); }).join();
    // Until Call returns the request is not to change.
    EXPECT_EQ(request.meta().tag().size(), 64U);
    EXPECT_TRUE(request.has_observed());
  }
};

TEST(PipelineAsyncTest, AnAnswerMayComeOnAnotherThreadBeforeTheCallReturns) {
  HastyFunctions functions;
  PipelineInput input;
  input.composition = Steps(20);
  SimulatedClock clock(absl::UnixEpoch());
  PipelineOutcome outcome;
  const std::thread::id self = std::this_thread::get_id();
  RunPipeline(std::move(input), &functions, &clock, nullptr,
              [&](PipelineOutcome ended) {
                // The starter continues, not the thread that answered.
                EXPECT_EQ(std::this_thread::get_id(), self);
                outcome = std::move(ended);
              });
  EXPECT_EQ(CountOf(outcome), 20);
}

// Keeps the calls' `done` for the test.
class HeldFunctions : public client::FunctionCaller {
 public:
  void Call(const std::string&, const RunFunctionRequest& request, absl::Time,
            Done done) override {
    held_.emplace_back(request, std::move(done));
  }
  // Answers the oldest call, `done` being destroyed while it runs if it wants.
  void AnswerOne() {
    auto [request, done] = std::move(held_.front());
    held_.erase(held_.begin());
    done(Count(request));
  }
  std::vector<std::pair<RunFunctionRequest, Done>> held_;
};

TEST(PipelineAsyncTest, NothingIsKeptOnceItIsDone) {
  HeldFunctions functions;
  SimulatedClock clock(absl::UnixEpoch());
  PipelineInput input;
  auto composition = Steps(2);
  const std::weak_ptr<const Composition> kept = composition;
  input.composition = std::move(composition);
  auto token = std::make_shared<int>(0);
  const std::weak_ptr<int> callers = token;
  bool done = false;
  RunPipeline(std::move(input), &functions, &clock, nullptr,
              [&done, token = std::move(token)](const PipelineOutcome&) {
                done = true;
              });
  for (int call = 0; call < 4; ++call) {
    EXPECT_FALSE(done);
    EXPECT_FALSE(kept.expired());
    ASSERT_EQ(functions.held_.size(), 1U);
    functions.AnswerOne();
  }
  EXPECT_TRUE(done);
  EXPECT_TRUE(functions.held_.empty());
  EXPECT_TRUE(kept.expired());
  EXPECT_TRUE(callers.expired());
}

// Keeps the callback of one call; the next call replaces it while it runs.
class OneSlot : public client::FunctionCaller {
 public:
  void Call(const std::string&, const RunFunctionRequest& request, absl::Time,
            Done done) override {
    result_ = Count(request);
    slot_ = std::make_unique<Done>(std::move(done));
  }
  bool AnswerOne() {
    if (slot_ == nullptr) return false;
    client::CallResult result = std::move(result_);
    Done* const done = slot_.get();
    (*done)(std::move(result));
    return slot_.get() != done;
  }

 private:
  client::CallResult result_;
  std::unique_ptr<Done> slot_;
};

TEST(PipelineAsyncTest, ACallbackMayBeDestroyedWhileItRuns) {
  OneSlot functions;
  SimulatedClock clock(absl::UnixEpoch());
  PipelineInput input;
  input.composition = Steps(3);
  PipelineOutcome outcome;
  RunPipeline(std::move(input), &functions, &clock, nullptr,
              [&](PipelineOutcome ended) { outcome = std::move(ended); });
  int answered = 1;
  while (functions.AnswerOne()) ++answered;
  EXPECT_EQ(answered, 6);
  EXPECT_EQ(CountOf(outcome), 3);
}

TEST(PipelineAsyncTest, ACallerThatDropsItsCallsFreesThePipeline) {
  std::weak_ptr<const Composition> kept;
  {
    HeldFunctions functions;
    SimulatedClock clock(absl::UnixEpoch());
    PipelineInput input;
    auto composition = Steps(2);
    kept = composition;
    input.composition = std::move(composition);
    RunPipeline(std::move(input), &functions, &clock, nullptr,
                [](const PipelineOutcome&) { FAIL() << "it never ended"; });
    EXPECT_FALSE(kept.expired());
  }
  EXPECT_TRUE(kept.expired());
}

TEST(PipelineAsyncTest, APipelineMayStartAnotherWhenItIsDone) {
  FakeFunctions functions;
  functions.Set("count", Count);
  SimulatedClock clock(absl::UnixEpoch());
  int ended = 0;
  std::function<void(PipelineOutcome)> again = [&](const PipelineOutcome&) {
    if (++ended == 3) return;
    PipelineInput input;
    input.composition = Steps(1);
    RunPipeline(std::move(input), &functions, &clock, nullptr, again);
  };
  again(PipelineOutcome());
  EXPECT_EQ(ended, 3);
}

}  // namespace
}  // namespace fncache::runner::engine
