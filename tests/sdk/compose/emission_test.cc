// SPDX-License-Identifier: Apache-2.0
// SDK.md, section 4: merge and emission.
#include "sdk/compose/emission.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/sdk/compose/caller.h"

namespace fncache::sdk {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kBucket[] = "storage.gcp.upbound.io/v1beta1";

// SDK.md, section 1, untyped: a bucket and its access control list.
void Storage(fn::Context& ctx) {
  auto xr = ctx.composite();
  auto wanted = xr.observed()["spec"]["parameters"];
  auto bucket = ctx.resource("bucket", kBucket, "Bucket");
  auto provider = bucket["spec"]["forProvider"];
  provider["location"] = wanted["location"];
  fn::Value versioning;
  versioning["enabled"] = wanted["versioning"];
  provider["versioning"] = {versioning};
  if (provider["location"] == "US") provider["storageClass"] = "STANDARD";
  auto acl = ctx.resource("acl", kBucket, "BucketACL");
  acl["spec"]["forProvider"]["bucket"] = bucket.observed().external_name();
  acl["spec"]["forProvider"]["predefinedAcl"] = wanted["acl"];
  xr["status"]["bucketName"] = bucket.observed().external_name();
}

TEST(Emission, BucketAndAcl) {
  Caller call;
  call.Composite(
      "{apiVersion: example.org/v1, kind: XStorage, spec: {parameters: "
      "{versioning: true, acl: publicRead}}}");
  call.Desired("bucket", "{spec: {forProvider: {location: US, project: p}}}");
  call(Storage);
  // The composite has no location: the earlier step's stays.
  EXPECT_EQ(
      call.Resource("bucket"),
      YamlAsJson("{apiVersion: storage.gcp.upbound.io/v1beta1, kind: Bucket, "
                 "spec: {forProvider: {location: US, project: p, "
                 "storageClass: STANDARD, versioning: [{enabled: true}]}}}"));
  EXPECT_EQ(call.Resource("acl"), "");
  EXPECT_EQ(call.DesiredComposite(), "");
  EXPECT_EQ(call.response.desired().composite().ready(), v1::READY_FALSE);
  EXPECT_THAT(
      call.Results(),
      ElementsAre("NORMAL Dependencies: acl waits for "
                  "bucket.metadata.annotations.\"crossplane.io/external-"
                  "name\" (not created yet); graph: bucket -> acl"));

  call.Observed(
      "bucket",
      "{metadata: {annotations: {crossplane.io/external-name: b-1}}}");
  call(Storage);
  EXPECT_EQ(call.Resource("acl"),
            YamlAsJson("{apiVersion: storage.gcp.upbound.io/v1beta1, kind: "
                       "BucketACL, spec: {forProvider: {bucket: b-1, "
                       "predefinedAcl: publicRead}}}"));
  EXPECT_EQ(call.DesiredComposite(),
            YamlAsJson("{apiVersion: example.org/v1, kind: XStorage, status: "
                       "{bucketName: b-1}}"));
  EXPECT_EQ(call.response.desired().composite().ready(), v1::READY_UNSPECIFIED);
  EXPECT_THAT(call.Results(), IsEmpty());
}

TEST(Emission, ObjectsMergeAndListsReplace) {
  Caller call;
  call.Desired("a",
               "{apiVersion: v1, kind: A, spec: {tags: {x: '1'}, list: [1, "
               "2], own: {deep: {unknown: true}}}}");
  call([](fn::Context& ctx) {
    auto a = ctx.resource("a", "v1", "A");
    EXPECT_EQ(a["spec"]["list"].size(), 2u);
    a["spec"]["tags"]["z"] = "2";
    a["spec"]["list"].add(3);
    a["spec"]["own"]["deep"]["known"] = 1;
    EXPECT_EQ(ctx.resource("a", "v1", "A")["spec"]["list"].size(), 3u);
  });
  EXPECT_EQ(call.Resource("a"),
            YamlAsJson("{apiVersion: v1, kind: A, spec: {tags: {x: '1', z: "
                       "'2'}, list: [1, 2, 3], own: {deep: {unknown: true, "
                       "known: 1}}}}"));
  call([](fn::Context& ctx) {
    ctx.resource("a", "v1", "A")["spec"]["list"] = {7};
  });
  EXPECT_EQ(call.Resource("a"),
            YamlAsJson("{apiVersion: v1, kind: A, spec: {tags: {x: '1'}, "
                       "list: [7], own: {deep: {unknown: true}}}}"));
}

TEST(Emission, AnotherKindThanAnEarlierStepsIsFatal) {
  Caller call;
  call.Desired("a", "{apiVersion: v1, kind: A}");
  call([](fn::Context& ctx) { ctx.resource("a", "v1", "B"); });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: desired.resources.a.kind: cannot change, "
                          "it is another already"));
  EXPECT_EQ(call.Resource("a"), YamlAsJson("{apiVersion: v1, kind: A}"));
  call([](fn::Context& ctx) { ctx.resource("a", "v2", "A"); });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: desired.resources.a.apiVersion: cannot "
                          "change, it is another already"));
  call([](fn::Context& ctx) {
    ctx.resource("b", "v1", "B");
    ctx.resource("b", "v1", "C");
  });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: desired.resources.b.kind: cannot change, "
                          "it is another already"));
}

