// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/requirements.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runner/messages.h"

namespace fncache::runner::engine {
namespace {

namespace fn = apiextensions::fn::proto::v1;
using google::protobuf::Struct;
using testing::ElementsAre;

fn::RunFunctionResponse Response(absl::string_view json) {
  return FromJson<fn::RunFunctionResponse>(json);
}

template <typename Selector>
std::vector<std::string> Names(const Selectors::Named<Selector>& named) {
  std::vector<std::string> names;
  for (const auto& [name, selector] : named) {
    names.push_back(name + "=" + selector.kind());
  }
  return names;
}

// Kinds A and B with one object each, labelled and named alike.
ObjectStore TwoObjects() {
  ObjectStore store;
  for (const char* kind : {"A", "B"}) {
    store.Add(FromJson<Struct>(absl::StrCat(
        R"({"apiVersion": "v1", "kind": ")", kind,
        R"(", "metadata": {"name": "it", "labels": {"l": "1"}}})")));
  }
  return store;
}

Required Resolve(absl::string_view requirements) {
  const ObjectStore store = TwoObjects();
  const Selectors selectors =
      RequiredSelectors(FromJson<fn::Requirements>(requirements));
  Required required = FetchResources(selectors, store);
  for (const auto& [name, selector] : selectors.schemas) {
    fn::Schema& schema = required.schemas[name];
    if (selector.kind() != "None") {
      (*schema.mutable_openapi_v3()->mutable_fields())["kind"].set_string_value(
          selector.kind());
    }
  }
  return required;
}

// --- Selectors --------------------------------------------------------------

TEST(SelectorsTest, BootstrapIsAsWritten) {
  PipelineStep step;
  step.required_resources = {
      {"z", FromJson<fn::ResourceSelector>(R"({"kind": "A"})")},
      {"a", FromJson<fn::ResourceSelector>(R"({"kind": "B"})")},
      {"z", FromJson<fn::ResourceSelector>(R"({"kind": "C"})")}};
  step.required_schemas = {
      {"s", FromJson<fn::SchemaSelector>(R"({"kind": "D"})")}};
  const Selectors selectors = BootstrapSelectors(step);
  EXPECT_THAT(Names(selectors.resources), ElementsAre("z=A", "a=B", "z=C"));
  EXPECT_THAT(Names(selectors.schemas), ElementsAre("s=D"));
  EXPECT_TRUE(selectors.extra_resources.empty());
}

TEST(SelectorsTest, RequirementsAreInTheOrderOfTheirNames) {
  const Selectors selectors = RequiredSelectors(FromJson<fn::Requirements>(R"({
      "extraResources": {"b": {"kind": "B"}, "a": {"kind": "A"}},
      "resources": {"d": {"kind": "D"}, "c": {"kind": "C"},
                    "cc": {"kind": "CC"}, "": {"kind": "E"}},
      "schemas": {"f": {"kind": "F"}, "e": {"kind": "E"}}})"));
  EXPECT_THAT(Names(selectors.extra_resources), ElementsAre("a=A", "b=B"));
  EXPECT_THAT(Names(selectors.resources),
              ElementsAre("=E", "c=C", "cc=CC", "d=D"));
  EXPECT_THAT(Names(selectors.schemas), ElementsAre("e=E", "f=F"));
}

TEST(FetchResourcesTest, EveryNameIsThereFoundOrNot) {
  const Required required = Resolve(R"({
      "extraResources": {"e": {"apiVersion": "v1", "kind": "A"},
                         "f": {"apiVersion": "v1", "kind": "Z",
                               "matchName": "it"}},
      "resources": {
        "list": {"apiVersion": "v1", "kind": "B"},
        "named": {"apiVersion": "v1", "kind": "B", "matchName": "it"},
        "noList": {"apiVersion": "v1", "kind": "Z"},
        "noName": {"apiVersion": "v1", "kind": "B", "matchName": "no"}}})");
  EXPECT_EQ(required.extra_resources.size(), 2U);
  EXPECT_EQ(required.extra_resources.at("e").items_size(), 1);
  EXPECT_EQ(required.extra_resources.at("f").items_size(), 0);
  EXPECT_EQ(required.resources.size(), 4U);
  EXPECT_EQ(required.resources.at("list").items_size(), 1);
  EXPECT_EQ(required.resources.at("named").items_size(), 1);
  EXPECT_EQ(required.resources.at("noList").items_size(), 0);
  EXPECT_EQ(required.resources.at("noName").items_size(), 0);
  EXPECT_THAT(required.not_found, ElementsAre("noName"));
}

TEST(FetchResourcesTest, OfTwoWithOneNameTheLastCounts) {
  const ObjectStore store = TwoObjects();
  const auto selector = [](absl::string_view json) {
    return std::make_pair(std::string("x"),
                          FromJson<fn::ResourceSelector>(json));
  };
  const auto missing =
      selector(R"({"apiVersion": "v1", "kind": "A", "matchName": "no"})");
  const auto there =
      selector(R"({"apiVersion": "v1", "kind": "A", "matchName": "it"})");
  Selectors selectors;
  selectors.resources = {missing, there};
  Required required = FetchResources(selectors, store);
  EXPECT_EQ(required.resources.at("x").items_size(), 1);
  EXPECT_TRUE(required.not_found.empty());
  selectors.resources = {there, missing};
  required = FetchResources(selectors, store);
  EXPECT_EQ(required.resources.at("x").items_size(), 0);
  EXPECT_THAT(required.not_found, ElementsAre("x"));
}

// --- Which response is the last ---------------------------------------------

// Whether a function that answers `first`, is then given what it requires, and
// answers `second`, is done then.
bool Settles(absl::string_view first, absl::string_view second) {
  RequirementsLoop loop{Required()};
  const fn::RunFunctionResponse response = Response(first);
  if (loop.IsLast(response)) {
    ADD_FAILURE() << "the first answer requires nothing";
    return false;
  }
  fn::RunFunctionRequest request;
  const auto again =
      loop.Fetched(Resolve(ToJson(response.requirements())), &request);
  EXPECT_TRUE(again.ok() && *again) << first;
  return loop.IsLast(Response(second));
}

constexpr absl::string_view kFull = R"({"requirements": {
    "extraResources": {"e": {"apiVersion": "v1", "kind": "A"}},
    "resources": {
      "l": {"apiVersion": "v1", "kind": "A",
            "matchLabels": {"labels": {"x": "1", "y": "2"}}},
      "n": {"apiVersion": "v1", "kind": "B", "matchName": "it",
            "namespace": ""}},
    "schemas": {"s": {"apiVersion": "v1", "kind": "A"},
                "t": {"apiVersion": "v1", "kind": "B"}}}})";

