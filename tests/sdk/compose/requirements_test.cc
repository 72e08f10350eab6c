// SPDX-License-Identifier: Apache-2.0
// SDK.md, section 6: requirements, schemas, input.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/sdk/compose/caller.h"

namespace fncache::sdk {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

fn::Required<fn::Resource> Vpcs(fn::Context& ctx) {
  return ctx.require("vpcs", "ec2/v1", "VPC",
                     fn::MatchLabels({{"env", "prod"}}));
}

std::string Requested(const v1::ResourceSelector& selector) {
  std::string text = selector.api_version() + " " + selector.kind();
  if (selector.has_match_name()) text += " name=" + selector.match_name();
  if (selector.has_match_labels()) text += " labels";
  for (const auto& [key, value] : selector.match_labels().labels()) {
    text += " " + key + "=" + value;
  }
  if (selector.has_namespace_()) text += " in " + selector.namespace_();
  return text;
}

std::map<std::string, std::string> Requested(const Caller& call) {
  std::map<std::string, std::string> all;
  for (const auto& [name, one] : call.response.requirements().resources()) {
    all[name] = Requested(one);
  }
  return all;
}

TEST(Requirements, FourStates) {
  Caller call;
  fn::State state = fn::State::kFound;
  size_t size = 1;
  const auto function = [&](fn::Context& ctx) {
    const auto vpcs = Vpcs(ctx);
    state = vpcs.state();
    size = 0;
    for (const fn::Resource vpc : vpcs) size += vpc.exists();
    EXPECT_EQ(vpcs.size(), size);
  };
  call(function);
  EXPECT_EQ(state, fn::State::kPending);
  EXPECT_EQ(size, 0u);
  EXPECT_THAT(Requested(call), ElementsAre(std::make_pair("vpcs",
                                                          "ec2/v1 VPC labels "
                                                          "env=prod")));
  call.Required("vpcs", {})(function);
  EXPECT_EQ(state, fn::State::kMissing);
  EXPECT_EQ(size, 0u);
  EXPECT_EQ(Requested(call).size(), 1u);
  call.Required("vpcs", {"{kind: VPC}", "{kind: Other}"})(function);
  EXPECT_EQ(state, fn::State::kFound);
  EXPECT_EQ(size, 2u);
  EXPECT_EQ(Requested(call).size(), 1u);
  // The runner advertises capabilities, but not this one.
  call.request.mutable_meta()->clear_capabilities();
  call.request.mutable_meta()->add_capabilities(v1::CAPABILITY_CAPABILITIES);
  call.request.clear_required_resources();
  call(function);
  EXPECT_EQ(state, fn::State::kUnsupported);
  EXPECT_FALSE(call.response.has_requirements());
  EXPECT_TRUE(call.response.meta().has_ttl());
  // Nothing waits for what never comes.
  call([](fn::Context& ctx) {
    const auto vpcs = ctx.require("vpcs", "ec2/v1", "VPC", fn::MatchName("x"));
    auto a = ctx.resource("a", "v1", "A");
    a["spec"]["id"] = vpcs.first()["status"]["id"];
    a["spec"]["own"] = 1;
  });
  EXPECT_EQ(call.Resource("a"),
            YamlAsJson("{apiVersion: v1, kind: A, spec: {own: 1}}"));
  EXPECT_THAT(call.Results(), IsEmpty());
  // Nor does a resource lose what an earlier runner brought.
  call.Observed("a", "{spec: {id: i, all: {k: 1}}}")([](fn::Context& ctx) {
    const auto vpcs = ctx.require("vpcs", "ec2/v1", "VPC", fn::MatchName("x"));
    auto a = ctx.resource("a", "v1", "A");
    a["spec"]["id"] = vpcs.first()["status"]["id"];
    a["spec"]["all"] = vpcs.first()["spec"];
  });
  EXPECT_EQ(call.Resource("a"), YamlAsJson("{apiVersion: v1, kind: A,"
                                           " spec: {all: {k: 1}, id: i}}"));
  EXPECT_THAT(call.Results(),
              ElementsAre("WARNING KeptObserved: a.spec.all, a.spec.id"));
}

TEST(Requirements, ItemsKeepTheRunnersOrder) {
  Caller call;
  call.Required("vpcs", {"{metadata: {name: z}}", "{metadata: {name: a}}"});
  call([](fn::Context& ctx) {
    const auto vpcs = Vpcs(ctx);
    EXPECT_EQ(vpcs[0].name(), "z");
    EXPECT_EQ(vpcs[1].observed().name(), "a");
    EXPECT_EQ(vpcs.first().name(), "z");
    EXPECT_FALSE(vpcs[2].exists());
  });
  EXPECT_THAT(call.Results(), IsEmpty());
}

TEST(Requirements, FatalResponsesRequestTheSame) {
  Caller call;
  call([](fn::Context& ctx) {
    Vpcs(ctx);
    ctx.require_schema("s", "apps/v1", "Deployment");
    ctx.fatal("no");
  });
  EXPECT_EQ(Requested(call).size(), 1u);
  EXPECT_EQ(call.response.requirements().schemas().at("s").kind(),
            "Deployment");
}

TEST(Requirements, AnotherSelectorOfTheSameNameIsFatal) {
  Caller call;
  call([](fn::Context& ctx) {
    Vpcs(ctx);
    Vpcs(ctx);
    ctx.bootstrap("vpcs");
  });
  EXPECT_THAT(call.Results(), IsEmpty());
  call([](fn::Context& ctx) {
    Vpcs(ctx);
    ctx.require("vpcs", "ec2/v1", "VPC", fn::MatchLabels({{"env", "dev"}}));
  });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: required.vpcs: is required twice, with "
                          "other selectors"));
  EXPECT_EQ(Requested(call).size(), 1u);
  call([](fn::Context& ctx) {
    ctx.require_schema("s", "apps/v1", "Deployment");
    ctx.require_schema("s", "apps/v1", "DaemonSet");
  });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: required.s: is required twice, with other "
                          "selectors"));
}