// The runner would apply another object under the resource's name, and leave
// the existing one behind.
TEST(Emission, AnotherKindThroughAnUntypedHandleIsFatal) {
  Caller call;
  call.Observed("a", "{apiVersion: v1, kind: A}");
  call.Desired("b", "{apiVersion: v1, kind: B}");
  const v1::State before = call.request.desired();
  const std::pair<fn::Function, const char*> cases[] = {
      {[](fn::Context& ctx) { ctx.resource("a", "v1", "A")["kind"] = "C"; },
       "a.kind"},
      {[](fn::Context& ctx) {
         ctx.resource("a", "v1", "A").merge(fn::Yaml("{apiVersion: v2}"));
       },
       "a.apiVersion"},
      {[](fn::Context& ctx) {
         fn::Value(ctx.resource("c", "v1", "C")) = fn::Yaml("{kind: D}");
       },
       "c.kind"},
      {[](fn::Context& ctx) { ctx.resource("b", "v1", "B")["kind"] = "C"; },
       "b.kind"},
      {[](fn::Context& ctx) { ctx.existing("b")["kind"] = "C"; }, "b.kind"}};
  for (const auto& [function, path] : cases) {
    call(function);
    EXPECT_THAT(call.Results(), ElementsAre(absl::StrCat(
                                    "FATAL: desired.resources.", path,
                                    ": cannot change, it is another already")));
    EXPECT_TRUE(Same(call.response.desired(), before));
  }
  // The same kind, and none.
  call([](fn::Context& ctx) {
    ctx.resource("a", "v1", "A")["kind"] = "A";
    ctx.existing("b")["kind"] = "B";
    ctx.resource("c", "v1", "C")["kind"] = fn::kNull;
  });
  EXPECT_THAT(call.Results(), IsEmpty());
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(call.Resource(name),
              YamlAsJson(absl::StrCat("{apiVersion: v1, kind: ",
                                      absl::AsciiStrToUpper(name), "}")));
  }
}

TEST(Emission, AnotherKindThroughACopyIsFatal) {
  Caller call;
  call.Desired("a", "{apiVersion: v1, kind: A}");
  const fn::Function functions[] = {
      [](fn::Context& ctx) {
        ctx.existing("a") = ctx.resource("b", "v1", "Other");
      },
      [](fn::Context& ctx) {
        ctx.existing("a").merge(fn::Yaml("{apiVersion: v1, kind: Other}"));
      },
      [](fn::Context& ctx) {
        ctx.existing("a").clear();
        ctx.resource("a", "v1", "Other");
      },
  };
  for (const fn::Function& function : functions) {
    call(function);
    EXPECT_THAT(call.Results(),
                ElementsAre("FATAL: desired.resources.a.kind: cannot change, "
                            "it is another already"));
    EXPECT_EQ(call.Resource("a"), YamlAsJson("{apiVersion: v1, kind: A}"));
  }
}

