// SPDX-License-Identifier: Apache-2.0
// Functions on the engine: requirements that settle, and what is desired
// applied until nothing changes.
#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "fncache/function/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::function::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kVpc[] =
    "{apiVersion: v1, kind: VPC, metadata: {name: vpc, labels: {env: prod}}, "
    "spec: {subnet: s}}";
constexpr char kSubnet[] =
    "{apiVersion: v1, kind: Subnet, metadata: {name: s}, spec: {zone: z}}";

void OneSelector(Context& ctx) {
  for (const Resource vpc :
       ctx.require("vpcs", "v1", "VPC", MatchLabels({{"env", "prod"}}))) {
    ctx.output()[vpc.name()] = true;
  }
}

void ChainedSelector(Context& ctx) {
  const Resource vpc =
      ctx.require("vpc", "v1", "VPC", MatchName("vpc")).first();
  const Resource subnet =
      ctx.require("subnet", "v1", "Subnet",
                  MatchName(vpc.observed()["spec"]["subnet"].as<std::string>()))
          .first();
  ctx.resource("a", "v1", "A")["spec"]["zone"] =
      subnet.observed()["spec"]["zone"];
}

TEST(SettleTest, OneSelectorTakesTwoCalls) {
  const Settled settled =
      Settle(Call(OneSelector).required("vpcs", {kVpc, kSubnet}));
  EXPECT_EQ(settled.outcome(), absl::OkStatus());
  EXPECT_EQ(settled.calls(), 2u);
  EXPECT_THAT(settled.output(), IsYaml("vpc: true"));
  EXPECT_FALSE(settled.answers()[0].output());
}

TEST(SettleTest, ASelectorMadeOfARequiredResourceTakesThreeCalls) {
  Call call(ChainedSelector);
  call.required("all", {kVpc, kSubnet});
  const Settled settled = Settle(call);
  EXPECT_EQ(settled.outcome(), absl::OkStatus());
  EXPECT_EQ(settled.calls(), 3u);
  EXPECT_THAT(settled.answers()[0].requirements(), SizeIs(1));
  EXPECT_THAT(settled.requirements(), SizeIs(2));
  EXPECT_THAT(settled.resource("a"), HasField("spec.zone", "z"));
  EXPECT_THAT(settled.answers()[1].held(), ElementsAre("a"));
}

TEST(SettleTest, BootstrapTakesOneCall) {
  Call call([](Context& ctx) {
    ctx.output()["size"] = ctx.bootstrap("vpcs").size();
    ctx.output()["schema"] = ctx.bootstrap_schema("app").schema()["type"];
  });
  call.required("vpcs", {kVpc})
      .schema("app", "type: object")
      .bootstrap("vpcs", "v1", "VPC", MatchLabels({{"env", "prod"}}))
      .bootstrap_schema("app", "v1", "App");
  const Settled settled = Settle(call);
  EXPECT_EQ(settled.calls(), 1u);
  EXPECT_THAT(settled.output(), IsYaml("{size: 1, schema: object}"));
}

TEST(SettleTest, AnOldRunnerTakesAsManyCalls) {
  const Settled settled =
      Settle(Call(OneSelector).required("vpcs", {kVpc}).capabilities({}));
  EXPECT_EQ(settled.calls(), 2u);
  EXPECT_THAT(settled.output(), IsYaml("vpc: true"));
}

TEST(SettleTest, TheStepHasAllThatACallHas) {
  Call call([](Context& ctx) {
    ctx.output()["input"] = ctx.input()["x"];
    ctx.output()["key"] = ctx.credentials("c")["key"];
    ctx.output()["zone"] = ctx.context("zone");
    ctx.output()["earlier"] = ctx.existing("a")["spec"]["x"];
    ctx.require("none", "v1", "None", MatchName("none"));
  });
  call.input("x: 1")
      .credentials("c", {{"key", "k"}})
      .context("zone", "z")
      .desired("a", "{apiVersion: v1, kind: A, spec: {x: 2}}");
  const Settled settled = Settle(call);
  EXPECT_EQ(settled.outcome(), absl::OkStatus());
  EXPECT_THAT(settled.output(),
              IsYaml("{input: 1, key: k, zone: z, earlier: 2}"));
  EXPECT_THAT(settled.resources(), ElementsAre("a"));
}