TEST(Requirements, BootstrapRequestsNothing) {
  Caller call;
  const auto function = [](fn::Context& ctx) {
    const auto vpcs = ctx.bootstrap("vpcs");
    ctx.composite()["status"]["state"] = static_cast<int>(vpcs.state());
    ctx.composite()["status"]["schema"] =
        static_cast<int>(ctx.bootstrap_schema("s").state());
  };
  call(function);
  EXPECT_FALSE(call.response.has_requirements());
  EXPECT_EQ(call.DesiredComposite(),
            YamlAsJson("{apiVersion: example.org/v1, kind: XNet, status: "
                       "{schema: 0, state: 0}}"));
  call.Required("vpcs", {"{kind: VPC}"});
  (*call.request.mutable_required_schemas())["s"];
  call(function);
  EXPECT_EQ(call.DesiredComposite(),
            YamlAsJson("{apiVersion: example.org/v1, kind: XNet, status: "
                       "{schema: 1, state: 2}}"));
}

TEST(Requirements, AwaitedSelectorsRequestNothing) {
  Caller call;
  fn::State state = fn::State::kFound;
  const auto function = [&](fn::Context& ctx) {
    const auto first = ctx.require("first", "v1", "A", fn::MatchName("x"));
    const auto second = ctx.require(
        "second", "v1", "B",
        fn::MatchName(first.first()["spec"]["ref"].as<std::string>()).in("n"));
    state = second.state();
    ctx.resource("r", "v1", "R")["spec"]["x"] = second.first()["status"]["id"];
  };
  // The runner answers both, of another request: still nothing is requested.
  call.Required("second", {"{status: {id: 1}}"})(function);
  EXPECT_EQ(state, fn::State::kPending);
  EXPECT_THAT(Requested(call),
              ElementsAre(std::make_pair("first", "v1 A name=x")));
  EXPECT_EQ(call.Resource("r"), "");
  call.Required("first", {"{spec: {ref: two}}"})(function);
  EXPECT_THAT(Requested(call),
              ElementsAre(std::make_pair("first", "v1 A name=x"),
                          std::make_pair("second", "v1 B name=two in n")));
  EXPECT_EQ(state, fn::State::kFound);
  EXPECT_NE(call.Resource("r"), "");
}

TEST(Requirements, ASelectorWithoutItsValueIsFatal) {
  Caller call;
  call([](fn::Context& ctx) {
    ctx.require(
        "r", "v1", "A",
        fn::MatchLabels({{"env", ctx.input()["env"].as<std::string>()}}));
  });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: required.r: the label env is needed"));
  call([](fn::Context& ctx) {
    ctx.require("r", "v1", "A",
                fn::MatchName(ctx.input()["env"].as<std::string>()));
  });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: required.r: the name to match is needed"));
  // Without namespaces there are cluster-scoped objects.
  call([](fn::Context& ctx) {
    ctx.require("r", "v1", "A",
                fn::MatchName("x").in(ctx.input()["env"].as<std::string>()));
  });
  EXPECT_THAT(Requested(call), ElementsAre(std::make_pair("r", "v1 A name=x")));
}

