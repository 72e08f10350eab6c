// SPDX-License-Identifier: Apache-2.0
// SDK.md, section 8: what a call reports of its reads.
#include "sdk/compose/hint.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/sdk/compose/caller.h"

namespace fncache::sdk {
namespace {

TEST(Hint, IsADictionaryOfRfc9651) {
  EXPECT_EQ(Hint({}, false), "reads=()");
  EXPECT_EQ(Hint({"observed.resources.bucket.resource.metadata.annotations."
                  "\"crossplane.io/external-name\"",
                  "observed.composite.resource.spec.parameters.location"},
                 true),
            "reads=(\"observed.composite.resource.spec.parameters.location\" "
            "\"observed.resources.bucket.resource.metadata.annotations."
            "\\\"crossplane.io/external-name\\\"\"), pure");
  EXPECT_EQ(Hint({R"(a."b\"\\.c".d)"}, false),
            R"(reads=("a.\"b\\\"\\\\.c\".d"))");
}

TEST(Hint, TheParentOfAKeyThatIsNotAsciiIsListed) {
  EXPECT_EQ(Hint({"observed.composite.resource.spec.größe.x"}, false),
            "reads=(\"observed.composite.resource.spec\")");
  EXPECT_EQ(
      Hint({"observed.resources.größe.resource.spec", "a.\"b\tc\""}, false),
      "reads=(\"a\" \"observed.resources\")");
}

TEST(Hint, NamesOfResourcesAreWidenedFirst) {
  std::set<std::string> reads = {"observed.composite.resource.spec.x"};
  for (int i = 0; i < 3000; ++i) {
    reads.insert(absl::StrCat("observed.resources.bucket-", i,
                              ".resource.status.conditions.*.type"));
  }
  EXPECT_EQ(Hint(reads, true),
            "reads=(\"observed.composite.resource.spec.x\" "
            "\"observed.resources.*.resource.status.conditions.*.type\"), "
            "pure");
}

TEST(Hint, DeepestPathsAreWidenedToTheirParents) {
  std::set<std::string> reads = {"observed.composite.resource.metadata.name"};
  for (int i = 0; i < 100; ++i) {
    reads.insert(
        absl::StrCat("observed.composite.resource.spec.list.field-", i, ".x"));
  }
  EXPECT_EQ(Hint(reads, false),
            "reads=(\"observed.composite.resource.metadata.name\" "
            "\"observed.composite.resource.spec.list\")");
}

TEST(Hint, AnyPathsFit) {
  std::set<std::string> reads;
  for (int i = 0; i < 3000; ++i) {
    reads.insert(absl::StrCat("required_resources.k", i, ".items.*.x"));
    reads.insert(absl::StrCat("observed.composite.k", i));
  }
  EXPECT_EQ(Hint(reads, false), "reads=(\"observed\" \"required_resources\")");
}

std::string DependsOf(const fn::Function& function, Caller call = {}) {
  call(function);
  return call.result.depends;
}

TEST(Hint, ListsWhatTheFunctionRead) {
  Caller call;
  call.Composite("{spec: {a: 1, b: {c: 2}}, status: {}}");
  call.Observed("r", "{spec: {list: [{x: 1}]}, status: {q: 1}}");
  call.Input("{a: 1}");
  EXPECT_EQ(DependsOf(
                [](fn::Context& ctx) {
                  auto xr = ctx.composite().observed();
                  if (xr["spec"]["a"] == 1) ctx.normal("one");
                  ctx.input()["a"].as<int64_t>().value();
                  auto r = ctx.existing("r").observed();
                  for (size_t i = 0; i < r["spec"]["list"].size(); ++i) {
                    r["spec"]["list"][i]["x"].as<int64_t>().value();
                  }
                  ctx.resource("s", "v1", "S")["spec"]["whole"] =
                      xr["spec"]["b"];
                  ctx.resource("s", "v1", "S")["spec"]["absent"] =
                      xr["spec"]["absent"];
                },
                call),
            "reads=(\"observed.composite.resource.spec.a\" "
            "\"observed.composite.resource.spec.absent\" "
            "\"observed.composite.resource.spec.b\" "
            "\"observed.resources.r.resource.spec.list.*.x\")");
}

TEST(Hint, NamesThatAreSetsOfMasksAreQuoted) {
  Caller call;
  call.Composite("{spec: {'@times': {x: 1}}}");
  call.Observed("@versions", "{spec: {a: 1}}");
  EXPECT_EQ(DependsOf(
                [](fn::Context& ctx) {
                  ctx.composite().observed()["spec"]["@times"]["x"].size();
                  ctx.existing("@versions").observed()["spec"]["a"].size();
                },
                call),
            "reads=(\"observed.composite.resource.spec.\\\"@times\\\".x\" "
            "\"observed.resources.\\\"@versions\\\".resource.spec.a\")");
}

TEST(Hint, ListsWhatTheSdkRead) {
  Caller call;
  call.options.waiting_condition = "Composed";
  call.Observed("b", "{spec: {x: 1}}");
  call.Observed("a", "{}");
  const std::string hint = DependsOf(
      [](fn::Context& ctx) {
        auto from = ctx.existing("a").observed()["status"]["id"];
        ctx.resource("b", "v1", "B")["spec"]["x"] = from;
        ctx.resource("c", "v1", "C")["spec"]["x"] = from;
        ctx.composite()["status"]["set"] = 1;
        ctx.existing("b").ready(fn::Ready::kObserved);
      },
      call);
  EXPECT_EQ(hint,
            "reads=(\"observed.composite.resource.apiVersion\" "
            "\"observed.composite.resource.kind\" "
            "\"observed.composite.resource.status.conditions\" "
            "\"observed.resources.a.resource.status.conditions\" "
            "\"observed.resources.a.resource.status.id\" "
            "\"observed.resources.b.resource.spec.x\" "
            "\"observed.resources.b.resource.status.conditions\")");
}

// The parents of what is awaited are no reads: their other fields change with
// every heartbeat.
TEST(Hint, WhatIsAwaitedIsReadAtItsPathOnly) {
  Caller call;
  call.Composite("{status: {conditions: [{type: Ready}], other: 1}}")
      .Observed("b", "{status: {x: 1}}")
      .Observed("a", "{spec: {other: 1}}");
  call([](fn::Context& ctx) {
    auto id = ctx.resource("b", "v1", "B").observed()["status"]["id"];
    ctx.resource("a", "v1", "A")["spec"]["p"]["q"] = id;
    ctx.composite()["status"]["id"] = id;
  });
  const std::string& hint = call.result.depends;
  EXPECT_THAT(hint,
              testing::HasSubstr("\"observed.composite.resource.status.id\""));
  EXPECT_THAT(hint,
              testing::HasSubstr("\"observed.resources.a.resource.spec.p.q\""));
  EXPECT_THAT(hint, testing::Not(testing::HasSubstr("resource.status\"")));
  EXPECT_THAT(hint, testing::Not(testing::HasSubstr("resource.spec\"")));
  EXPECT_THAT(hint, testing::Not(testing::HasSubstr("spec.p\"")));
}

TEST(Hint, PureUnlessTimeOrCancellationWereAsked) {
  Caller call;
  call.options.pure = true;
  EXPECT_EQ(DependsOf([](fn::Context&) {}, call), "reads=(), pure");
  EXPECT_EQ(DependsOf([](fn::Context& ctx) { ctx.now(); }, call), "reads=()");
  EXPECT_EQ(DependsOf([](fn::Context& ctx) { ctx.deadline(); }, call),
            "reads=()");
  EXPECT_EQ(DependsOf([](fn::Context& ctx) { ctx.cancelled(); }, call),
            "reads=()");
}

TEST(Hint, LogLinesReadNothing) {
  EXPECT_EQ(DependsOf([](fn::Context& ctx) { ctx.log().debug("x"); }),
            "reads=()");
}

TEST(Hint, ABrokenDocumentIsReadAsAWhole) {
  Caller call;
  v1::RunFunctionRequest& request = call.request;
  std::string bytes = request.SerializeAsString();
  // A composite whose Struct is not one.
  const std::string broken("\x12\x05\x0a\x03\x0a\x01\xff", 7);
  request.clear_observed();
  const auto result =
      sdk::Run([](fn::Context& ctx) { ctx.composite().observed()["x"].size(); },
               fn::Options(), request.SerializeAsString() + broken,
               [] {
                 CallInfo info;
                 info.depends = true;
                 return info;
               }());
  EXPECT_EQ(result.depends, "reads=(\"observed.composite.resource\")");
}

TEST(Hint, IsMadeForCallersThatWantIt) {
  const auto result =
      sdk::Run([](fn::Context&) {}, fn::Options(), "", CallInfo());
  EXPECT_EQ(result.depends, "");
}

}  // namespace
}  // namespace fncache::sdk
