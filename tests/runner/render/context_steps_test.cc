// SPDX-License-Identifier: Apache-2.0
#include "runner/render/context_steps.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/runner/messages.h"

namespace fncache::runner::render {
namespace {

using apiextensions::fn::proto::v1::RunFunctionRequest;
using google::protobuf::Struct;

// Remembers what it was called for.
class Functions : public client::FunctionCaller {
 public:
  void Call(const std::string& function, const RunFunctionRequest& request,
            absl::Time deadline, Done done) override {
    called.push_back(function);
    client::CallResult result;
    result.cache_status = "hit";
    done(std::move(result));
  }
  std::vector<std::string> called;
};

client::CallResult CallOf(ContextSteps* steps, const std::string& request,
                          const std::string& function = kContextFunction) {
  client::CallResult got;
  int times = 0;
  steps->Call(function, FromJson<RunFunctionRequest>(request),
              absl::InfiniteFuture(), [&](client::CallResult result) {
                got = std::move(result);
                ++times;
              });
  EXPECT_EQ(times, 1);
  return got;
}

TEST(WithContextStepsTest, StepsStandAroundThePipeline) {
  engine::Composition composition;
  composition.steps.resize(1);
  composition.steps[0].name = "own";
  const engine::Composition both = WithContextSteps(composition, true, true);
  ASSERT_EQ(both.steps.size(), 3u);
  EXPECT_EQ(both.steps[0].name, "crossplane-render-inject-context");
  EXPECT_EQ(both.steps[0].function, "crossplane-render-context");
  ASSERT_TRUE(both.steps[0].input.has_value());
  ExpectJson(*both.steps[0].input, R"({"mode": "Seed"})");
  EXPECT_EQ(both.steps[1].name, "own");
  EXPECT_EQ(both.steps[2].name, "crossplane-render-extract-context");
  EXPECT_EQ(both.steps[2].function, "crossplane-render-context");
  ExpectJson(*both.steps[2].input, R"({"mode": "Capture"})");

  EXPECT_EQ(WithContextSteps(composition, true, false).steps[1].name, "own");
  EXPECT_EQ(WithContextSteps(composition, false, true).steps[0].name, "own");
  EXPECT_EQ(WithContextSteps(composition, false, false).steps.size(), 1u);
}

TEST(ContextStepsTest, SeedingPassesDesiredStateOnAndMergesTheContext) {
  Functions functions;
  ContextSteps steps(&functions,
                     FromJson<Struct>(R"({"a": 1, "b": {"c": null}})"));
  const client::CallResult first = CallOf(&steps, R"({"meta": {"tag": "t"},
      "desired": {}, "context": {}, "input": {"mode": "Seed"}})");
  ASSERT_TRUE(first.status.ok());
  ExpectJson(first.response, R"({"meta": {"tag": "t"}, "desired": {},
      "context": {"a": 1, "b": {"c": null}}})");
  EXPECT_TRUE(first.response.has_desired());
  EXPECT_FALSE(first.response.meta().has_ttl());

  const client::CallResult later =
      CallOf(&steps, R"({"context": {"a": 0, "z": 9},
      "input": {"mode": "Seed"}})");
  ExpectJson(later.response,
             R"({"meta": {}, "context": {"a": 1, "b": {"c": null}, "z": 9}})");
  EXPECT_FALSE(later.response.has_desired());
  EXPECT_TRUE(functions.called.empty());
}

TEST(ContextStepsTest, CapturingKeepsTheContextAndAnswersWithoutOne) {
  Functions functions;
  ContextSteps steps(&functions, Struct());
  EXPECT_FALSE(steps.captured().has_value());
  const client::CallResult result = CallOf(&steps, R"({"meta": {"tag": "t"},
      "desired": {"composite": {"ready": "READY_TRUE"}},
      "context": {"a": 1}, "input": {"mode": "Capture"}})");
  ExpectJson(result.response, R"({"meta": {"tag": "t"},
      "desired": {"composite": {"ready": "READY_TRUE"}}})");
  EXPECT_FALSE(result.response.has_context());
  ASSERT_TRUE(steps.captured().has_value());
  ExpectJson(*steps.captured(), R"({"a": 1})");
}

TEST(ContextStepsTest, AnEmptyContextIsCapturedAndAnAbsentOneIsNot) {
  Functions functions;
  ContextSteps steps(&functions, Struct());
  CallOf(&steps, R"({"context": {}, "input": {"mode": "Capture"}})");
  EXPECT_TRUE(steps.captured().has_value());
  CallOf(&steps, R"({"input": {"mode": "Capture"}})");
  EXPECT_FALSE(steps.captured().has_value());
}

TEST(ContextStepsTest, OtherModesAreRefused) {
  Functions functions;
  ContextSteps steps(&functions, Struct());
  const client::CallResult result =
      CallOf(&steps, R"({"desired": {}, "input": {"mode": "seed"}})");
  EXPECT_EQ(result.status.message(),
            "rpc error: code = InvalidArgument desc = unsupported mode "
            "\"seed\"");
  ExpectJson(result.response, "{}");
  EXPECT_FALSE(CallOf(&steps, "{}").status.ok());
}

TEST(ContextStepsTest, OtherFunctionsAreCalled) {
  Functions functions;
  ContextSteps steps(&functions, Struct());
  EXPECT_EQ(CallOf(&steps, R"({"input": {"mode": "Seed"}})", "f").cache_status,
            "hit");
  EXPECT_EQ(functions.called, std::vector<std::string>{"f"});
}

}  // namespace
}  // namespace fncache::runner::render
