// SPDX-License-Identifier: Apache-2.0
// SDK.md, section 7: the response. And section 2: exceptions.
#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "fncache/function/raw.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/sdk/compose/caller.h"

namespace fncache::sdk {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

absl::Duration TtlOf(const v1::RunFunctionResponse& response) {
  return absl::Seconds(response.meta().ttl().seconds()) +
         absl::Nanoseconds(response.meta().ttl().nanos());
}

TEST(Response, HasTheTagAndTheTtl) {
  Caller call;
  call([](fn::Context&) {});
  EXPECT_EQ(call.response.meta().tag(), "tag");
  EXPECT_EQ(TtlOf(call.response), absl::Seconds(60));
  call([](fn::Context& ctx) {
    ctx.ttl_at_most(absl::Seconds(30));
    ctx.ttl(absl::Milliseconds(1500));
  });
  EXPECT_EQ(TtlOf(call.response), absl::Milliseconds(1500));
  call([](fn::Context& ctx) {
    ctx.ttl_at_most(absl::InfiniteDuration());
    ctx.ttl_at_most(absl::Seconds(30));
    ctx.ttl_at_most(absl::Seconds(40));
  });
  EXPECT_EQ(TtlOf(call.response), absl::Seconds(30));
  call([](fn::Context& ctx) { ctx.ttl(absl::ZeroDuration()); });
  EXPECT_TRUE(call.response.meta().has_ttl());
  EXPECT_EQ(TtlOf(call.response), absl::ZeroDuration());
}

TEST(Response, ANegativeOrInfiniteTtlIsFatal) {
  Caller call;
  const auto fatal =
      ElementsAre("FATAL: the TTL must not be negative or infinite");
  for (const absl::Duration ttl :
       {absl::Seconds(-1), absl::InfiniteDuration(), absl::Hours(1 << 30)}) {
    call([&](fn::Context& ctx) { ctx.ttl(ttl); });
    EXPECT_THAT(call.Results(), fatal);
    call.options.ttl = ttl;
    call([](fn::Context&) {});
    EXPECT_THAT(call.Results(), fatal);
    call.options.ttl = absl::Seconds(1);
  }
  call([](fn::Context& ctx) { ctx.ttl_at_most(absl::Seconds(-1)); });
  EXPECT_THAT(call.Results(), fatal);
}

TEST(Response, AValueForTheContextIsNamedByItsKey) {
  Caller call;
  call([](fn::Context& ctx) { ctx.set_context("a.b", "\xff"); });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: context.\"a.b\": must be UTF-8"));
  call([](fn::Context& ctx) { ctx.set_context("k", int64_t{1} << 54); });
  EXPECT_THAT(call.Results(),
              ElementsAre(testing::StartsWith("FATAL: context.k: must be")));
}

TEST(Response, TtlFromAField) {
  Caller call;
  const auto function = [](fn::Context& ctx) {
    ctx.ttl(ctx.input()["ttl"].as<std::string>());
  };
  call.Input("{ttl: 1h30m}")(function);
  EXPECT_EQ(TtlOf(call.response), absl::Minutes(90));
  call.Input("{}")(function);
  EXPECT_EQ(TtlOf(call.response), absl::Seconds(60));
  call.Input("{ttl: soon}")(function);
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: input.ttl: must be a duration such as 10m"));
  call.Input("{ttl: 5}")(function);
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: input.ttl: must be text, is a number"));
  call.Input("{ttl: -1s}")(function);
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: the TTL must not be negative or infinite"));
}

TEST(Response, AFatalOneChangesNothing) {
  Caller call;
  call.Desired("a", "{apiVersion: v1, kind: A}");
  *call.request.mutable_context() = FromYaml("{k: 1}");
  const auto function = [](fn::Context& ctx) {
    ctx.resource("a", "v1", "A")["spec"]["x"] = 1;
    ctx.remove("a");
    ctx.set_context("k", 2);
    ctx.require("r", "v1", "B", fn::MatchName("x"));
    ctx.condition("C", fn::Status::kTrue, "Fine");
    ctx.normal("first");
    EXPECT_TRUE(ctx.ok());
    ctx.fatal("broken");
    ctx.fatal("more");
    EXPECT_FALSE(ctx.ok());
  };
  call(function);
  EXPECT_TRUE(Same(call.response.desired(), call.request.desired()));
  EXPECT_EQ(ToJson(call.response.context()), "{\"k\":1}");
  EXPECT_THAT(call.Results(),
              ElementsAre("NORMAL: first", "FATAL: broken", "FATAL: more"));
  EXPECT_THAT(call.Conditions(), ElementsAre("C=TRUE Fine"));
  EXPECT_EQ(call.response.requirements().resources_size(), 1);
  EXPECT_EQ(call.response.meta().tag(), "tag");
  EXPECT_FALSE(call.response.meta().has_ttl());
  call.options.ttl_on_fatal = true;
  call(function);
  EXPECT_TRUE(call.response.meta().has_ttl());
}