TEST(Emission, UntouchedContentPassesAsItCame) {
  Caller call;
  auto& desired = *call.request.mutable_desired();
  call.Desired("a", "{apiVersion: v1, kind: A, spec: {x: 1}}");
  auto& a = (*desired.mutable_resources())["a"];
  a.set_ready(v1::READY_TRUE);
  (*a.mutable_connection_details())["key"] = "\xff";
  call.Desired("gone", "{kind: B}");
  *call.request.mutable_context() = FromYaml("{k: {z: 1}}");
  call([](fn::Context& ctx) {
    ctx.resource("a", "v1", "A");
    ctx.remove("gone");
    ctx.remove("unknown");
  });
  desired.mutable_resources()->erase("gone");
  EXPECT_TRUE(Same(call.response.desired(), desired));
  EXPECT_EQ(ToJson(call.response.context()), ToJson(call.request.context()));
  // A touched resource keeps what it has besides its content.
  call([](fn::Context& ctx) { ctx.resource("a", "v1", "A")["spec"]["x"] = 2; });
  const auto& out = call.response.desired().resources().at("a");
  EXPECT_EQ(out.ready(), v1::READY_TRUE);
  EXPECT_EQ(out.connection_details().at("key"), "\xff");
}

TEST(Emission, OnlyWhatWasSetIsEmitted) {
  Caller call;
  call([](fn::Context& ctx) {
    auto a = ctx.resource("a", "v1", "A");
    a["spec"]["unset"]["deep"].clear();
    a["spec"]["from"] = ctx.composite().observed()["spec"]["nothing"];
    a["spec"]["none"] = fn::kNull;
    if (a["spec"]["read"]["deep"]) ctx.fatal("read");
    a["spec"]["late"] =
        a.observed()["status"]["id"].as<std::string>().optional();
  });
  EXPECT_EQ(call.Resource("a"),
            YamlAsJson("{apiVersion: v1, kind: A, spec: {none: null}}"));
}

TEST(Emission, AwaitedAndNotObservedIsHeldWithWhatEarlierStepsDesire) {
  Caller call;
  call.Desired("b", "{apiVersion: v1, kind: B, spec: {q: 1}}");
  call([](fn::Context& ctx) {
    auto a = ctx.resource("a", "v1", "A");
    ctx.resource("b", "v1", "B")["spec"]["x"] = a.observed()["status"]["id"];
  });
  EXPECT_EQ(call.Resource("b"), "");
  EXPECT_NE(call.Resource("a"), "");
  EXPECT_EQ(call.result.held, 1);
}

TEST(Emission, AwaitedButObservedIsKept) {
  Caller call;
  call.Desired("b", "{apiVersion: v1, kind: B, spec: {q: 1, x: old}}");
  call.Observed("b", "{spec: {x: x-1, list: [{id: 1}, {id: 2}], other: 5}}");
  const auto function = [](fn::Context& ctx) {
    auto from = ctx.resource("a", "v1", "A").observed()["status"];
    auto b = ctx.resource("b", "v1", "B");
    b["spec"]["x"] = from["id"];
    b["spec"]["list"].add()["id"] = from["id"];
    b["spec"]["deep"]["absent"] = from["id"];
    b["spec"]["set"] = true;
  };
  call(function);
  EXPECT_EQ(call.Resource("b"),
            YamlAsJson("{apiVersion: v1, kind: B, spec: {q: 1, x: x-1, list: "
                       "[{id: 1}, {id: 2}], set: true}}"));
  EXPECT_THAT(call.Results(),
              ElementsAre("WARNING KeptObserved: b.spec.deep.absent, "
                          "b.spec.list, b.spec.x"));
  EXPECT_EQ(call.result.kept, 3);
  EXPECT_EQ(call.response.desired().composite().ready(), v1::READY_UNSPECIFIED);
}