TEST(Requirements, AtLeastIsFatalOnceTheRunnerHasAnswered) {
  Caller call;
  const auto function = [](fn::Context& ctx) {
    for (const fn::Resource vpc : Vpcs(ctx).at_least(2)) {
      ctx.resource(vpc.name(), "v1", "A");
    }
  };
  call(function);
  EXPECT_THAT(call.Results(), IsEmpty());
  call.Required("vpcs", {"{metadata: {name: v}}"})(function);
  EXPECT_THAT(
      call.Results(),
      ElementsAre("FATAL: required.vpcs: 2 items are needed, there are 1"));
  call.Required("vpcs",
                {"{metadata: {name: v}}", "{metadata: {name: w}}"})(function);
  EXPECT_THAT(call.Results(), IsEmpty());
}

// Nothing is requested then, so the runner has answered nothing.
TEST(Requirements, AtLeastIsNotFatalWhileTheSelectorIsAwaited) {
  Caller call;
  fn::State state = fn::State::kFound;
  const auto function = [&](fn::Context& ctx) {
    const auto net = ctx.resource("net", "v1", "Net");
    const auto vpcs =
        ctx.require("vpcs", "v1", "Vpc",
                    fn::MatchName(net.observed()["status"]["vpc"]))
            .at_least(1);
    state = vpcs.state();
    for (const fn::Resource vpc : vpcs) ctx.resource(vpc.name(), "v1", "A");
    ctx.resource("r", "v1", "R")["spec"]["x"] = vpcs.first()["status"]["id"];
  };
  call(function);
  EXPECT_EQ(state, fn::State::kPending);
  EXPECT_FALSE(call.response.has_requirements());
  EXPECT_NE(call.Resource("net"), "");
  EXPECT_EQ(call.Resource("r"), "");
  // An answer to an earlier request is none to the one that is still to come.
  call.Required("vpcs", {"{metadata: {name: v}}"})(function);
  EXPECT_EQ(state, fn::State::kPending);
  EXPECT_EQ(call.Resource("v"), "");
  call.Observed("net", "{status: {vpc: v}}").Required("vpcs", {});
  call(function);
  EXPECT_THAT(
      call.Results(),
      ElementsAre("FATAL: required.vpcs: 1 items are needed, there are 0"));
  call.Required("vpcs", {"{metadata: {name: v}}"})(function);
  EXPECT_NE(call.Resource("v"), "");
}

// A list of "vpcs" whose selector has a field of the account "acc".
void Peer(fn::Context& ctx, const fn::Observable<std::string>& owner) {
  for (const fn::Resource vpc :
       ctx.require("vpcs", "ec2/v1", "VPC", fn::MatchLabels({{"owner", owner}}))
           .at_least(1)) {
    ctx.resource("peering-" + vpc.name(), "v1", "Peering");
  }
}

TEST(Requirements, AtLeastIsFatalWhereTheSelectorsValueCannotCome) {
  Caller call;
  call.Desired("peering-v", "{apiVersion: v1, kind: Peering}");
  const auto function = [](fn::Context& ctx) {
    const auto acc = ctx.require("acc", "v1", "Account", fn::MatchName("a"));
    Peer(ctx, fn::Concat("id-", acc.first()["status"]["id"], "-",
                         acc.first()["metadata"]["name"]));
  };
  // The runner answers "acc" and calls again.
  call(function);
  EXPECT_THAT(call.Results(), IsEmpty());
  const std::string fatal =
      "FATAL: required.vpcs: 1 items are needed, the selector waits for "
      "required.acc[0].status.id";
  call.Required("acc", {"{metadata: {name: a}}"})(function);
  EXPECT_THAT(call.Results(), ElementsAre(fatal));
  EXPECT_NE(call.Resource("peering-v"), "");
  EXPECT_EQ(Requested(call).size(), 1u);
  call.Required("acc", {})(function);
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: required.vpcs: 1 items are needed, the "
                          "selector waits for required.acc[0].metadata.name, "
                          "required.acc[0].status.id"));
  call.Required("acc", {"{metadata: {name: a}, status: {id: o}}"})(function);
  EXPECT_THAT(call.Results(), IsEmpty());
}