TEST(Response, OnlyTheFirstMistakeIsReported) {
  Caller call;
  call([](fn::Context& ctx) {
    ctx.input()["one"].as<std::string>().value();
    ctx.input()["two"].as<std::string>().value();
    ctx.warning("later");
  });
  EXPECT_THAT(call.Results(),
              ElementsAre("WARNING: later", "FATAL: input.one is needed"));
}

TEST(Response, ExceptionsAreFatal) {
  Caller call;
  call([](fn::Context&) { throw std::runtime_error("no \xff map"); });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: the function threw: no \uFFFD map"));
  call([](fn::Context&) { throw 5; });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: the function threw: something that is no "
                          "std::exception"));
  call(nullptr);
  EXPECT_EQ(call.Results().size(), 1u);
}

TEST(Response, LongTextsOfTheSdkAreCut) {
  Caller call;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "é";
  call([&](fn::Context&) { throw std::runtime_error(text); });
  const std::string& message = call.response.results(0).message();
  EXPECT_LE(message.size(), 1024u);
  EXPECT_GE(message.size(), 1022u);
  EXPECT_THAT(message, testing::EndsWith("é..."));
}

TEST(Response, FailEndsTheCall) {
  Caller call;
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kDeadlineExceeded,
        absl::StatusCode::kResourceExhausted, absl::StatusCode::kAborted,
        absl::StatusCode::kCancelled}) {
    const auto result = sdk::Run(
        [&](fn::Context& ctx) {
          ctx.fail(absl::Status(code, "later"));
          EXPECT_FALSE(ctx.ok());
          ctx.fatal("too");
        },
        fn::Options(), call.request.SerializeAsString(), CallInfo());
    EXPECT_EQ(result.status, absl::Status(code, "later"));
    EXPECT_EQ(result.response, "");
  }
  // As long as peers take it, with each byte escaped.
  const auto result = sdk::Run(
      [](fn::Context& ctx) {
        ctx.fail(absl::UnavailableError(std::string(9000, '\xff')));
      },
      fn::Options(), call.request.SerializeAsString(), CallInfo());
  EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(result.status.message(), testing::SizeIs(testing::Le(1024u)));
  EXPECT_THAT(std::string(result.status.message()),
              testing::StartsWith("\uFFFD"));
  call([](fn::Context& ctx) {
    ctx.fail(absl::OkStatus());
    EXPECT_TRUE(ctx.ok());
    ctx.fail(absl::NotFoundError("no such zone"));
  });
  EXPECT_THAT(call.Results(), ElementsAre("FATAL: no such zone"));
  call([](fn::Context& ctx) { ctx.fail(absl::InternalError("b\xff")); });
  EXPECT_THAT(call.Results(), ElementsAre("FATAL: b\uFFFD"));
  call([](fn::Context& ctx) { ctx.fail(absl::InternalError("")); });
  EXPECT_THAT(call.Results(), ElementsAre("FATAL: INTERNAL"));
}

TEST(Response, ResultsAndConditionsInTheOrderOfCalls) {
  Caller call;
  call([](fn::Context& ctx) {
    ctx.warning("w").reason("Why").target(fn::Target::kCompositeAndClaim);
    ctx.normal("n");
    ctx.condition("B", fn::Status::kFalse, "No").message("because");
    ctx.condition("A", fn::Status::kUnknown, "Maybe")
        .target(fn::Target::kCompositeAndClaim);
  });
  EXPECT_THAT(call.Results(), ElementsAre("WARNING Why: w", "NORMAL: n"));
  EXPECT_THAT(call.Conditions(),
              ElementsAre("B=FALSE No: because", "A=UNKNOWN Maybe"));
  EXPECT_EQ(call.response.results(0).target(), v1::TARGET_COMPOSITE_AND_CLAIM);
  EXPECT_EQ(call.response.results(1).target(), v1::TARGET_COMPOSITE);
  EXPECT_EQ(call.response.conditions(0).target(), v1::TARGET_COMPOSITE);
  EXPECT_EQ(call.response.conditions(1).target(),
            v1::TARGET_COMPOSITE_AND_CLAIM);
}