TEST(Emission, OnLostFatal) {
  Caller call;
  call.Observed("b", "{spec: {x: x-1}}");
  call.Desired("b", "{apiVersion: v1, kind: B}");
  bool by_resource = true;
  const auto function = [&](fn::Context& ctx) {
    auto a = ctx.resource("a", "v1", "A");
    auto b = ctx.resource("b", "v1", "B");
    b["spec"]["x"] = a.observed()["status"]["id"];
    b["spec"]["z"] = fn::Concat(a.observed()["status"]["two"],
                                a.observed()["status"]["one"]);
    if (by_resource) b.on_lost(fn::OnLost::kFatal);
  };
  const auto text = ElementsAre(
      "FATAL: lost: b.spec.x (waits for a.status.id); b.spec.z (waits for "
      "a.status.one, a.status.two)");
  call(function);
  EXPECT_THAT(call.Results(), text);
  EXPECT_EQ(call.Resource("b"), YamlAsJson("{apiVersion: v1, kind: B}"));
  by_resource = false;
  call.options.on_lost = fn::OnLost::kFatal;
  call(function);
  EXPECT_THAT(call.Results(), text);
  call([&](fn::Context& ctx) {
    function(ctx);
    ctx.existing("b").on_lost(fn::OnLost::kKeep);
  });
  EXPECT_THAT(call.Results(),
              ElementsAre("WARNING KeptObserved: b.spec.x, b.spec.z"));
}

TEST(Emission, ARootThatIsLostIsFatal) {
  // The fields that it had are unknown.
  Caller call;
  call.Observed("b", "{spec: {x: 1}}");
  call([](fn::Context& ctx) {
    fn::Value(ctx.resource("b", "v1", "B")) =
        ctx.existing("a").observed()["spec"]["template"];
  });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: lost: b (waits for a.spec.template)"));
}

TEST(Emission, OnlyStatusReadinessAndConnectionDetailsOfTheComposite) {
  Caller call;
  *call.request.mutable_desired()->mutable_composite()->mutable_resource() =
      FromYaml("{status: {earlier: 1}}");
  call([](fn::Context& ctx) {
    auto xr = ctx.composite();
    xr["spec"]["size"] = 5;
    xr["metadata"]["labels"]["a"] = "b";
    xr["status"]["size"] = 5;
    xr.connection_detail("user", "me");
    auto a = ctx.resource("a", "v1", "A");
    a["status"]["phase"] = "done";
    a["spec"]["x"] = 1;
    a.connection_detail("user", "me");
  });
  EXPECT_EQ(call.DesiredComposite(),
            YamlAsJson("{apiVersion: example.org/v1, kind: XNet, status: "
                       "{earlier: 1, size: 5}}"));
  EXPECT_EQ(call.response.desired().composite().connection_details().at("user"),
            "me");
  EXPECT_EQ(call.Resource("a"),
            YamlAsJson("{apiVersion: v1, kind: A, spec: {x: 1}}"));
  EXPECT_THAT(
      call.Results(),
      ElementsAre("WARNING NotEmitted: desired.composite.metadata.labels.a, "
                  "desired.composite.spec.size, "
                  "desired.resources.a.connection_details.user, "
                  "desired.resources.a.status.phase"));
}

