// SPDX-License-Identifier: Apache-2.0
// Calls made from YAML, their answers and the matchers.
#include <sstream>
#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "fncache/function/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::function::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

TEST(CallTest, AFunctionSeesEachSectionOfItsRequest) {
  Call call([](Context& ctx) {
    Value seen = ctx.output();
    seen["composite"] = ctx.composite().observed()["spec"]["size"];
    Resource bucket = ctx.existing("bucket");
    seen["bucket"] = bucket.observed()["status"]["id"];
    seen["password"] = bucket.connection_details()["password"];
    seen["own"] = ctx.composite().connection_details()["user"];
    seen["earlier"] = bucket["spec"]["region"];
    seen["status"] = ctx.composite()["status"]["phase"];
    seen["input"] = ctx.input()["x"];
    seen["context"] = ctx.context("example.org/zone");
    seen["key"] = ctx.credentials("cloud")["key"];
    seen["item"] =
        ctx.require("vpcs", "v1", "VPC", MatchName("a"))[0].observed()["x"];
    seen["schema"] = ctx.require_schema("app", "v1", "App").schema()["type"];
    seen["advertises"] = ctx.advertises_capabilities();
  });
  call.composite("spec: {size: 3}")
      .connection_details("", {{"user", "me"}})
      .observed("bucket", "status: {id: b-1}")
      .connection_details("bucket", {{"password", "x"}})
      .desired("bucket", "{apiVersion: v1, kind: Bucket, spec: {region: eu}}")
      .desired_composite("status: {phase: New}")
      .input("x: 1.5")
      .context("example.org/zone", "[a, b]")
      .credentials("cloud", {{"key", "secret"}})
      .required("vpcs", {"x: true"})
      .schema("app", "type: object");
  const Answer answer = call();
  EXPECT_EQ(answer.fatal(), "");
  EXPECT_THAT(answer.output(), IsYaml(R"(
      composite: 3
      bucket: b-1
      password: x
      own: me
      earlier: eu
      status: New
      input: 1.5
      context: [a, b]
      key: secret
      item: true
      schema: object
      advertises: true)"));
  EXPECT_FALSE(Call(call).capabilities({})().output()["advertises"].as<bool>());
}

TEST(CallTest, AnAnswerHasEachSectionOfTheResponse) {
  Call call([](Context& ctx) {
    Resource a = ctx.resource("a", "v1", "A");
    a["spec"]["x"] = 1;
    a.ready(Ready::kTrue);
    Resource b = ctx.resource("b", "v1", "B");
    b["spec"]["y"] = a.observed()["status"]["y"];
    Resource c = ctx.resource("c", "v1", "C");
    c["spec"]["why"] = a.observed()["status"]["y"];
    ctx.composite()["status"]["phase"] = "New";
    ctx.composite().connection_detail("user", "me");
    ctx.require("vpcs", "v1", "VPC", MatchLabels({{"env", "prod"}}).in("ns"));
    ctx.require("one", "v1", "VPC", MatchName("v"));
    ctx.require_schema("app", "v1", "App");
    ctx.set_context("k", "v");
    ctx.warning("careful").reason("Because").target(Target::kCompositeAndClaim);
    ctx.condition("Made", Status::kFalse, "NotYet").message("soon");
    ctx.ttl(absl::Seconds(5));
  });
  const Answer answer =
      call.composite("kind: XR").observed("c", "spec: {why: 2}").options([] {
        Options options;
        options.graph = Graph::kNever;
        options.pure = true;
        return options;
      }())();
  EXPECT_EQ(answer.status(), absl::OkStatus());
  EXPECT_EQ(answer.fatal(), "");
  EXPECT_THAT(answer.resources(), ElementsAre("a", "c"));
  EXPECT_THAT(answer.resource("a"),
              IsYaml("{apiVersion: v1, kind: A, spec: {x: 1}}"));
  EXPECT_FALSE(answer.resource("b"));
  EXPECT_THAT(answer.held(), ElementsAre("b"));
  EXPECT_THAT(answer.kept(), ElementsAre("c.spec.why"));
  EXPECT_EQ(answer.ready("a"), true);
  EXPECT_EQ(answer.ready("c"), std::nullopt);
  EXPECT_EQ(answer.ready("none"), std::nullopt);
  EXPECT_EQ(answer.ready(), false);  // b waits
  EXPECT_THAT(answer.composite(), HasField("status.phase", "New"));
  EXPECT_THAT(answer.connection_details(), ElementsAre(Pair("user", "me")));
  EXPECT_THAT(answer.requirements(), ElementsAre(Key("one"), Key("vpcs")));
  const Requirement vpcs = answer.requirements().at("vpcs");
  EXPECT_EQ(vpcs.kind, "VPC");
  EXPECT_THAT(vpcs.match_labels, ElementsAre(Pair("env", "prod")));
  EXPECT_EQ(vpcs.name_space, "ns");
  EXPECT_EQ(answer.requirements().at("one").match_name, "v");
  EXPECT_EQ(answer.requirements().at("one").name_space, std::nullopt);
  EXPECT_EQ(answer.required_schemas().at("app").api_version, "v1");
  EXPECT_EQ(answer.context("k").text(), "v");
  EXPECT_EQ(answer.ttl(), absl::Seconds(5));
  EXPECT_TRUE(answer.pure());
  EXPECT_THAT(answer.reads(),
              ::testing::Contains("observed.resources.a.resource.status.y"));
  const std::vector<Result> results = answer.results();
  ASSERT_THAT(results, Not(IsEmpty()));
  EXPECT_EQ(results[0].severity, Severity::kWarning);
  EXPECT_EQ(results[0].message, "careful");
  EXPECT_EQ(results[0].reason, "Because");
  EXPECT_EQ(results[0].target, Target::kCompositeAndClaim);
  ASSERT_EQ(answer.conditions().size(), 1u);
  EXPECT_EQ(answer.conditions()[0].type, "Made");
  EXPECT_EQ(answer.conditions()[0].status, Status::kFalse);
  EXPECT_EQ(answer.conditions()[0].message, "soon");
}

TEST(CallTest, AFatalAnswerHasItsFirstText) {
  const Answer answer = Call([](Context& ctx) {
    ctx.warning("before");
    ctx.fatal("first");
    ctx.fatal("second");
  })();
  EXPECT_EQ(answer.fatal(), "first");
  EXPECT_EQ(answer.status(), absl::OkStatus());
}

TEST(CallTest, ACallThatEndsWithAStatusHasNoResponse) {
  const Answer answer = Call([](Context& ctx) {
    ctx.resource("a", "v1", "A");
    ctx.fail(absl::UnavailableError("later"));
  })();
  EXPECT_EQ(answer.status(), absl::UnavailableError("later"));
  EXPECT_THAT(answer.resources(), IsEmpty());
  EXPECT_EQ(answer.yaml(), "UNAVAILABLE: later\n");
}

TEST(CallTest, TheYamlOfAnAnswerHasNoConnectionDetails) {
  const std::string yaml =
      Call([](Context& ctx) {
        ctx.resource("a", "v1", "A")["spec"]["x"] = 1;
        ctx.composite().connection_detail("password", "hunter2");
        ctx.set_context("k", "v");
        ctx.normal("hello");
      })()
          .yaml();
  EXPECT_EQ(yaml, R"(context:
  k: v
desired:
  composite:
    connection_details:
      password: 7 bytes
  resources:
    a:
      resource:
        apiVersion: v1
        kind: A
        spec:
          x: 1
meta:
  tag: test
  ttl: 60s
results:
- message: hello
  severity: SEVERITY_NORMAL
  target: TARGET_COMPOSITE
)");
}

TEST(CallTest, TheYamlOfAnEmptyAnswerHasNoNulls) {
  EXPECT_EQ(Call([](Context&) {}).desired("a", "{}")().yaml(), R"(desired:
  resources:
    a:
      resource: {}
meta:
  tag: test
  ttl: 60s
)");
}

TEST(CallTest, BrokenYamlNamesTheSetterAndTheLine) {
  Call call([](Context&) {});
  const auto text = [](const auto& set) -> std::string {
    try {
      set();
    } catch (const std::invalid_argument& thrown) {
      return thrown.what();
    }
    return "";
  };
  EXPECT_THAT(
      text([&] { call.observed("bucket", "a: b\nc: ["); }),
      AllOf(HasSubstr("observed(\"bucket\"): yaml: "), HasSubstr("line ")));
  EXPECT_EQ(text([&] { call.composite("[a]"); }),
            "composite(): must be an object");
  EXPECT_EQ(text([&] { call.input(""); }), "input(): must be an object");
  EXPECT_THAT(text([&] {
                call.required("vpcs", {"a: b", "c: {"});
              }),
              HasSubstr("required(\"vpcs\"): "));
  EXPECT_THAT(text([&] { IsYaml("a: ["); }), HasSubstr("IsYaml: "));
}

TEST(CallTest, DocumentsOf330LevelsSurvive) {
  std::string deep = "1";
  for (int i = 0; i < 327; ++i) deep = absl::StrCat("{a: ", deep, "}");
  Call call([](Context& ctx) {
    ctx.resource("b", "v1", "B")["spec"] =
        ctx.composite().observed()["spec"]["deep"];
    ctx.output()["deep"] = ctx.composite().observed()["spec"]["deep"];
  });
  call.composite(absl::StrCat("spec: {deep: ", deep, "}"));
  const Answer answer = call();
  EXPECT_EQ(answer.fatal(), "");
  EXPECT_THAT(answer.output(), IsYaml(absl::StrCat("deep: ", deep)));
  std::string path = "spec";
  for (int i = 0; i < 327; ++i) path += ".a";
  EXPECT_THAT(answer.resource("b"), HasField(path, 1));
  EXPECT_GT(answer.yaml().size(), 100'000u);
  EXPECT_TRUE(CheckDeterministic(call, 2));
  EXPECT_TRUE(CheckReads(call, 2));
}

TEST(CallTest, CopiesAreIndependent) {
  const auto size = [](Context& ctx) {
    ctx.output()["size"] = ctx.composite().observed()["size"];
  };
  Call one(size);
  one.composite("size: 1");
  Call other = one;
  other.composite("size: 2");
  EXPECT_EQ(one().output()["size"], 1);
  EXPECT_EQ(other().output()["size"], 2);
}

TEST(CallTest, AnOldRunnerAnswersInExtraResources) {
  Call call([](Context& ctx) {
    ctx.output()["n"] = ctx.require("vpcs", "v1", "VPC", MatchName("a")).size();
  });
  call.required("vpcs", {"x: 1"}).capabilities({});
  EXPECT_EQ(call().output()["n"], 1);
  EXPECT_THAT(call().requirements(), ElementsAre(Key("vpcs")));
}

TEST(MatcherTest, FieldsAreFoundByPathAndComparedByValue) {
  const Value value = internal::ParseYaml("test", R"(
      a.b: {c: [1, {d: text}]}
      none: null
      yes: true
      empty: {})");
  EXPECT_THAT(value, HasField("\"a.b\".c[0]", 1));
  EXPECT_THAT(value, HasField("\"a.b\".c[0]", 1.0));
  EXPECT_THAT(value, HasField("\"a.b\".c[1].d", "text"));
  EXPECT_THAT(value, HasField("\"a.b\".c[1].d", std::string("text")));
  EXPECT_THAT(value, HasField("\"a.b\"", Yaml("c: [1, {d: text}]")));
  EXPECT_THAT(value, HasField("true", true));
  EXPECT_THAT(value, HasField("none", kNull));
  EXPECT_THAT(value, HasField("none"));
  EXPECT_THAT(value, HasField("empty"));
  EXPECT_THAT(value, Not(HasField("a")));
  EXPECT_THAT(value, Not(HasField("\"a.b\".c[2]")));
  EXPECT_THAT(value, Not(HasField("\"a.b\".c[0]", "1")));
  EXPECT_THAT(value, Not(HasField("empty", kNull)));
  EXPECT_THAT(value, Not(HasField("empty.x")));
  EXPECT_THAT(value, Not(HasField("\"a.b")));
  EXPECT_THAT(Value(), Not(HasField("x")));
}

TEST(MatcherTest, AFailureNamesThePath) {
  const Value value = internal::ParseYaml("test", "a: {b: [1, 2]}");
  ::testing::StringMatchResultListener listener;
  const auto why = [&](const auto& matcher) {
    listener.Clear();
    ::testing::Matcher<Value> of = matcher;
    EXPECT_FALSE(of.MatchAndExplain(value, &listener));
    return listener.str();
  };
  EXPECT_EQ(why(IsYaml("a: {b: [1, 3]}")), "which differs at a.b[1]");
  EXPECT_EQ(why(IsYaml("a: {b: [1, 2], c: null}")), "which differs at a.c");
  EXPECT_EQ(why(IsYaml("a")), "which is a:\n  b:\n  - 1\n  - 2\n");
  EXPECT_EQ(why(HasField("a.c", 1)), "which has no a.c");
  EXPECT_EQ(why(HasField("a.b[0]", 2)), "where a.b[0] is 1\n");
  std::ostringstream printed;
  PrintTo(value, &printed);
  EXPECT_EQ(printed.str(), "\na:\n  b:\n  - 1\n  - 2\n");
}

}  // namespace
}  // namespace fncache::function::testing
