// SPDX-License-Identifier: Apache-2.0
#include "runner/render/batch.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/mutex.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runner/render/context_steps.h"
#include "tests/runner/messages.h"

namespace fncache::runner::render {
namespace {

using apiextensions::fn::proto::v1::RunFunctionRequest;
using apiextensions::fn::proto::v1::SEVERITY_FATAL;
using google::protobuf::Struct;

constexpr absl::Duration kHour = absl::Hours(1);

// Answers on threads of its own, a few calls at a time, so that they overlap;
// passes everything on, with the composite's name in the context.
class Functions : public client::FunctionCaller {
 public:
  // An answer waits until `together` calls wait, or `total` came.
  Functions(int together, int total) : together_(together), total_(total) {}
  ~Functions() override {
    for (std::thread& thread : threads_) thread.join();
  }

  void Call(const std::string& function, const RunFunctionRequest& request,
            absl::Time deadline, Done done) override {
    client::CallResult result;
    *result.response.mutable_desired() = request.desired();
    *result.response.mutable_context() = request.context();
    const Struct& composite = request.observed().composite().resource();
    const std::string& name = composite.fields()
                                  .at("metadata")
                                  .struct_value()
                                  .fields()
                                  .at("name")
                                  .string_value();
    (*result.response.mutable_context()->mutable_fields())["name"]
        .set_string_value(name);
    if (name == "fatal") {
      auto* const said = result.response.add_results();
      said->set_severity(SEVERITY_FATAL);
      said->set_message("no");
    }
    MutexLock lock(&mutex_);
    ++called_;
    most_ = std::max(most_, ++waiting_);
    changed_.SignalAll();
    threads_.emplace_back(
        [this, result = std::move(result), done = std::move(done)]() mutable {
          {
            MutexLock lock(&mutex_);
            while (most_ < together_ && called_ < total_)
              changed_.Wait(&mutex_);
            --waiting_;
          }
          done(std::move(result));
        });
  }

  int most() {
    MutexLock lock(&mutex_);
    return most_;
  }

 private:
  const int together_;
  const int total_;
  Mutex mutex_;
  CondVar changed_;
  int called_ ABSL_GUARDED_BY(mutex_) = 0;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  int most_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

RenderInputs Inputs(const std::vector<std::string>& names) {
  RenderInputs inputs;
  engine::Composition composition;
  composition.name = "c";
  composition.composite_api_version = "ex.org/v1";
  composition.composite_kind = "XR";
  composition.mode = "Pipeline";
  composition.steps.resize(1);
  composition.steps[0].name = "s";
  composition.steps[0].function = "f";
  inputs.composition = std::make_shared<const engine::Composition>(
      WithContextSteps(std::move(composition), false, true));
  for (const std::string& name : names) {
    CompositeToRender composite;
    composite.object = std::make_shared<text::Json>(
        text::Json{{"apiVersion", "ex.org/v1"},
                   {"kind", "XR"},
                   {"metadata", {{"name", name}}}});
    composite.where = name + ".yaml";
    if (name == "broken") composite.status = absl::InvalidArgumentError("why");
    inputs.composites.push_back(std::move(composite));
  }
  return inputs;
}

TEST(RenderAllTest, EachGetsItsOwnContextInItsOwnPlace) {
  std::vector<std::string> names;
  for (int i = 0; i < 50; ++i) names.push_back(absl::StrCat("xr-", i));
  SimulatedClock clock(absl::UnixEpoch() + kHour);
  Functions functions(8, 50);
  BatchOptions options;
  options.jobs = 8;
  const auto all = RenderAll(Inputs(names), options, &functions, &clock);
  ASSERT_EQ(all.size(), names.size());
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_TRUE(all[i].outcome.status.ok()) << all[i].outcome.status;
    ASSERT_TRUE(all[i].context.has_value());
    ExpectJson(*all[i].context, absl::StrCat(R"({"name": ")", names[i], "\"}"));
  }
}

TEST(RenderAllTest, NoMoreRunAtOnceThanJobs) {
  const std::vector<std::string> names(20, "a");
  SimulatedClock clock(absl::UnixEpoch() + kHour);
  for (const int jobs : {1, 3}) {
    Functions functions(jobs, 20);
    BatchOptions options;
    options.jobs = jobs;
    RenderAll(Inputs(names), options, &functions, &clock);
    EXPECT_EQ(functions.most(), jobs);
  }
}

TEST(RenderAllTest, FailuresAreCountedAndLeaveTheOthers) {
  SimulatedClock clock(absl::UnixEpoch() + kHour);
  Functions functions(1, 4);
  std::vector<std::pair<int, int>> told;
  BatchOptions options;
  options.jobs = 1;
  options.progress = [&](int done, int failed) {
    told.emplace_back(done, failed);
  };
  const auto all = RenderAll(Inputs({"a", "broken", "fatal", "b"}), options,
                             &functions, &clock);
  EXPECT_TRUE(all[0].outcome.status.ok());
  EXPECT_EQ(all[1].outcome.status.message(), "why");
  EXPECT_TRUE(all[2].outcome.fatal);
  EXPECT_FALSE(all[2].timed_out);
  EXPECT_TRUE(all[3].outcome.status.ok());
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back(), std::make_pair(4, 2));
}

TEST(RenderAllTest, TracesNameTheCompositeWhereThereAreSeveral) {
  SimulatedClock clock(absl::UnixEpoch() + kHour);
  Mutex mutex;
  std::string traced;
  BatchOptions options;
  options.trace = [&](const std::string& text) {
    MutexLock lock(&mutex);
    traced += text;
  };
  {
    Functions functions(1, 1);
    RenderAll(Inputs({"a"}), options, &functions, &clock);
    EXPECT_EQ(traced.rfind("step 1/1 \"s\" (f): ", 0), 0u) << traced;
  }
  traced.clear();
  Functions functions(1, 2);
  RenderAll(Inputs({"a", "b"}), options, &functions, &clock);
  EXPECT_NE(traced.find("a.yaml: step 1/1 \"s\" (f): "), std::string::npos);
  EXPECT_NE(traced.find("b.yaml: step 1/1 \"s\" (f): "), std::string::npos);
}

// Answers that its time is over once it is.
class Late : public client::FunctionCaller {
 public:
  explicit Late(SimulatedClock* clock) : clock_(clock) {}
  void Call(const std::string& function, const RunFunctionRequest& request,
            absl::Time deadline, Done done) override {
    clock_->Set(deadline);
    client::CallResult result;
    result.status = absl::DeadlineExceededError("rpc error: late");
    done(std::move(result));
  }

 private:
  SimulatedClock* const clock_;
};

TEST(RenderAllTest, EachHasTheWholeTimeoutAndSaysWhenItIsOver) {
  const absl::Time start = absl::UnixEpoch() + kHour;
  SimulatedClock clock(start);
  Late functions(&clock);
  BatchOptions options;
  options.timeout = absl::Seconds(7);
  const auto all = RenderAll(Inputs({"a", "b"}), options, &functions, &clock);
  EXPECT_TRUE(all[0].timed_out);
  EXPECT_TRUE(all[1].timed_out);
  EXPECT_EQ(clock.Now(), start + 2 * options.timeout);

  options.step_timeout = absl::Seconds(1);
  EXPECT_FALSE(
      RenderAll(Inputs({"a"}), options, &functions, &clock)[0].timed_out);
}

}  // namespace
}  // namespace fncache::runner::render