TEST(Emission, TheCompositeCannotBeReplaced) {
  Caller call;
  *call.request.mutable_desired()->mutable_composite()->mutable_resource() =
      FromYaml("{status: {earlier: 1}}");
  const std::string before =
      ToJson(call.request.desired().composite().resource());
  call([](fn::Context& ctx) { ctx.composite().clear(); });
  EXPECT_EQ(call.DesiredComposite(), before);
  EXPECT_THAT(call.Results(),
              ElementsAre("WARNING NotEmitted: desired.composite"));
  call([](fn::Context& ctx) { fn::Value(ctx.composite()) = 5; });
  EXPECT_EQ(call.DesiredComposite(), before);
  call([](fn::Context& ctx) {
    fn::Value(ctx.composite()) = fn::Yaml("{spec: {x: 1}, status: {z: 1}}");
  });
  EXPECT_EQ(call.DesiredComposite(),
            YamlAsJson("{apiVersion: example.org/v1, kind: XNet, status: "
                       "{earlier: 1, z: 1}}"));
}

TEST(Emission, AwaitedStatusOfTheCompositeIsKeptSilently) {
  Caller call;
  call.Composite("{apiVersion: e/v1, kind: X, status: {id: old, other: 1}}");
  call([](fn::Context& ctx) {
    auto status = ctx.composite()["status"];
    auto from = ctx.resource("a", "v1", "A").observed()["status"];
    status["id"] = from["id"];
    status["new"] = from["id"];
    status["set"] = 1;
  });
  EXPECT_EQ(call.DesiredComposite(),
            YamlAsJson("{apiVersion: e/v1, kind: X, status: {id: old, set: "
                       "1}}"));
  EXPECT_THAT(call.Results(), IsEmpty());
}

TEST(Emission, AwaitedConnectionDetailsAreKept) {
  Caller call;
  auto& seen = *call.request.mutable_observed()->mutable_composite();
  (*seen.mutable_connection_details())["password"] = "old";
  const auto function = [](fn::Context& ctx) {
    auto a = ctx.resource("a", "v1", "A");
    const auto details = a.observed().connection_details();
    ctx.composite().connection_detail("password", details["password"]);
    ctx.composite().connection_detail("other", details["other"]);
  };
  call(function);
  const auto details = [&] {
    return call.response.desired().composite().connection_details();
  };
  EXPECT_EQ(details().at("password"), "old");
  EXPECT_EQ(details().size(), 1u);
  call.Observed("a", "{}");
  auto& a = (*call.request.mutable_observed()->mutable_resources())["a"];
  (*a.mutable_connection_details())["password"] = "\xff";
  call(function);
  EXPECT_EQ(details().at("password"), "\xff");
  EXPECT_EQ(details().size(), 1u);
}

TEST(Emission, ReadinessStaysUnlessItIsSet) {
  Caller call;
  for (const char* name :
       {"true", "false", "none", "own", "set", "untouched"}) {
    call.Desired(name, "{apiVersion: v1, kind: A}");
  }
  auto& desired = *call.request.mutable_desired()->mutable_resources();
  desired["own"].set_ready(v1::READY_TRUE);
  call.Observed("true",
                "{status: {conditions: [{type: Other, status: 'False'}, "
                "{type: Ready, status: 'True'}]}}");
  call.Observed("false",
                "{status: {conditions: [{type: Ready, status: 'False'}]}}");
  call.Observed("none",
                "{status: {conditions: [{type: Ready, status: Unknown}]}}");
  call.Observed("own",
                "{status: {conditions: [{type: Ready, status: 'False'}]}}");
  const auto name_all = [](fn::Context& ctx) {
    for (const char* name : {"true", "false", "none", "own"}) {
      ctx.resource(name, "v1", "A");
    }
    ctx.resource("set", "v1", "A").ready(fn::Ready::kFalse);
  };
  call(name_all);
  EXPECT_EQ(call.ReadyOf("true"), v1::READY_UNSPECIFIED);
  EXPECT_EQ(call.ReadyOf("own"), v1::READY_TRUE);
  EXPECT_EQ(call.ReadyOf("set"), v1::READY_FALSE);
  call([&](fn::Context& ctx) {
    ctx.auto_ready();
    name_all(ctx);
  });
  EXPECT_EQ(call.ReadyOf("true"), v1::READY_TRUE);
  EXPECT_EQ(call.ReadyOf("false"), v1::READY_FALSE);
  EXPECT_EQ(call.ReadyOf("none"), v1::READY_UNSPECIFIED);
  EXPECT_EQ(call.ReadyOf("own"), v1::READY_TRUE);
  EXPECT_EQ(call.ReadyOf("set"), v1::READY_FALSE);
  EXPECT_EQ(call.ReadyOf("untouched"), v1::READY_UNSPECIFIED);
  call([](fn::Context& ctx) {
    ctx.resource("own", "v1", "A").ready(fn::Ready::kObserved);
  });
  EXPECT_EQ(call.ReadyOf("own"), v1::READY_FALSE);
}