TEST(SettleTest, RequirementsThatNeverSettleAreTheRunnersError) {
  int calls = 0;
  const Settled settled = Settle(Call([&calls](Context& ctx) {
    ctx.require(absl::StrCat("r", calls++), "v1", "VPC", MatchName("vpc"));
  }));
  EXPECT_EQ(settled.calls(), 6u);
  EXPECT_EQ(settled.outcome().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(SettleTest, AFatalAnswerIsTheOutcome) {
  const Settled settled = Settle(Call([](Context& ctx) { ctx.fatal("no"); }));
  EXPECT_THAT(std::string(settled.outcome().message()),
              HasSubstr("returned a fatal result: no"));
  EXPECT_EQ(settled.fatal(), "no");
  EXPECT_EQ(settled.calls(), 1u);
}

TEST(ReconcileTest, WhatIsDesiredExistsUntilItIsNoLonger) {
  int round = 0;
  Call call([&round](Context& ctx) {
    ++round;
    ctx.resource("a", "v1", "A")["spec"]["round"] = std::min(round, 3);
    if (round == 1) ctx.resource("b", "v1", "B");
    const Value all = ctx.output();
    for (const char* name : {"a", "b"}) {
      all[name] = ctx.existing(name).exists();
    }
  });
  const std::vector<Answer> answers = Reconcile(call, [](auto&, Value) {});
  ASSERT_THAT(answers, SizeIs(4));
  EXPECT_THAT(answers[0].output(), IsYaml("{a: false, b: false}"));
  EXPECT_THAT(answers[1].output(), IsYaml("{a: true, b: true}"));
  EXPECT_THAT(answers[2].output(), IsYaml("{a: true, b: false}"));
}

TEST(ReconcileTest, StatusAndConditionsOfTheCompositeAreObserved) {
  Call call([](Context& ctx) {
    Resource xr = ctx.composite();
    const int64_t before =
        xr.observed()["status"]["n"].as<int64_t>().value_or(0);
    xr["status"]["n"] = before < 2 ? before + 1 : before;
    ctx.output()["made"] = xr.condition("Made").is_true();
    ctx.condition("Made", Status::kTrue, "Done");
  });
  const std::vector<Answer> answers =
      Reconcile(call.composite("kind: XR"), [](auto&, Value) {});
  ASSERT_THAT(answers, SizeIs(3));
  EXPECT_THAT(answers[0].output(), HasField("made", false));
  EXPECT_THAT(answers[2].output(), HasField("made", true));
  EXPECT_THAT(answers[2].composite(), HasField("status.n", 2));
}

TEST(ReconcileTest, AProviderWritesMetadataAndStatus) {
  Call call([](Context& ctx) {
    Resource bucket = ctx.resource("bucket", "v1", "Bucket");
    ctx.resource("acl", "v1", "Acl")["spec"]["bucket"] =
        bucket.observed().external_name();
  });
  const std::vector<Answer> answers =
      Reconcile(call, [](const std::string& name, Value object) {
        object["metadata"]["annotations"]["crossplane.io/external-name"] =
            name + "-x";
      });
  EXPECT_THAT(answers.back().resource("acl"),
              HasField("spec.bucket", "bucket-x"));
  EXPECT_THAT(answers.back().held(), IsEmpty());
}

TEST(ReconcileTest, AFatalAnswerChangesNothing) {
  Call call([](Context& ctx) {
    ctx.resource("a", "v1", "A");
    ctx.fatal("no");
  });
  EXPECT_THAT(Reconcile(call, [](auto&, Value) {}), SizeIs(1));
}

TEST(ReconcileTest, ChangesWithoutEndNameThePath) {
  int round = 0;
  Call call([&round](Context& ctx) {
    ctx.resource("a", "v1", "A")["spec"]["round"] = ++round;
  });
  try {
    Reconcile(call, [](auto&, Value) {});
    FAIL();
  } catch (const std::runtime_error& thrown) {
    EXPECT_STREQ(thrown.what(),
                 "Reconcile: after 100 rounds, "
                 "observed.resources.a.resource.spec.round still changes");
  }
}

}  // namespace
}  // namespace fncache::function::testing
