// SPDX-License-Identifier: Apache-2.0
// SDK.md, section 5: how waiting is reported. All texts are compared as a
// whole.
#include "sdk/compose/waits.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/sdk/compose/caller.h"

namespace fncache::sdk {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kVersion[] = "ec2.aws.upbound.io/v1beta1";

// SDK.md, section 1.
void Network(fn::Context& ctx) {
  auto add = [&](const char* name, const char* kind) {
    return ctx.resource(name, kVersion, kind);
  };
  auto vpc = add("vpc", "VPC");
  vpc["spec"]["forProvider"]["cidrBlock"] = "10.0.0.0/16";
  auto subnet = add("subnet", "Subnet");
  subnet["spec"]["forProvider"]["vpcId"] =
      vpc.observed()["status"]["atProvider"]["vpcId"];
  auto group = add("security-group", "SecurityGroup");
  group["spec"]["forProvider"]["vpcId"] =
      vpc.observed()["status"]["atProvider"]["vpcId"];
  group["spec"]["forProvider"]["subnetId"] =
      subnet.observed()["status"]["atProvider"]["id"];
  group["spec"]["forProvider"]["description"] = fn::Concat(
      "for ",
      subnet.observed()["status"]["atProvider"]["arn"].as<std::string>());
}

// a.spec.x waits for b.status.y.
void Wait(fn::Context& ctx, const char* a, const char* b) {
  ctx.resource(a, "v1", "A")["spec"]["x"] =
      ctx.existing(b).observed()["status"]["y"];
}

TEST(Waits, VpcSubnetAndSecurityGroupTakeThreeCalls) {
  Caller call;
  call(Network);
  EXPECT_THAT(
      call.Results(),
      ElementsAre(
          "NORMAL Dependencies: subnet waits for vpc.status.atProvider.vpcId "
          "(not created yet); security-group waits for "
          "subnet.status.atProvider.arn (waits itself), "
          "subnet.status.atProvider.id (waits itself), "
          "vpc.status.atProvider.vpcId (not created yet); graph: subnet -> "
          "security-group, vpc -> security-group, vpc -> subnet"));
  EXPECT_NE(call.Resource("vpc"), "");
  EXPECT_EQ(call.response.desired().resources_size(), 1);

  call.Observed("vpc", "{status: {atProvider: {vpcId: vpc-1}}}");
  call(Network);
  EXPECT_EQ(call.response.desired().resources_size(), 2);
  EXPECT_THAT(call.Results(),
              ElementsAre("NORMAL Dependencies: security-group waits for "
                          "subnet.status.atProvider.arn (not created yet), "
                          "subnet.status.atProvider.id (not created yet); "
                          "graph: subnet -> security-group, vpc -> "
                          "security-group, vpc -> subnet"));

  call.Observed("subnet", "{status: {atProvider: {id: s-1, arn: 'arn:s'}}}");
  call(Network);
  EXPECT_EQ(call.response.desired().resources_size(), 3);
  EXPECT_THAT(call.Results(), IsEmpty());
  EXPECT_EQ(
      call.Resource("security-group"),
      YamlAsJson("{apiVersion: ec2.aws.upbound.io/v1beta1, kind: "
                 "SecurityGroup, spec: {forProvider: {vpcId: vpc-1, subnetId: "
                 "s-1, description: 'for arn:s'}}}"));

  // The status of the vpc vanishes for a call: all three stay.
  call.Observed("security-group",
                "{spec: {forProvider: {vpcId: vpc-1, subnetId: s-1}}}");
  call.Observed("subnet",
                "{spec: {forProvider: {vpcId: vpc-1}}, status: {atProvider: "
                "{id: s-1, arn: 'arn:s'}}}");
  call.Observed("vpc", "{}");
  call(Network);
  EXPECT_EQ(call.response.desired().resources_size(), 3);
  EXPECT_EQ(call.Resource("subnet"),
            YamlAsJson("{apiVersion: ec2.aws.upbound.io/v1beta1, kind: "
                       "Subnet, spec: {forProvider: {vpcId: vpc-1}}}"));
  EXPECT_THAT(call.Results(),
              ElementsAre("WARNING KeptObserved: "
                          "security-group.spec.forProvider.vpcId, "
                          "subnet.spec.forProvider.vpcId"));
}

TEST(Waits, SampleOfTheDesign) {
  Caller call;
  call([](fn::Context& ctx) {
    auto vpc = ctx.resource("vpc", kVersion, "VPC");
    auto subnet = ctx.resource("subnet", kVersion, "Subnet");
    auto group = ctx.resource("security-group", kVersion, "SecurityGroup");
    auto id = vpc.observed()["status"]["atProvider"]["vpcId"];
    subnet["spec"]["forProvider"]["vpcId"] = id;
    group["spec"]["forProvider"]["vpcId"] = id;
    group["spec"]["forProvider"]["subnetId"] =
        subnet.observed()["status"]["atProvider"]["id"];
  });
  EXPECT_THAT(
      call.Results(),
      ElementsAre(
          "NORMAL Dependencies: subnet waits for vpc.status.atProvider.vpcId "
          "(not created yet); security-group waits for "
          "subnet.status.atProvider.id (waits itself), "
          "vpc.status.atProvider.vpcId (not created yet); graph: subnet -> "
          "security-group, vpc -> security-group, vpc -> subnet"));
}

void AThenB(fn::Context& ctx) {
  ctx.resource("a", "v1", "A");
  Wait(ctx, "b", "a");
}

TEST(Waits, NotSynced) {
  Caller call;
  call.Observed("a",
                "{status: {conditions: [{type: Ready, status: 'True'}, {type: "
                "Synced, status: 'False'}]}}");
  call(AThenB);
  EXPECT_THAT(call.Results(),
              ElementsAre("NORMAL Dependencies: b waits for a.status.y (not "
                          "synced); graph: a -> b"));
}

TEST(Waits, NotReadyYet) {
  Caller call;
  for (const char* observed :
       {"{}", "{status: {conditions: [{type: Synced, status: 'True'}]}}",
        "{status: {conditions: [{type: Synced, status: 'True'}, {type: Ready, "
        "status: 'False'}]}}"}) {
    call.Observed("a", observed)(AThenB);
    EXPECT_THAT(call.Results(),
                ElementsAre("NORMAL Dependencies: b waits for a.status.y (not "
                            "ready yet); graph: a -> b"));
  }
}

TEST(Waits, ReadyWithoutItIsAWarning) {
  Caller call;
  call.Observed("a",
                "{status: {conditions: [{type: Synced, status: 'True'}, {type: "
                "Ready, status: 'True'}]}}");
  call(AThenB);
  EXPECT_THAT(call.Results(),
              ElementsAre("NORMAL Dependencies: b waits for a.status.y (ready "
                          "without it); graph: a -> b",
                          "WARNING NeverResolves: b waits for a.status.y "
                          "(ready without it)"));
}

TEST(Waits, NotDesiredByAnyoneIsAWarning) {
  Caller call;
  call([](fn::Context& ctx) { Wait(ctx, "b", "a"); });
  EXPECT_THAT(call.Results(),
              ElementsAre("NORMAL Dependencies: b waits for a.status.y (not "
                          "desired by anyone); graph: a -> b",
                          "WARNING NotDesired: b waits for a.status.y (not "
                          "desired by anyone)"));
  // An earlier step desires it.
  call.Desired("a", "{kind: A}")([](fn::Context& ctx) { Wait(ctx, "b", "a"); });
  EXPECT_THAT(call.Results(),
              ElementsAre("NORMAL Dependencies: b waits for a.status.y (not "
                          "created yet); graph: a -> b"));
}

TEST(Waits, NoneFound) {
  Caller call;
  const auto function = [](fn::Context& ctx) {
    auto vpcs = ctx.require("my.vpcs", kVersion, "VPC", fn::MatchLabels({}));
    ctx.resource("b", "v1", "B")["spec"]["x"] =
        vpcs.first().observed()["status"]["y"];
  };
  call.Required("my.vpcs", {})(function);
  EXPECT_THAT(
      call.Results(),
      ElementsAre("NORMAL Dependencies: b waits for required.\"my.vpcs\"[0]."
                  "status.y (none found); graph: required.\"my.vpcs\"[0] -> "
                  "b"));
  call.Required("my.vpcs", {"{kind: VPC}"})(function);
  EXPECT_THAT(
      call.Results(),
      ElementsAre("NORMAL Dependencies: b waits for required.\"my.vpcs\"[0]."
                  "status.y (not ready yet); graph: required.\"my.vpcs\"[0] "
                  "-> b"));
}

TEST(Waits, ExplicitDependencies) {
  Caller call;
  fn::Until until = fn::Until::kReady;
  const auto function = [&](fn::Context& ctx) {
    auto a = ctx.resource("a", "v1", "A");
    ctx.resource("b", "v1", "B").depends_on(a, until);
  };
  call(function);
  EXPECT_THAT(call.Results(),
              ElementsAre("NORMAL Dependencies: b waits for a (not created "
                          "yet); graph: a -> b"));
  call.Observed("a", "{}")(function);
  EXPECT_THAT(call.Results(),
              ElementsAre("NORMAL Dependencies: b waits for a (not ready "
                          "yet); graph: a -> b"));
  EXPECT_EQ(call.Resource("b"), "");
  until = fn::Until::kObserved;
  call(function);
  EXPECT_THAT(call.Results(), IsEmpty());
  EXPECT_NE(call.Resource("b"), "");
  until = fn::Until::kReady;
  call.Observed("a", "{status: {conditions: [{type: Ready, status: 'True'}]}}");
  call(function);
  EXPECT_NE(call.Resource("b"), "");
  // A resource that exists never waits.
  call.Observed("a", "{}").Observed("b", "{}")(function);
  EXPECT_NE(call.Resource("b"), "");
  EXPECT_THAT(call.Results(), IsEmpty());
}

TEST(Waits, GraphSettings) {
  Caller call;
  call.options.graph = fn::Graph::kNever;
  call(AThenB);
  EXPECT_THAT(call.Results(),
              ElementsAre("NORMAL Dependencies: b waits for a.status.y (not "
                          "created yet)"));
  call.options.graph = fn::Graph::kAlways;
  call.Observed("a", "{status: {'y': 1}}")(AThenB);
  EXPECT_THAT(call.Results(),
              ElementsAre("NORMAL Dependencies: graph: a -> b"));
  call.options.graph = fn::Graph::kWaiting;
  call(AThenB);
  EXPECT_THAT(call.Results(), IsEmpty());
  // Without dependencies there is no graph.
  call.options.graph = fn::Graph::kAlways;
  call([](fn::Context& ctx) { ctx.resource("a", "v1", "A"); });
  EXPECT_THAT(call.Results(), IsEmpty());
}

TEST(Waits, WaitingCondition) {
  Caller call;
  call.options.waiting_condition = "Composed";
  const std::string text =
      "b waits for a.status.y (not created yet); graph: a -> b";
  call(AThenB);
  EXPECT_THAT(call.Conditions(),
              ElementsAre("Composed=FALSE Waiting: " + text));
  EXPECT_THAT(call.Results(), ElementsAre("NORMAL Dependencies: " + text));
  // The composite has the condition already: no event.
  call.Composite(
      "{kind: XNet, status: {conditions: [{type: Composed, status: "
      "'False', reason: Waiting, message: '" +
      text + "'}]}}");
  call(AThenB);
  EXPECT_THAT(call.Conditions(),
              ElementsAre("Composed=FALSE Waiting: " + text));
  EXPECT_THAT(call.Results(), IsEmpty());
  // It says something else.
  call.Observed("a", "{}")(AThenB);
  EXPECT_THAT(call.Results(),
              ElementsAre("NORMAL Dependencies: b waits for a.status.y (not "
                          "ready yet); graph: a -> b"));
  call.Observed("a", "{status: {'y': 1}}")(AThenB);
  EXPECT_THAT(call.Conditions(), ElementsAre("Composed=TRUE Complete"));
  EXPECT_THAT(call.Results(), IsEmpty());
}

TEST(Waits, CyclesAreFatal) {
  Caller call;
  call([](fn::Context& ctx) {
    auto a = ctx.resource("a", "v1", "A"), b = ctx.resource("b", "v1", "B");
    a["spec"]["x"] = b.observed()["status"]["y"];
    b["spec"]["z"] = a.observed()["status"]["w"];
  });
  EXPECT_THAT(
      call.Results(),
      ElementsAre("FATAL: dependency cycle: a -> b -> a (a.spec.x waits for "
                  "b.status.y; b.spec.z waits for a.status.w)"));
  EXPECT_FALSE(call.response.has_desired());
}

TEST(Waits, EachCircleIsReported) {
  Caller call;
  call([](fn::Context& ctx) {
    // d waits for a circle and is in none.
    for (const auto& [from, to] :
         std::initializer_list<std::pair<const char*, const char*>>{
             {"f", "e"},
             {"e", "f"},
             {"c", "a"},
             {"b", "c"},
             {"a", "b"},
             {"d", "a"}}) {
      Wait(ctx, from, to);
    }
    Wait(ctx, "g", "g");
    ctx.existing("h").depends_on(ctx.resource("h", "v1", "A"));
  });
  EXPECT_THAT(
      call.Results(),
      ElementsAre(
          "FATAL: dependency cycle: a -> b -> c -> a (a.spec.x waits for "
          "b.status.y; b.spec.x waits for c.status.y; c.spec.x waits for "
          "a.status.y); e -> f -> e (e.spec.x waits for f.status.y; f.spec.x "
          "waits for e.status.y); g -> g (g.spec.x waits for g.status.y); h "
          "-> h (h waits for h)"));
}

TEST(Waits, ACircleWithAnObservedMemberIsNoCycle) {
  Caller call;
  call.Observed("b", "{}")([](fn::Context& ctx) {
    Wait(ctx, "a", "b");
    Wait(ctx, "b", "a");
  });
  EXPECT_THAT(
      call.Results(),
      ElementsAre("NORMAL Dependencies: a waits for b.status.y (not ready "
                  "yet); graph: a -> b, b -> a",
                  "WARNING KeptObserved: b.spec.x"));
  EXPECT_NE(call.Resource("b"), "");
}

TEST(Waits, MessagesForThreeThousandResourcesStayShort) {
  const auto name = [](int i) {
    return absl::StrCat("r", std::string(4 - absl::StrCat(i).size(), '0'), i);
  };
  Caller call;
  const auto chain = [&](fn::Context& ctx) {
    ctx.resource(name(0), "v1", "A");
    for (int i = 1; i < 3000; ++i) {
      ctx.resource(name(i), "v1", "A")["spec"]["x"] =
          ctx.existing(name(i - 1)).observed()["status"]["y"];
    }
  };
  call(chain);
  ASSERT_EQ(call.response.results_size(), 1);
  std::string text = call.response.results(0).message();
  EXPECT_LE(text.size(), 1024u);
  EXPECT_THAT(text, testing::StartsWith(
                        "r0001 waits for r0000.status.y (not created yet); "
                        "r0002 waits for r0001.status.y (waits itself); "));
  EXPECT_THAT(text, testing::EndsWith(" (waits itself); and 2978 more"));

  for (int i = 0; i < 3000; ++i) call.Observed(name(i), "{}");
  call(chain);
  ASSERT_EQ(call.response.results_size(), 1);
  text = call.response.results(0).message();
  EXPECT_LE(text.size(), 1024u);
  EXPECT_THAT(text, testing::StartsWith("r0001.spec.x, r0002.spec.x, "));
  EXPECT_THAT(text, testing::EndsWith(", r0072.spec.x; and 2927 more"));

  call.request.mutable_observed()->clear_resources();
  call([&](fn::Context& ctx) {
    chain(ctx);
    ctx.resource(name(0), "v1", "A")["spec"]["x"] =
        ctx.existing(name(2999)).observed()["status"]["y"];
  });
  ASSERT_EQ(call.response.results_size(), 1);
  text = call.response.results(0).message();
  EXPECT_LE(text.size(), 1024u);
  EXPECT_THAT(text, testing::StartsWith(
                        "dependency cycle: r0000 -> r2999 -> r2998 -> "));
  // One resource that waits for all others.
  call([&](fn::Context& ctx) {
    for (int i = 1; i < 3000; ++i) {
      ctx.resource("r", "v1", "A")["spec"][name(i)] =
          ctx.existing(name(i)).observed()["status"]["y"];
    }
  });
  for (const v1::Result& result : call.response.results()) {
    EXPECT_LE(result.message().size(), 1024u);
  }
}

}  // namespace
}  // namespace fncache::sdk