TEST(Emission, TheCompositeIsNotReadyWhileAResourceIsHeld) {
  Caller call;
  const auto held = [](fn::Context& ctx) {
    ctx.resource("b", "v1", "B")["spec"]["x"] =
        ctx.resource("a", "v1", "A").observed()["status"]["id"];
  };
  auto& composite = *call.request.mutable_desired()->mutable_composite();
  composite.set_ready(v1::READY_TRUE);
  call(held);
  EXPECT_EQ(call.response.desired().composite().ready(), v1::READY_FALSE);
  call([&](fn::Context& ctx) {
    held(ctx);
    ctx.composite().ready(fn::Ready::kTrue);
  });
  EXPECT_EQ(call.response.desired().composite().ready(), v1::READY_TRUE);
  // An operation has no composite.
  call.request.clear_desired();
  call.request.mutable_observed()->clear_composite();
  call(held);
  EXPECT_FALSE(call.response.desired().has_composite());
}

TEST(Emission, ExistingTakesEffectWhereAnEarlierStepDesiresIt) {
  Caller call;
  const auto function = [](fn::Context& ctx) {
    ctx.existing("a")["spec"]["x"] = 1;
    ctx.existing("a").ready(fn::Ready::kTrue);
  };
  call(function);
  EXPECT_FALSE(call.response.has_desired());
  call.Desired("a", "{kind: A}")(function);
  EXPECT_EQ(call.Resource("a"), YamlAsJson("{kind: A, spec: {x: 1}}"));
  EXPECT_EQ(call.ReadyOf("a"), v1::READY_TRUE);
}

TEST(Emission, TheLastOfRemoveAndResourceCounts) {
  Caller call;
  call.Desired("a", "{apiVersion: v1, kind: A}");
  call([](fn::Context& ctx) {
    ctx.resource("a", "v1", "A");
    ctx.remove("a");
  });
  EXPECT_EQ(call.Resource("a"), "");
  call([](fn::Context& ctx) {
    ctx.remove("a");
    ctx.resource("a", "v1", "A");
  });
  EXPECT_NE(call.Resource("a"), "");
}

TEST(Emission, ApiVersionAndKindAreFilledIn) {
  Caller call;
  call([](fn::Context& ctx) {
    auto a = ctx.resource("a", "v1", "A");
    a = fn::Yaml("{spec: {x: 1}}");
    auto b = ctx.resource("b", "v1", "B");
    b.clear();
  });
  EXPECT_EQ(call.Resource("a"),
            YamlAsJson("{apiVersion: v1, kind: A, spec: {x: 1}}"));
  EXPECT_EQ(call.Resource("b"), YamlAsJson("{apiVersion: v1, kind: B}"));
  call([](fn::Context& ctx) { fn::Value(ctx.resource("a", "v1", "A")) = "x"; });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: desired.resources.a: must be an object, is "
                          "text"));
}