TEST(Requirements, AtLeastLetsAComposedSourceBeCreatedFirst) {
  Caller call;
  const auto function = [](fn::Context& ctx) {
    auto acc = ctx.resource("acc", "v1", "Account");
    Peer(ctx, acc.observed()["status"]["id"].as<std::string>());
  };
  call(function);
  EXPECT_THAT(call.Results(), IsEmpty());
  EXPECT_NE(call.Resource("acc"), "");
  call.Observed("acc", "{apiVersion: v1, kind: Account}")(function);
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: required.vpcs: 1 items are needed, the "
                          "selector waits for acc.status.id"));
}

TEST(Requirements, AtLeastFollowsChainsOfSelectors) {
  Caller call;
  const auto function = [](fn::Context& ctx) {
    const auto a = ctx.require("a", "v1", "A", fn::MatchName("x"));
    const auto b = ctx.require(
        "b", "v1", "B", fn::MatchName(a.first()["id"].as<std::string>()));
    Peer(ctx, b.first()["id"].as<std::string>());
  };
  call(function);
  EXPECT_THAT(call.Results(), IsEmpty());
  call.Required("a", {"{id: i}"})(function);
  EXPECT_THAT(call.Results(), IsEmpty());
  call.Required("a", {"{kind: A}"})(function);
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: required.vpcs: 1 items are needed, the "
                          "selector waits for required.b[0].id"));
  // One of two sources can still come.
  call([](fn::Context& ctx) {
    const auto a = ctx.require("a", "v1", "A", fn::MatchName("x"));
    const auto c = ctx.require("c", "v1", "C", fn::MatchName("x"));
    Peer(ctx, fn::Concat(a.first()["id"], c.first()["id"]));
  });
  EXPECT_THAT(call.Results(), IsEmpty());
}

TEST(Requirements, AtLeastIsFatalWhereTheStepRequestsNoSuchName) {
  Caller call;
  const auto function = [](fn::Context& ctx) {
    ctx.bootstrap("zones").at_least(0);
    ctx.bootstrap("zones").at_least(2);
  };
  call(function);
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: required.zones: 2 items are needed, the "
                          "Composition's step requests no such name"));
  call.Required("zones", {"{kind: Z}", "{kind: Z}"})(function);
  EXPECT_THAT(call.Results(), IsEmpty());
}

TEST(Requirements, TheNameOfAnItemThatIsNotThereIsFatalOnceAnswered) {
  Caller call;
  call.Desired("peering-v", "{apiVersion: v1, kind: Peering}");
  const auto function = [](fn::Context& ctx) {
    const auto vpcs = Vpcs(ctx);
    const std::string name = vpcs.first().name();
    if (vpcs.state() != fn::State::kPending) {
      ctx.resource("peering-" + name, "v1", "Peering");
    }
  };
  call(function);
  EXPECT_THAT(call.Results(), IsEmpty());
  call.Required("vpcs", {})(function);
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: required.vpcs[0].metadata.name is needed"));
  EXPECT_NE(call.Resource("peering-v"), "");
  call.Required("vpcs", {"{metadata: {name: v}}"})(function);
  EXPECT_THAT(call.Results(), IsEmpty());
}

TEST(Requirements, LabelsWithoutTheirNamespaceAreFatal) {
  Caller call;
  const auto function = [](fn::Context& ctx) {
    const auto space = ctx.input()["space"].as<std::string>();
    ctx.require("r", "v1", "A", fn::MatchLabels({{"a", "b"}}).in(space));
  };
  for (const char* const input : {"{}", "{space: null}", "{space: ''}"}) {
    call.Input(input)(function);
    EXPECT_THAT(call.Results(),
                ElementsAre("FATAL: required.r: the namespace is needed"));
  }
  call.Input("{space: east}")(function);
  EXPECT_THAT(Requested(call),
              ElementsAre(std::make_pair("r", "v1 A labels a=b in east")));
}