TEST(Response, TextsThatAreNotUtf8AreFatal) {
  const std::vector<std::pair<fn::Function, std::string>> texts = {
      {[](fn::Context& ctx) { ctx.normal("\xff"); }, "the text of a result"},
      {[](fn::Context& ctx) { ctx.fatal("\xff"); }, "the text of a result"},
      {[](fn::Context& ctx) { ctx.normal("").reason("\xff"); },
       "the reason of a result"},
      {[](fn::Context& ctx) { ctx.condition("\xff", fn::Status::kTrue, "R"); },
       "the type of a condition"},
      {[](fn::Context& ctx) { ctx.condition("T", fn::Status::kTrue, "\xff"); },
       "the reason of a condition"},
      {[](fn::Context& ctx) {
         ctx.condition("T", fn::Status::kTrue, "R").message("\xff");
       },
       "the message of a condition"},
      {[](fn::Context& ctx) { ctx.set_context("\xff", 1); },
       "a key of the context"},
      {[](fn::Context& ctx) { ctx.context("\xff"); }, "a key of the context"},
      {[](fn::Context& ctx) { ctx.resource("\xff", "v1", "A"); },
       "the name of a resource"},
      {[](fn::Context& ctx) { ctx.resource("a", "v1", "\xff"); },
       "desired.resources.a.kind"},
      {[](fn::Context& ctx) { ctx.composite().connection_detail("\xff", ""); },
       "the key of a connection detail"},
      {[](fn::Context& ctx) {
         ctx.require("\xff", "v1", "A", fn::MatchName("x"));
       },
       "the name of a requirement"},
      {[](fn::Context& ctx) {
         ctx.require("r", "v1", "A", fn::MatchName("\xff"));
       },
       "required.r: the name to match"},
      {[](fn::Context& ctx) {
         ctx.require("r", "v1", "A", fn::MatchLabels({{"\xff", "x"}}));
       },
       "required.r: the key of a label"},
      {[](fn::Context& ctx) {
         ctx.require("r", "v1", "A", fn::MatchLabels({{"k", "\xff"}}));
       },
       "required.r: the label k"},
      {[](fn::Context& ctx) {
         ctx.require("r", "v1", "A", fn::MatchName("x").in("\xff"));
       },
       "required.r: the namespace"},
      {[](fn::Context& ctx) { ctx.require_schema("s", "\xff", "A"); },
       "required.s: apiVersion"},
  };
  Caller call;
  for (const auto& [function, what] : texts) {
    call(function);
    EXPECT_EQ(call.Results().back(), "FATAL: " + what + " is not UTF-8");
  }
}

TEST(Response, EmptyNamesAreFatal) {
  const std::vector<std::pair<fn::Function, std::string>> calls = {
      {[](fn::Context& ctx) { ctx.resource("", "v1", "A")["x"] = 1; },
       "a resource needs a name"},
      {[](fn::Context& ctx) { ctx.existing("").observed()["x"].as<bool>(); },
       "a resource needs a name"},
      {[](fn::Context& ctx) { ctx.remove(""); }, "a resource needs a name"},
      {[](fn::Context& ctx) { ctx.resource("a", "", "A"); },
       "desired.resources.a: apiVersion and kind are needed"},
      {[](fn::Context& ctx) {
         ctx.require("", "v1", "A", fn::MatchName("x")).first().name();
       },
       "a requirement needs a name"},
      {[](fn::Context& ctx) { ctx.bootstrap("").at_least(1); },
       "a requirement needs a name"},
      {[](fn::Context& ctx) { ctx.require_schema("", "v1", "A").schema(); },
       "a requirement needs a name"},
      {[](fn::Context& ctx) { ctx.bootstrap_schema("").Validate({}); },
       "a requirement needs a name"},
      {[](fn::Context& ctx) { ctx.require_schema("s", "v1", ""); },
       "required.s: kind is needed"},
      {[](fn::Context& ctx) { ctx.require("r", "", "A", fn::MatchName("x")); },
       "required.r: apiVersion is needed"},
      {[](fn::Context& ctx) { ctx.require("r", "v1", "A", fn::MatchName("")); },
       "required.r: the name to match is needed"},
  };
  Caller call;
  for (const auto& [function, text] : calls) {
    call(function);
    EXPECT_THAT(call.Results(), ElementsAre("FATAL: " + text));
    EXPECT_FALSE(call.response.has_desired());
  }
}