TEST(Emission, ObservedHandlesAreReadOnly) {
  using Write = std::function<void(fn::Context&, const fn::Resource&)>;
  const std::vector<std::pair<Write, std::string>> writes = {
      {[](fn::Context&, const fn::Resource& r) { r.ready(fn::Ready::kTrue); },
       "observed.resources.a: is read-only"},
      {[](fn::Context& ctx, const fn::Resource& r) {
         r.depends_on(ctx.existing("b"));
       },
       "observed.resources.a: is read-only"},
      {[](fn::Context&, const fn::Resource& r) {
         r.on_lost(fn::OnLost::kKeep);
       },
       "observed.resources.a: is read-only"},
      {[](fn::Context&, const fn::Resource& r) {
         r.connection_detail("k", "v");
       },
       "observed.resources.a: is read-only"},
      {[](fn::Context&, const fn::Resource& r) { r.external_name("n"); },
       "observed.resources.a.metadata.annotations.\"crossplane.io/external-"
       "name\": is read-only"},
      {[](fn::Context&, const fn::Resource& r) { r["spec"]["x"] = 1; },
       "observed.resources.a.spec.x: is read-only"},
      {[](fn::Context& ctx, const fn::Resource& r) {
         fn::Value(ctx.existing("a")) = fn::Value(r);
       },
       "desired.resources.a: observed.resources.a cannot be copied as a "
       "whole"},
      {[](fn::Context& ctx, const fn::Resource& r) {
         ctx.existing("a")["metadata"] = r["metadata"];
       },
       "desired.resources.a.metadata: observed.resources.a.metadata cannot be "
       "copied as a whole"},
      {[](fn::Context& ctx, const fn::Resource& r) {
         ctx.composite()["status"]["all"] = r["status"];
       },
       "desired.composite.status.all: observed.resources.a.status cannot be "
       "copied as a whole"},
      {[](fn::Context& ctx, const fn::Resource& r) {
         ctx.composite().depends_on(r);
       },
       "desired.composite: depends_on is for composed resources, and for "
       "required ones that they depend on"},
  };
  Caller call;
  call.Observed("a", "{metadata: {name: x}, status: {}}");
  for (const auto& one : writes) {
    // clang captures no structured binding.
    const auto& write = std::get<0>(one);
    const auto& text = std::get<1>(one);
    call([&](fn::Context& ctx) { write(ctx, ctx.existing("a").observed()); });
    EXPECT_THAT(call.Results(), ElementsAre("FATAL: " + text));
  }
}

TEST(Emission, EqualRequestsHaveEqualBytes) {
  Caller call;
  call.Composite(
      "{apiVersion: e/v1, kind: X, spec: {parameters: {location: EU}}}");
  for (int i = 0; i < 20; ++i) {
    call.Desired(absl::StrCat("r", i), "{apiVersion: v1, kind: A}");
  }
  call(Storage);
  const std::string first = call.result.response;
  call(Storage);
  EXPECT_EQ(call.result.response, first);
}

constexpr char kA[] = "{apiVersion: v1, kind: A, spec: {x: ox}}";

// Resource "a" is observed and desired by an earlier step as kA, and "b" is
// observed without the field `status.id`.
class LostTest : public ::testing::Test {
 protected:
  LostTest() {
    call.Composite("{apiVersion: example.org/v1, kind: XStorage}");
    call.Observed("a", kA).Desired("a", kA);
    call.Observed("b", "{apiVersion: v1, kind: B, status: {there: t}}");
  }

  Caller call;
};

TEST_F(LostTest, InputThatIsThereAndOptionalLeavesTheResultAwaited) {
  call([](fn::Context& ctx) {
    auto status = ctx.resource("b", "v1", "B").observed()["status"];
    const auto there = status["there"].as<std::string>().optional();
    const auto lost = status["id"].as<std::string>();
    ctx.resource("a", "v1", "A")["spec"]["x"] = fn::Concat(there, ":", lost);
    ctx.resource("c", "v1", "C")["spec"]["x"] = fn::Apply(
        [](const std::string& a, const std::string& b) { return a + b; }, there,
        lost);
  });
  EXPECT_EQ(call.Resource("a"), YamlAsJson(kA));
  EXPECT_EQ(call.Resource("c"), "");
}