TEST(Requirements, OlderRunnersGetExtraResourcesToo) {
  Caller call;
  fn::State state = fn::State::kFound;
  const auto function = [&](fn::Context& ctx) {
    state = Vpcs(ctx).state();
    ctx.resource("r", "v1", "R")["spec"]["x"] =
        Vpcs(ctx).first()["status"]["id"];
  };
  call.OldRunner()(function);
  EXPECT_EQ(state, fn::State::kPending);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  EXPECT_EQ(
      Requested(call.response.requirements().extra_resources().at("vpcs")),
      Requested(call)["vpcs"]);
  // No TTL while it is pending, or a cache would keep the incomplete response.
  EXPECT_FALSE(call.response.meta().has_ttl());
  auto& extra = *call.request.mutable_extra_resources();
#pragma GCC diagnostic pop
  *extra["vpcs"].add_items()->mutable_resource() =
      FromYaml("{status: {id: 7}}");
  call(function);
  EXPECT_EQ(state, fn::State::kFound);
  EXPECT_EQ(call.Resource("r"),
            YamlAsJson("{apiVersion: v1, kind: R, spec: {x: 7}}"));
  EXPECT_TRUE(call.response.meta().has_ttl());
  EXPECT_EQ(call.result.depends,
            "reads=(\"extra_resources.vpcs.items.*.resource.status.id\")");
}

TEST(Requirements, ItemsAreReadOnly) {
  Caller call;
  call.Required("vpcs", {"{spec: {x: 1}}"});
  call([](fn::Context& ctx) { Vpcs(ctx).first()["spec"]["x"] = 2; });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: required.vpcs[0].spec.x: is read-only"));
  call([](fn::Context& ctx) { Vpcs(ctx).first().ready(fn::Ready::kTrue); });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: required.vpcs[0]: is read-only"));
}

TEST(Requirements, AnItemCanBeDependedOn) {
  Caller call;
  const auto function = [](fn::Context& ctx) {
    ctx.resource("r", "v1", "R").depends_on(Vpcs(ctx).first());
  };
  call(function);
  EXPECT_THAT(call.Results(),
              ElementsAre("NORMAL Dependencies: r waits for required.vpcs[0] "
                          "(none found); graph: required.vpcs[0] -> r"));
  call.Required(
      "vpcs",
      {"{status: {conditions: [{type: Ready, status: 'True'}]}}"})(function);
  EXPECT_NE(call.Resource("r"), "");
}

constexpr char kSchema[] =
    "{type: object, required: [spec], properties: {apiVersion: {type: string}, "
    "kind: {type: string}, spec: {type: object, properties: {replicas: {type: "
    "integer}}}}}";

TEST(Requirements, SchemasHaveTheSameStates) {
  Caller call;
  fn::State state = fn::State::kFound;
  std::vector<std::string> problems;
  const auto function = [&](fn::Context& ctx) {
    auto app = ctx.resource("app", "apps/v1", "Deployment");
    app["spec"]["replicas"] = "many";
    const auto schema = ctx.require_schema("s", "apps/v1", "Deployment");
    state = schema.state();
    problems.clear();
    for (const fn::Problem& problem : schema.Validate(app)) {
      problems.push_back(problem.path + " " + problem.text);
    }
  };
  call(function);
  EXPECT_EQ(state, fn::State::kPending);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_EQ(call.response.requirements().schemas().at("s").api_version(),
            "apps/v1");
  auto& schema = (*call.request.mutable_required_schemas())["s"];
  call(function);
  EXPECT_EQ(state, fn::State::kMissing);
  EXPECT_THAT(problems, IsEmpty());
  *schema.mutable_openapi_v3() = FromYaml(kSchema);
  call(function);
  EXPECT_EQ(state, fn::State::kFound);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0], testing::StartsWith("spec.replicas "));
  call.request.mutable_meta()->clear_capabilities();
  call.request.mutable_meta()->add_capabilities(v1::CAPABILITY_CAPABILITIES);
  call(function);
  EXPECT_EQ(state, fn::State::kUnsupported);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_FALSE(call.response.has_requirements());
}

struct Size : fn::Object {
  using Object::Object;
  static constexpr char kSchema[] =
      R"({"type":"object","required":["spec"],"properties":{"spec":{"type":)"
      R"("object","properties":{"size":{"type":"number"}}}}})";
};

TEST(Requirements, InputIsCheckedAgainstItsSchema) {
  Caller call;
  double size = 0;
  const auto function = [&](fn::Context& ctx) {
    size = ctx.input<Size>()["spec"]["size"].as<double>().value_or(0);
  };
  call.Input("{spec: {size: 5}}")(function);
  EXPECT_THAT(call.Results(), IsEmpty());
  EXPECT_EQ(size, 5);
  call.Input("{spec: {size: big}}")(function);
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: input.spec.size: must be a number, is text"));
}

}  // namespace
}  // namespace fncache::sdk