TEST(Response, SetContextReplacesOneKey) {
  Caller call;
  *call.request.mutable_context() =
      FromYaml("{a: {old: 1}, b: [1], c: {stays: true}}");
  call([](fn::Context& ctx) {
    fn::Value a;
    a["new"] = ctx.context("c")["stays"];
    ctx.set_context("a", a);
    ctx.set_context("d", "text");
    ctx.set_context("b", fn::kNull);
    // Neither there nor coming.
    ctx.set_context("c", ctx.input()["nothing"]);
    EXPECT_TRUE(ctx.context("a")["new"].as<bool>().value());
  });
  EXPECT_EQ(ToJson(call.response.context()),
            YamlAsJson("{a: {new: true}, b: null, c: {stays: true}, d: "
                       "text}"));
  EXPECT_THAT(call.Results(), IsEmpty());
  call([](fn::Context& ctx) { ctx.context("c")["stays"] = false; });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: context.c.stays: is read-only"));
}

TEST(Response, AnObservedObjectIsNotCopiedAsAWhole) {
  Caller call;
  call.Observed("a", "{kind: A, metadata: {name: n}, status: {id: 1}}");
  const std::pair<fn::Function, std::string> copies[] = {
      {[](fn::Context& ctx) {
         ctx.set_context("k", ctx.existing("a").observed());
       },
       "context.k: observed.resources.a"},
      {[](fn::Context& ctx) {
         ctx.set_context("k", ctx.existing("a").observed()["status"]);
       },
       "context.k: observed.resources.a.status"},
      {[](fn::Context& ctx) {
         ctx.output() = fn::Value(ctx.composite().observed().ref());
       },
       "output: observed.composite"},
      {[](fn::Context& ctx) {
         ctx.output()["a"] = ctx.existing("a").observed().metadata();
       },
       "output.a: observed.resources.a.metadata"},
  };
  for (const auto& [function, paths] : copies) {
    call(function);
    EXPECT_THAT(call.Results(), ElementsAre("FATAL: " + paths +
                                            " cannot be copied as a whole"));
  }
  call([](fn::Context& ctx) {
    ctx.set_context("k", ctx.existing("a").observed()["status"]["id"]);
  });
  EXPECT_EQ(ToJson(call.response.context()), R"({"k":1})");
}

TEST(Response, EnvironmentIsAKeyOfTheContext) {
  Caller call;
  *call.request.mutable_context() =
      FromYaml("{apiextensions.crossplane.io/environment: {zone: z}}");
  call([](fn::Context& ctx) {
    EXPECT_EQ(ctx.environment()["zone"], "z");
    ctx.environment()["region"].as<std::string>().value();
  });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: context.\"apiextensions.crossplane.io/"
                          "environment\".region is needed"));
}

TEST(Response, OutputAndWatchedAreForOperations) {
  Caller call;
  call.request.mutable_observed()->clear_composite();
  call.Required("ops.crossplane.io/watched-resource",
                {"{metadata: {name: w}, spec: {x: 1}}"});
  call([](fn::Context& ctx) {
    EXPECT_EQ(ctx.watched().name(), "w");
    ctx.output()["seen"] = ctx.watched()["spec"]["x"];
  });
  EXPECT_EQ(ToJson(call.response.output()), "{\"seen\":1}");
  EXPECT_FALSE(call.response.has_requirements());
  call([](fn::Context& ctx) { ctx.output() = 5; });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: output: must be an object, is a number"));
}

TEST(Response, CredentialsAreSecrets) {
  Caller call;
  auto& all = *call.request.mutable_credentials();
  (*all["cloud"].mutable_credential_data()->mutable_data())["key"] = "s3";
  call([](fn::Context& ctx) {
    const fn::Secrets cloud = ctx.credentials("cloud");
    EXPECT_TRUE(cloud.exists());
    EXPECT_EQ(cloud["key"].reveal(), "s3");
    EXPECT_FALSE(cloud["other"].has_value());
    EXPECT_FALSE(ctx.credentials("none").exists());
    ctx.resource("a", "v1", "A")["spec"]["x"] = cloud["other"];
    ctx.resource("a", "v1", "A")["spec"]["z"] = cloud["key"];
  });
  EXPECT_EQ(call.Resource("a"),
            YamlAsJson("{apiVersion: v1, kind: A, spec: {z: s3}}"));
  call([](fn::Context& ctx) {
    fn::Observable<std::string>(ctx.credentials("cloud")["o"]).value();
  });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: credentials.cloud.o is needed"));
}