TEST(RequirementsLoopTest, AResponseWithoutRequirementsIsTheLast) {
  RequirementsLoop loop(Resolve(R"({"resources": {"a": {"kind": "A"}}})"));
  EXPECT_TRUE(loop.IsLast(Response("{}")));
  EXPECT_EQ(loop.calls(), 1);
}

TEST(RequirementsLoopTest, EmptyRequirementsNeedNoSecondCall) {
  RequirementsLoop loop{Required()};
  EXPECT_FALSE(loop.IsLast(Response(R"({"requirements": {}})")));
  fn::RunFunctionRequest request;
  const auto again = loop.Fetched(Resolve("{}"), &request);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(*again);
}

TEST(RequirementsLoopTest, EqualRequirementsAreTheLast) {
  // Another message has its maps in another order.
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Settles(kFull, kFull));
}

TEST(RequirementsLoopTest, AnythingThatDiffersIsNot) {
  const auto differs = [](absl::string_view from, absl::string_view to) {
    std::string other(kFull);
    const size_t at = other.find(std::string(from));
    ASSERT_NE(at, std::string::npos) << from;
    other.replace(at, from.size(), std::string(to));
    EXPECT_FALSE(Settles(kFull, other)) << from << " became " << to;
    EXPECT_FALSE(Settles(other, kFull)) << to << " became " << from;
  };
  differs(R"("e": {)", R"("f": {)");
  differs(R"("l": {)", R"("m": {)");
  differs(R"("t": {)", R"("u": {)");
  differs(R"("y": "2")", R"("y": "3")");
  differs(R"(, "y": "2")", "");
  differs(R"("matchName": "it")", R"("matchName": "")");
  differs(R"(, "matchName": "it")", "");
  differs(R"("matchName": "it")", R"("matchLabels": {})");
  // Absent and empty are two things here, though they select the same.
  differs(R"(,
            "namespace": "")",
          "");
  differs(R"("kind": "A"}},)", R"("kind": "AList"}},)");
  differs(R"({"s": {"apiVersion": "v1")", R"({"s": {"apiVersion": "v2")");
}

