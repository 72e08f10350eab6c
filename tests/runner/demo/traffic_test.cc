// SPDX-License-Identifier: Apache-2.0
#include "runner/demo/traffic.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runner/function/server.h"
#include "runner/function/template_responder.h"
#include "tests/runner/messages.h"

namespace fncache::runner::demo {
namespace {

using google::protobuf::util::MessageDifferencer;

constexpr int kBuckets = 3;

using apiextensions::fn::proto::v1::RunFunctionRequest;

class DemoTrafficTest : public testing::Test {
 protected:
  void SetUp() override {
    function::FunctionServerOptions options;
    options.listen = "127.0.0.1:0";
    auto server = function::FunctionServer::Start(options, &responder_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    const auto composition = DemoComposition();
    ASSERT_EQ(composition->steps.size(), static_cast<size_t>(kDemoSteps));
    for (int i = 0; i < 4; ++i) {
      inputs_.push_back(DemoInput(composition, i, kBuckets));
    }
  }

  // `rounds` over all composites, by two builds alternately.
  std::vector<DemoReconcile> Run(int rounds, size_t at_once) {
    std::vector<DemoReconcile> reconciles;
    for (int round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < inputs_.size(); ++i) {
        DemoReconcile reconcile;
        reconcile.composite = static_cast<int>(i);
        reconcile.build = round % kDemoBuilds;
        reconciles.push_back(std::move(reconcile));
      }
    }
    size_t told = 0;
    const auto runners = DemoRunners::Create(server_->address(), &inputs_);
    EXPECT_TRUE(runners.ok()) << runners.status();
    (*runners)->Drive(
        at_once, [&](size_t done) { EXPECT_EQ(done, ++told); }, &reconciles);
    EXPECT_EQ(told, reconciles.size());
    return reconciles;
  }

  const function::TemplateResponder responder_{{}};
  std::unique_ptr<function::FunctionServer> server_;
  std::vector<engine::EngineInput> inputs_;
};

TEST_F(DemoTrafficTest, EveryPipelineRendersItsBucketsAndTheirPolicy) {
  for (const DemoReconcile& reconcile : Run(15, 3)) {
    ASSERT_TRUE(reconcile.status.ok()) << reconcile.status;
    EXPECT_EQ(reconcile.composed, kBuckets + 1);
    ASSERT_EQ(reconcile.calls.size(), static_cast<size_t>(kDemoSteps));
    for (int step = 0; step < kDemoSteps; ++step) {
      const DemoCall& call = reconcile.calls[step];
      EXPECT_EQ(call.step, step);
      EXPECT_EQ(call.composite, reconcile.composite);
      EXPECT_TRUE(call.status.ok()) << call.status;
      EXPECT_EQ(call.response.meta().tag(), call.tag);
      EXPECT_GT(call.latency, absl::ZeroDuration());
    }
    const auto& made = reconcile.calls[1].response.desired().resources();
    const auto policy = made.find("policy");
    ASSERT_NE(policy, made.end());
    const auto& spec =
        policy->second.resource().fields().at("spec").struct_value().fields();
    EXPECT_EQ(spec.at("of").string_value(),
              absl::StrCat("lake-", reconcile.composite, "-0"));
  }
}

// Else nothing could be answered from a cache.
TEST_F(DemoTrafficTest, ACompositeIsAskedTheSameEveryTimeUnderABuildsTag) {
  const std::vector<DemoReconcile> reconciles = Run(4, 2);
  std::set<std::string> tags;
  for (const DemoReconcile& reconcile : reconciles) {
    for (const DemoCall& call : reconcile.calls) {
      EXPECT_EQ(call.tag.size(), 64u);
      tags.insert(call.tag);
    }
  }
  EXPECT_EQ(tags.size(), inputs_.size() * kDemoSteps * kDemoBuilds);
}

TEST_F(DemoTrafficTest, AFunctionThatFailsFailsItsPipeline) {
  inputs_[1].composition = std::make_shared<const engine::Composition>([&] {
    engine::Composition broken = *inputs_[1].composition;
    broken.steps[0].function = "nobody";
    return broken;
  }());
  for (const DemoReconcile& reconcile : Run(2, 4)) {
    EXPECT_EQ(reconcile.status.ok(), reconcile.composite != 1);
  }
}

TEST(TagOfBuildTest, OtherBuildsTagOtherwiseAndOneBuildAlwaysTheSame) {
  const std::string tag(64, 'a');
  EXPECT_EQ(TagOfBuild(tag, 0), tag);
  EXPECT_NE(TagOfBuild(tag, 1), tag);
  EXPECT_EQ(TagOfBuild(tag, 1), TagOfBuild(tag, 1));
  EXPECT_EQ(TagOfBuild(tag, 1).size(), 64u);
}

}  // namespace
}  // namespace fncache::runner::demo