TEST_F(LostTest, NullIsNoValueYet) {
  call.Observed("b", "{apiVersion: v1, kind: B, status: {id: null}}");
  for (const bool typed : {false, true}) {
    call([typed](fn::Context& ctx) {
      auto id = ctx.resource("b", "v1", "B").observed()["status"]["id"];
      auto a = ctx.resource("a", "v1", "A");
      auto c = ctx.resource("c", "v1", "C");
      if (typed) {
        a["spec"]["x"] = id.as<std::string>();
        c["spec"]["x"] = fn::Concat("a", id);
      } else {
        a["spec"]["x"] = id;
        c["spec"]["x"] = id;
      }
    });
    EXPECT_EQ(call.Resource("a"), YamlAsJson(kA));
    EXPECT_EQ(call.Resource("c"), "");
    EXPECT_THAT(call.Results(),
                ElementsAre("NORMAL Dependencies: c waits for b.status.id (not "
                            "ready yet); graph: b -> a, b -> c",
                            "WARNING KeptObserved: a.spec.x"));
  }
}

TEST_F(LostTest, WhatAnEarlierStepHasInsteadStays) {
  call([](fn::Context& ctx) {
    auto id = ctx.resource("b", "v1", "B").observed()["status"]["id"];
    ctx.resource("a", "v1", "A")["spec"]["x"]["deep"] = id;
  });
  EXPECT_EQ(call.Resource("a"), YamlAsJson(kA));
}

TEST(Emission, ElementsThatAreAbsentAreLeftOut) {
  Caller call;
  call.Composite("{apiVersion: example.org/v1, kind: XStorage, spec: {x: 1}}");
  call([](fn::Context& ctx) {
    auto spec = ctx.composite().observed()["spec"];
    auto a = ctx.resource("a", "v1", "A");
    a["spec"]["untyped"].add("one");
    a["spec"]["untyped"].add(spec["none"]);
    a["spec"]["untyped"].add(fn::kNull);
    fn::List<std::string> list = {"one", spec["none"].as<std::string>(), "two"};
    list.push_back(a.observed()["status"]["x"].as<std::string>().optional());
    a["spec"]["typed"] = list;
  });
  EXPECT_EQ(call.Resource("a"),
            YamlAsJson("{apiVersion: v1, kind: A, spec: {typed: [one, two], "
                       "untyped: [one, null]}}"));
}

TEST(Emission, NullThatBecomesAnObjectHidesEarlierFields) {
  Caller call;
  call.Desired("a", "{apiVersion: v1, kind: A, spec: {o: {q: 1}}}");
  call([](fn::Context& ctx) {
    auto object = ctx.resource("a", "v1", "A")["spec"]["o"];
    object = fn::kNull;
    object["p"] = 1;
  });
  EXPECT_EQ(call.Resource("a"),
            YamlAsJson("{apiVersion: v1, kind: A, spec: {o: {p: 1}}}"));
}

TEST(Emission, AnotherTypeThanReadIsFatalInAnUntypedFieldToo) {
  Caller call;
  call.Composite("{apiVersion: example.org/v1, kind: XStorage, spec: {x: 5}}");
  call([](fn::Context& ctx) {
    auto x = ctx.composite().observed()["spec"]["x"];
    ctx.resource("a", "v1", "A")["spec"]["x"] = x.as<std::string>();
  });
  EXPECT_THAT(call.Results(),
              ElementsAre("FATAL: observed.composite.spec.x: must be text, is "
                          "a number"));
}

TEST(Emission, DocumentThatIsWrittenTooDeepIsFatal) {
  Caller call;
  call([](fn::Context& ctx) {
    std::vector<fn::Value> all = {ctx.resource("a", "v1", "A")["spec"]};
    for (int i = 0; i < 200000; ++i) {
      all.push_back(i % 2 == 0 ? all.back()["x"] : all.back()[0]);
    }
    all.back() = 1;
  });
  EXPECT_THAT(
      call.Results(),
      ElementsAre("FATAL: a document is nested deeper than 330 levels"));
}

}  // namespace
}  // namespace fncache::sdk