TEST(RequirementsLoopTest, UnknownFieldsOfRequirementsCount) {
  fn::RunFunctionResponse plain = Response(kFull);
  fn::RunFunctionResponse other = plain;
  auto* const requirements = other.mutable_requirements();
  requirements->GetReflection()
      ->MutableUnknownFields(requirements)
      ->AddVarint(99, 1);
  RequirementsLoop loop{Required()};
  EXPECT_FALSE(loop.IsLast(plain));
  EXPECT_FALSE(loop.IsLast(other));
  EXPECT_TRUE(loop.IsLast(other));
}

TEST(RequirementsLoopTest, NoneAndEmptyRequirementsDiffer) {
  EXPECT_FALSE(Settles(kFull, "{}"));
  EXPECT_FALSE(Settles(kFull, R"({"requirements": {}})"));
  RequirementsLoop loop{Required()};
  EXPECT_FALSE(loop.IsLast(Response(kFull)));
  EXPECT_FALSE(loop.IsLast(Response(R"({"requirements": {}})")));
  EXPECT_FALSE(loop.IsLast(Response("{}")));
  EXPECT_TRUE(loop.IsLast(Response("{}")));
  EXPECT_EQ(loop.calls(), 4);
}

TEST(RequirementsLoopTest, OnlyTheResponseBeforeCounts) {
  RequirementsLoop loop{Required()};
  EXPECT_FALSE(loop.IsLast(Response(kFull)));
  EXPECT_FALSE(loop.IsLast(Response("{}")));
  EXPECT_FALSE(loop.IsLast(Response(kFull)));
}

TEST(RequirementsLoopTest, AFatalResultIsTheLastWhateverIsRequired) {
  for (
      const char* results :
      {R"([{"severity": "SEVERITY_FATAL"}])",
       R"([{"severity": "SEVERITY_NORMAL"}, {"severity": "SEVERITY_FATAL"}])"}) {
    RequirementsLoop loop{Required()};
    EXPECT_FALSE(loop.IsLast(Response(kFull)));
    EXPECT_TRUE(loop.IsLast(Response(
        absl::StrCat(R"({"requirements": {}, "results": )", results, "}"))));
  }
  RequirementsLoop loop{Required()};
  EXPECT_FALSE(loop.IsLast(Response(R"({"requirements": {}, "results": [
      {}, {"severity": "SEVERITY_WARNING"}, {"severity": "SEVERITY_NORMAL"}]})")));
}

// --- What was sent up front -------------------------------------------------

// Whether a function that was given what `bootstrap` resolves to, and requires
// `requirements`, is called again.
bool CalledAgain(absl::string_view bootstrap, absl::string_view requirements) {
  RequirementsLoop loop(Resolve(bootstrap));
  EXPECT_FALSE(loop.IsLast(
      Response(absl::StrCat(R"({"requirements": )", requirements, "}"))));
  fn::RunFunctionRequest request;
  const auto again = loop.Fetched(Resolve(requirements), &request);
  EXPECT_TRUE(again.ok());
  return *again;
}

constexpr absl::string_view kBootstrap = R"({
    "resources": {"a": {"apiVersion": "v1", "kind": "A"},
                  "b": {"apiVersion": "v1", "kind": "B", "matchName": "it"},
                  "none": {"apiVersion": "v1", "kind": "C"},
                  "noName": {"apiVersion": "v1", "kind": "C",
                             "matchName": "it"}},
    "schemas": {"s": {"kind": "A"}, "none": {"kind": "None"}}})";