TEST(Response, CapabilitiesOfTheRunner) {
  Caller call;
  call([](fn::Context& ctx) {
    EXPECT_TRUE(ctx.advertises_capabilities());
    EXPECT_TRUE(ctx.has_capability(fn::Capability::kRequiredSchemas));
  });
  call.OldRunner()([](fn::Context& ctx) {
    EXPECT_FALSE(ctx.advertises_capabilities());
    EXPECT_FALSE(ctx.has_capability(fn::Capability::kCapabilities));
  });
  call.request.mutable_meta()->add_capabilities(v1::CAPABILITY_CAPABILITIES);
  call([](fn::Context& ctx) {
    EXPECT_TRUE(ctx.advertises_capabilities());
    EXPECT_FALSE(ctx.has_capability(fn::Capability::kConditions));
  });
}

TEST(Response, TimeAndCancellation) {
  Caller call;
  call.info.deadline = absl::FromUnixSeconds(5);
  call.info.cancelled = [] { return true; };
  call([](fn::Context& ctx) {
    EXPECT_EQ(ctx.deadline(), absl::FromUnixSeconds(5));
    EXPECT_TRUE(ctx.cancelled());
  });
}

TEST(Response, RawMessages) {
  Caller call;
  v1::RunFunctionRequest seen;
  call([&](fn::Context& ctx) {
    const std::string_view bytes = fn::RawRequest(ctx);
    EXPECT_TRUE(seen.ParseFromArray(bytes.data(), bytes.size()));
    v1::RunFunctionResponse more;
    more.mutable_meta()->set_tag("stolen");
    more.add_results()->set_message("raw");
    fn::MergeRawResponse(ctx, more.SerializeAsString());
  });
  EXPECT_EQ(seen.meta().tag(), "");
  EXPECT_EQ(ToJson(seen.observed().composite().resource()),
            ToJson(call.request.observed().composite().resource()));
  EXPECT_EQ(call.response.meta().tag(), "tag");
  EXPECT_THAT(call.Results(), ElementsAre("UNSPECIFIED: raw"));
  EXPECT_EQ(call.result.depends,
            "reads=(\"extra_resources\" \"observed\" "
            "\"required_resources\")");
  call([](fn::Context& ctx) { fn::MergeRawResponse(ctx, "\xff"); });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: the raw response is no RunFunctionResponse"));
}

TEST(Response, AFatalRawResultMakesTheCallFatal) {
  Caller call;
  call.Desired("d", "{kind: D}");
  const v1::State desired = call.request.desired();
  call([](fn::Context& ctx) {
    ctx.normal("before");
    ctx.remove("d");
    v1::RunFunctionResponse more;
    more.mutable_meta()->mutable_ttl()->set_seconds(5);
    (*more.mutable_desired()->mutable_resources())["e"];
    (*more.mutable_requirements()->mutable_resources())["r"].set_kind("R");
    more.add_conditions()->set_type("C");
    more.add_results()->set_message("raw");
    more.mutable_results(0)->set_severity(v1::SEVERITY_FATAL);
    fn::MergeRawResponse(ctx, more.SerializeAsString());
    EXPECT_FALSE(ctx.ok());
    ctx.normal("after");
  });
  EXPECT_THAT(call.Results(),
              ElementsAre("NORMAL: before", "FATAL: raw", "NORMAL: after"));
  EXPECT_EQ(call.response.desired().SerializeAsString(),
            desired.SerializeAsString());
  EXPECT_FALSE(call.response.meta().has_ttl());
  EXPECT_EQ(call.response.conditions_size(), 1);
  EXPECT_EQ(call.response.requirements().resources().at("r").kind(), "R");
}

TEST(Response, ARequestThatIsNoMessageIsInternal) {
  EXPECT_EQ(sdk::Run([](fn::Context&) {}, fn::Options(), "\xff", CallInfo())
                .status.code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace fncache::sdk