TEST(RequirementsLoopTest, WhatBootstrapSentAlreadyIsNotSentTwice) {
  EXPECT_FALSE(CalledAgain(kBootstrap, "{}"));
  EXPECT_FALSE(CalledAgain(kBootstrap, kBootstrap));
  // A part of it does as well: bootstrap is sent with every call.
  EXPECT_FALSE(
      CalledAgain(kBootstrap,
                  R"({"resources": {"b": {"apiVersion": "v1", "kind": "B",
                              "matchName": "it"}}})"));
  EXPECT_FALSE(CalledAgain(kBootstrap, R"({"schemas": {"s": {"kind": "A"}}})"));
}

TEST(RequirementsLoopTest, ItIsTheResolvedThatCountsNotTheSelectors) {
  EXPECT_FALSE(CalledAgain(kBootstrap,
                           R"({"resources": {
            "a": {"apiVersion": "v1", "kind": "A", "matchName": "it"},
            "b": {"apiVersion": "v1", "kind": "B",
                  "matchLabels": {"labels": {"l": "1"}}},
            "none": {"apiVersion": "v1", "kind": "A",
                     "matchLabels": {"labels": {"l": "2"}}},
            "noName": {"apiVersion": "v1", "kind": "A",
                       "matchName": "other"}}})"));
}

TEST(RequirementsLoopTest, AnythingElseIsFetchedAndSent) {
  for (const absl::string_view requirements : {
           // another name
           R"({"resources": {"c": {"apiVersion": "v1", "kind": "A"}}})",
           R"({"resources": {"c": {"apiVersion": "v1", "kind": "Z"}}})",
           R"({"schemas": {"t": {"kind": "A"}}})",
           R"({"schemas": {"t": {"kind": "None"}}})",
           // other content
           R"({"resources": {"a": {"apiVersion": "v1", "kind": "B"}}})",
           R"({"resources": {"a": {"apiVersion": "v1", "kind": "Z"}}})",
           R"({"resources": {"none": {"apiVersion": "v1", "kind": "A"}}})",
           R"({"schemas": {"s": {"kind": "B"}}})",
           R"({"schemas": {"s": {"kind": "None"}}})",
           R"({"schemas": {"none": {"kind": "A"}}})",
           // extra resources are never sent up front
           R"({"extraResources": {"a": {"apiVersion": "v1", "kind": "A"}}})",
           R"({"extraResources": {"a": {"apiVersion": "v1", "kind": "Z"}}})",
       }) {
    EXPECT_TRUE(CalledAgain(kBootstrap, requirements)) << requirements;
  }
}

// The reference runner has no list where a named object is missing, and an
// empty one where a list has nothing: they look alike on the wire only.
TEST(RequirementsLoopTest, AMissingObjectIsNoEmptyList) {
  EXPECT_TRUE(
      CalledAgain(kBootstrap, R"({"resources": {"noName": {"apiVersion": "v1",
                                               "kind": "Z"}}})"));
  EXPECT_TRUE(CalledAgain(
      kBootstrap, R"({"resources": {"none": {"apiVersion": "v1", "kind": "Z",
                                             "matchName": "it"}}})"));
}

TEST(RequirementsLoopTest, LaterCallsDoNotLookAtBootstrap) {
  RequirementsLoop loop(Resolve(kBootstrap));
  fn::RunFunctionRequest request;
  EXPECT_FALSE(loop.IsLast(Response(kFull)));
  ASSERT_TRUE(
      loop.Fetched(Resolve(R"({"resources": {"c": {"kind": "C"}}})"), &request)
          .ok());
  EXPECT_FALSE(loop.IsLast(Response(R"({"requirements": {}})")));
  const auto again = loop.Fetched(Resolve("{}"), &request);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(*again);
}

// --- Requests ---------------------------------------------------------------

constexpr absl::string_view kItA =
    R"({"resource": {"apiVersion": "v1", "kind": "A",
                     "metadata": {"name": "it", "labels": {"l": "1"}}}})";
constexpr absl::string_view kItB =
    R"({"resource": {"apiVersion": "v1", "kind": "B",
                     "metadata": {"name": "it", "labels": {"l": "1"}}}})";

TEST(RequirementsLoopTest, TheFirstRequestHasBootstrapOnly) {
  RequirementsLoop loop(Resolve(kBootstrap));
  // This is what an earlier step was sent last.
  auto request = FromJson<fn::RunFunctionRequest>(R"({
      "desired": {}, "extraResources": {"old": {}},
      "requiredResources": {"old": {}}, "requiredSchemas": {"old": {}}})");
  loop.FillFirst(&request);
  ExpectJson(request, absl::StrCat(R"({
      "desired": {},
      "requiredResources": {"a": {"items": [)",
                                   kItA, R"(]},
                            "b": {"items": [)",
                                   kItB, R"(]},
                            "none": {}, "noName": {}},
      "requiredSchemas": {"s": {"openapiV3": {"kind": "A"}}, "none": {}}})"));
}

TEST(RequirementsLoopTest, ARepeatHasBootstrapUnderWhatIsRequired) {
  RequirementsLoop loop(Resolve(kBootstrap));
  auto request = FromJson<fn::RunFunctionRequest>(
      R"({"meta": {"tag": "t"}, "desired": {}, "context": {"c": 1}})");
  loop.FillFirst(&request);
  EXPECT_FALSE(loop.IsLast(Response(kFull)));
  auto again = loop.Fetched(
      Resolve(R"({"extraResources": {"b": {"apiVersion": "v1", "kind": "B"}},
                  "resources": {"a": {"apiVersion": "v1", "kind": "B"},
                                "new": {"apiVersion": "v1", "kind": "A"}},
                  "schemas": {"s": {"kind": "None"}, "t": {"kind": "T"}}})"),
      &request);
  ASSERT_TRUE(again.ok() && *again);
  ExpectJson(request, absl::StrCat(R"({
      "meta": {"tag": "t"}, "desired": {}, "context": {"c": 1},
      "extraResources": {"b": {"items": [)",
                                   kItB, R"(]}},
      "requiredResources": {"a": {"items": [)",
                                   kItB, R"(]},
                            "b": {"items": [)",
                                   kItB, R"(]},
                            "new": {"items": [)",
                                   kItA, R"(]},
                            "none": {}, "noName": {}},
      "requiredSchemas": {"s": {}, "none": {},
                          "t": {"openapiV3": {"kind": "T"}}}})"));

  // And the next: what was required before is gone.
  EXPECT_FALSE(loop.IsLast(Response("{}")));
  again = loop.Fetched(Resolve("{}"), &request);
  ASSERT_TRUE(again.ok() && *again);
  ExpectJson(request, absl::StrCat(R"({
      "meta": {"tag": "t"}, "desired": {}, "context": {"c": 1},
      "requiredResources": {"a": {"items": [)",
                                   kItA, R"(]},
                            "b": {"items": [)",
                                   kItB, R"(]},
                            "none": {}, "noName": {}},
      "requiredSchemas": {"s": {"openapiV3": {"kind": "A"}}, "none": {}}})"));
}

TEST(RequirementsLoopTest, FiveRepeatsAreEnough) {
  RequirementsLoop loop{Required()};
  fn::RunFunctionRequest request;
  for (int call = 1; call <= 6; ++call) {
    const std::string requirements =
        absl::StrCat(R"({"resources": {"r": {"kind": "K)", call, R"("}}})");
    EXPECT_FALSE(loop.IsLast(
        Response(absl::StrCat(R"({"requirements": )", requirements, "}"))));
    EXPECT_EQ(loop.calls(), call);
    const auto again = loop.Fetched(Resolve(requirements), &request);
    if (call < 6) {
      ASSERT_TRUE(again.ok()) << call;
      EXPECT_TRUE(*again);
    } else {
      EXPECT_EQ(again.status().code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_EQ(again.status().message(),
                "requirements didn't stabilize after the maximum number of "
                "iterations (5)");
    }
  }
}

TEST(RequirementsLoopTest, TheSixthResponseMaySettle) {
  RequirementsLoop loop{Required()};
  fn::RunFunctionRequest request;
  for (int call = 1; call <= 6; ++call) {
    const std::string requirements = absl::StrCat(
        R"({"resources": {"r": {"kind": "K)", std::min(call, 5), R"("}}})");
    const bool last = loop.IsLast(
        Response(absl::StrCat(R"({"requirements": )", requirements, "}")));
    EXPECT_EQ(last, call == 6);
    if (!last) {
      ASSERT_TRUE(loop.Fetched(Resolve(requirements), &request).ok());
    }
  }
}

}  // namespace
}  // namespace fncache::runner::engine
