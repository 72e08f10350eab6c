// SPDX-License-Identifier: Apache-2.0
// The schema of docs/function.md, rule by rule.
#include "runner/function/template.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "runner/function/template_function.h"
#include "tests/runner/function/respond.h"
#include "tests/runner/messages.h"

namespace fncache::runner::function {
namespace {

namespace fn = apiextensions::fn::proto::v1;
using apiextensions::fn::proto::v1::RunFunctionRequest;
using apiextensions::fn::proto::v1::RunFunctionResponse;
using testing::HasSubstr;

constexpr char kObserved[] = R"({
  "composite": {"resource": {
    "apiVersion": "example.org/v1", "kind": "XStore",
    "metadata": {"name": "one"},
    "spec": {"region": "eu-1", "count": 2, "zones": ["a", "b", "c"]}}},
  "resources": {
    "up": {"resource": {"status": {"conditions": [
      {"type": "Synced", "status": "False"},
      {"type": "Ready", "status": "True"}]}}},
    "down": {"resource": {"status": {"conditions": [
      {"type": "Ready", "status": "False"}]}}},
    "unknown": {"resource": {"status": {"conditions": [
      {"type": "Ready", "status": "Unknown"}]}}},
    "bare": {"resource": {}}}})";

constexpr char kBase[] = R"("base": {"apiVersion": "v1", "kind": "B"})";

// A request with this `spec` as its input's. `more` adds fields to it.
RunFunctionRequest Request(absl::string_view spec,
                           absl::string_view more = "") {
  return FromJson<RunFunctionRequest>(absl::StrCat(
      R"({"meta": {"tag": "t"}, "observed": )", kObserved, R"(, "input": {
        "apiVersion": "function.fncache.dev/v1alpha1", "kind": "Template",
        "spec": )",
      spec, "}", more, "}"));
}

// A spec with one resource that has these fields besides its base.
std::string One(absl::string_view fields) {
  return absl::StrCat(R"({"resources": [{)", fields, ", ", kBase, "}]}");
}

RunFunctionResponse Answer(const RunFunctionRequest& request) {
  return Respond(TemplateFunction({}), request);
}

RunFunctionResponse Render(absl::string_view spec,
                           absl::string_view more = "") {
  const RunFunctionResponse response = Answer(Request(spec, more));
  for (const auto& result : response.results()) {
    EXPECT_NE(result.severity(), fn::SEVERITY_FATAL) << result.message();
  }
  return response;
}

// The message of the FATAL result that `spec` leads to.
std::string Fault(absl::string_view spec, absl::string_view more = "") {
  const RunFunctionResponse response = Answer(Request(spec, more));
  if (response.results_size() != 1 ||
      response.results(0).severity() != fn::SEVERITY_FATAL) {
    return "no fault: " + ToJson(response);
  }
  return response.results(0).message();
}

TEST(TemplateTest, AnswerCarriesTheTagAndTheTtl) {
  ExpectJson(Render("{}"), R"({"meta": {"tag": "t", "ttl": "60s"}})");
}

TEST(TemplateTest, StateAndContextOfEarlierStepsPassThrough) {
  const std::string earlier = R"(, "desired": {
      "composite": {"resource": {"status": {"a": 1}}},
      "resources": {"net": {"resource": {"kind": "N"}, "ready": "READY_TRUE"}}},
    "context": {"k": {"v": 1}})";
  ExpectJson(
      Render("{}", earlier),
      absl::StrCat(R"({"meta": {"tag": "t", "ttl": "60s"})", earlier, "}"));
}

TEST(TemplateTest, RequestWithoutInputIsPassedThrough) {
  RunFunctionRequest request = Request("{}", R"(, "context": {"k": 1})");
  request.clear_input();
  ExpectJson(Answer(request),
             R"({"meta": {"tag": "t", "ttl": "60s"}, "context": {"k": 1}})");
}

TEST(TemplateTest, ResourceIsRenderedFromItsBase) {
  const auto response = Render(R"({"resources": [{"name": "bucket", "base": {
      "apiVersion": "s3/v1", "kind": "Bucket", "spec": {
        "region": "${observed.composite.resource.spec.region}",
        "count": "${observed.composite.resource.spec.count}",
        "note": "in ${observed.composite.resource.spec.region}"}}}]})");
  ExpectJson(response.desired(), R"({"resources": {"bucket": {"resource": {
      "apiVersion": "s3/v1", "kind": "Bucket", "spec": {
        "region": "eu-1", "count": 2, "note": "in eu-1"}}}}})");
}

TEST(TemplateTest, CountRepeatsAResourceWithItsIndex) {
  const auto response = Render(R"({"resources": [{
      "name": "b-${index}",
      "count": "${observed.composite.resource.spec.count}",
      "base": {"apiVersion": "v1", "kind": "B", "n": "${index}"}}]})");
  ExpectJson(response.desired(), R"({"resources": {
      "b-0": {"resource": {"apiVersion": "v1", "kind": "B", "n": 0}},
      "b-1": {"resource": {"apiVersion": "v1", "kind": "B", "n": 1}}}})");
}

TEST(TemplateTest, CountOfAListIsItsLength) {
  const auto response = Render(
      One(R"("name": "b-${observed.composite.resource.spec.zones.${index}}",
             "count": "${observed.composite.resource.spec.zones}")"));
  EXPECT_EQ(response.desired().resources().size(), 3u);
  EXPECT_TRUE(response.desired().resources().contains("b-c"));
}

TEST(TemplateTest, CountOfZeroRendersNothing) {
  EXPECT_FALSE(Render(One(R"("name": "b", "count": 0)")).has_desired());
}

TEST(TemplateTest, BadCountsAreFaults) {
  for (const char* count : {"-1", "1.5", "1001", "\"3\"", "true", "{}"}) {
    EXPECT_THAT(
        Fault(One(absl::StrCat(R"("name": "b-${index}", "count": )", count))),
        HasSubstr("spec.resources[0].count: must be a whole number"))
        << count;
  }
}

TEST(TemplateTest, MoreThanAThousandResourcesAreAFault) {
  EXPECT_THAT(
      Fault(absl::StrCat(
          R"({"resources": [{"name": "a-${index}", "count": 600, )", kBase,
          R"(}, {"name": "b-${index}", "count": 600, )", kBase, "}]}")),
      HasSubstr("render more than 1000 resources"));
}

TEST(TemplateTest, SameNameTwiceIsAFault) {
  EXPECT_THAT(
      Fault(One(R"("name": "b", "count": 2)")),
      HasSubstr("spec.resources[0].name: \"b\" is the name of another"));
}

TEST(TemplateTest, ResourceReplacesAnEarlierStepsOfTheSameName) {
  const auto response = Render(One(R"("name": "b")"),
                               R"(, "desired": {"resources": {
                  "b": {"resource": {"old": 1}, "ready": "READY_TRUE"},
                  "c": {"resource": {"kept": 1}}}})");
  ExpectJson(response.desired(), R"({"resources": {
      "b": {"resource": {"apiVersion": "v1", "kind": "B"}},
      "c": {"resource": {"kept": 1}}}})");
}

TEST(TemplateTest, ReadinessIsCopiedFromTheObservedCondition) {
  for (const auto& [name, ready] :
       {std::make_pair("up", fn::READY_TRUE),
        std::make_pair("down", fn::READY_FALSE),
        std::make_pair("unknown", fn::READY_UNSPECIFIED),
        std::make_pair("bare", fn::READY_UNSPECIFIED),
        std::make_pair("absent", fn::READY_UNSPECIFIED)}) {
    for (const char* more : {"", R"(, "ready": "observed")"}) {
      const auto response =
          Render(One(absl::StrCat(R"("name": ")", name, "\"", more)));
      EXPECT_EQ(response.desired().resources().at(name).ready(), ready) << name;
    }
  }
}

TEST(TemplateTest, ReadinessCanBeSet) {
  EXPECT_EQ(Render(One(R"("name": "up", "ready": false)"))
                .desired()
                .resources()
                .at("up")
                .ready(),
            fn::READY_FALSE);
  EXPECT_EQ(Render(One(R"("name": "x", "ready": "${context.x|true}")"))
                .desired()
                .resources()
                .at("x")
                .ready(),
            fn::READY_TRUE);
  EXPECT_THAT(
      Fault(One(R"("name": "up", "ready": "maybe")")),
      HasSubstr("spec.resources[0].ready: must be true, false or observed"));
}

TEST(TemplateTest, StatusIsMergedIntoTheDesiredComposite) {
  const auto response = Render(
      R"({"status": {"a": {"y": "${observed.composite.resource.spec.region}"},
                     "list": [1]}})",
      R"(, "desired": {"composite": {"resource": {
           "status": {"a": {"x": 1, "y": 2}, "list": [2, 3], "b": true}}}})");
  ExpectJson(response.desired(), R"({"composite": {"resource": {
      "apiVersion": "example.org/v1", "kind": "XStore",
      "status": {"a": {"x": 1, "y": "eu-1"}, "list": [1], "b": true}}}})");
}

TEST(TemplateTest, ConnectionDetailsAreThoseOfTheComposite) {
  const auto response = Render(R"({"connectionDetails": {
      "url": "s3://${observed.composite.resource.spec.region}"}})");
  EXPECT_EQ(response.desired().composite().connection_details().at("url"),
            "s3://eu-1");
  EXPECT_THAT(Fault(R"({"connectionDetails": {"url": 1}})"),
              HasSubstr("spec.connectionDetails.url: must be text"));
}

TEST(TemplateTest, ContextKeysAreReplacedOthersStay) {
  const auto response =
      Render(R"({"context": {"a": {"n": "${context.a.n}"}, "c": 3}})",
             R"(, "context": {"a": {"n": 1, "m": 2}, "b": 2})");
  ExpectJson(response.context(), R"({"a": {"n": 1}, "b": 2, "c": 3})");
}

TEST(TemplateTest, ConditionsAndResultsAreRendered) {
  const auto response = Render(R"({
      "conditions": [
        {"type": "BucketsReady", "status": "True", "reason": "All",
         "message": "in ${observed.composite.resource.spec.region}",
         "target": "CompositeAndClaim"},
        {"type": "A", "status": true, "reason": "R"},
        {"type": "B", "status": false, "reason": "R"},
        {"type": "C", "status": "Unknown", "reason": "R"}],
      "results": [
        {"message": "hello"},
        {"severity": "Warning", "message": "careful", "reason": "Care",
         "target": "Composite"}]})");
  ExpectJson(response, R"({"meta": {"tag": "t", "ttl": "60s"},
      "conditions": [
        {"type": "BucketsReady", "status": "STATUS_CONDITION_TRUE",
         "reason": "All", "message": "in eu-1",
         "target": "TARGET_COMPOSITE_AND_CLAIM"},
        {"type": "A", "status": "STATUS_CONDITION_TRUE", "reason": "R"},
        {"type": "B", "status": "STATUS_CONDITION_FALSE", "reason": "R"},
        {"type": "C", "status": "STATUS_CONDITION_UNKNOWN", "reason": "R"}],
      "results": [
        {"severity": "SEVERITY_NORMAL", "message": "hello"},
        {"severity": "SEVERITY_WARNING", "message": "careful",
         "reason": "Care", "target": "TARGET_COMPOSITE"}]})");
}

TEST(TemplateTest, FatalResultOfTheTemplateKeepsWhatWasRendered) {
  const auto response = Answer(Request(absl::StrCat(
      R"({"resources": [{"name": "b", )", kBase,
      R"(}], "results": [{"severity": "Fatal", "message": "stop"}]})")));
  EXPECT_EQ(response.results(0).message(), "stop");
  EXPECT_TRUE(response.desired().resources().contains("b"));
}

constexpr char kRequiring[] = R"({
    "requirements": {
      "zones": {"apiVersion": "v1", "kind": "Zone", "matchLabels":
                {"region": "${observed.composite.resource.spec.region}"}},
      "net": {"apiVersion": "v1", "kind": "Net", "namespace": "infra",
              "matchName": "main-${observed.composite.resource.spec.region}"}},
    "resources": [{"name": "b-${index}",
      "count": "${required_resources.zones.items}",
      "base": {"apiVersion": "v1", "kind": "B", "zone":
        "${required_resources.zones.items.${index}.resource.metadata.name}"}}],
    "status": {"net": "${required_resources.net.items.0.resource.id|none}"}})";

constexpr char kSelectors[] = R"({"resources": {
    "zones": {"apiVersion": "v1", "kind": "Zone",
              "matchLabels": {"labels": {"region": "eu-1"}}},
    "net": {"apiVersion": "v1", "kind": "Net", "matchName": "main-eu-1",
            "namespace": "infra"}}})";

TEST(TemplateTest, FirstAnswerAsksForWhatIsRequiredAndRendersNothing) {
  ExpectJson(Render(kRequiring, R"(, "desired": {"resources": {"a": {}}})"),
             absl::StrCat(R"({"meta": {"tag": "t", "ttl": "60s"},
                 "desired": {"resources": {"a": {}}}, "requirements": )",
                          kSelectors, "}"));
}

TEST(TemplateTest, AsksAgainWhileAnyOfItIsMissing) {
  const auto response = Render(kRequiring, R"(, "requiredResources": {
      "zones": {"items": [{"resource": {"metadata": {"name": "z0"}}}]}})");
  EXPECT_FALSE(response.has_desired());
  ExpectJson(response.requirements(), kSelectors);
}

TEST(TemplateTest, RendersOnceTheRequiredResourcesAreThere) {
  const auto response = Render(kRequiring, R"(, "requiredResources": {
      "zones": {"items": [{"resource": {"metadata": {"name": "z0"}}},
                          {"resource": {"metadata": {"name": "z1"}}}]},
      "net": {"items": [{"resource": {"id": "n-1"}}]}})");
  // The same requirements: the runner takes that as settled.
  ExpectJson(response.requirements(), kSelectors);
  ExpectJson(response.desired(), R"({
      "composite": {"resource": {"apiVersion": "example.org/v1",
        "kind": "XStore", "status": {"net": "n-1"}}},
      "resources": {
        "b-0": {"resource": {"apiVersion": "v1", "kind": "B", "zone": "z0"}},
        "b-1": {"resource": {"apiVersion": "v1", "kind": "B", "zone": "z1"}}}
      })");
}

TEST(TemplateTest, RequiredResourceThatDoesNotExistIsAMissingValue) {
  const auto response =
      Render(kRequiring, R"(, "requiredResources": {"zones": {}, "net": {}})");
  ExpectJson(response.desired(), R"({"composite": {"resource": {
      "apiVersion": "example.org/v1", "kind": "XStore",
      "status": {"net": "none"}}}})");
}

TEST(TemplateTest, SelectorsAreChecked) {
  EXPECT_THAT(Fault(R"({"requirements": []})"),
              HasSubstr("spec.requirements: must be an object"));
  EXPECT_THAT(
      Fault(R"({"requirements": {"n": {"apiVersion": "v1", "kind": "N"}}})"),
      HasSubstr("spec.requirements.n: needs one of matchName and matchLabels"));
  EXPECT_THAT(Fault(R"({"requirements": {"n": {"apiVersion": "v1",
                  "kind": "N", "matchName": "a", "matchLabels": {}}}})"),
              HasSubstr("needs one of matchName and matchLabels"));
  EXPECT_THAT(
      Fault(R"({"requirements": {"n": {"kind": "N", "matchName": "a"}}})"),
      HasSubstr("spec.requirements.n.apiVersion: is needed"));
  EXPECT_THAT(Fault(R"({"requirements": {"n": {"apiVersion": "v1",
                  "kind": "N", "matchLabels": {"a": 1}}}})"),
              HasSubstr("spec.requirements.n.matchLabels.a: must be text"));
}

TEST(TemplateTest, FaultIsAFatalResultAndNothingIsHalfRendered) {
  const auto response = Answer(Request(
      absl::StrCat(R"({"context": {"k": 1}, "resources": [{"name": "a", )",
                   kBase, R"(}, {"name": "b", "base": {"apiVersion": "v1",
                      "kind": "B", "x": "${context.nope}"}}]})"),
      R"(, "desired": {"resources": {"net": {}}}, "context": {"c": 1})"));
  ExpectJson(response, R"({"meta": {"tag": "t", "ttl": "60s"},
      "desired": {"resources": {"net": {}}}, "context": {"c": 1},
      "results": [{"severity": "SEVERITY_FATAL", "message":
        "spec.resources[1].base.x: ${context.nope}: the request has no such value"}]})");
}

TEST(TemplateTest, UnknownFieldsAreFaultsThatSayWhatIsAccepted) {
  EXPECT_THAT(
      Fault(R"({"resorces": []})"),
      HasSubstr("spec.resorces: no such field; did you mean resources?; "
                "accepted: requirements, "
                "resources, status"));
  EXPECT_THAT(
      Fault(R"({"resources": [{"nme": "x"}]})"),
      HasSubstr("spec.resources[0].nme: no such field; did you mean name?; "
                "accepted: name, "
                "count, base, ready"));
  EXPECT_THAT(Fault(R"({"conditions": [{"x": 1}]})"),
              HasSubstr("spec.conditions[0].x: no such field"));
  EXPECT_THAT(Fault(R"({"results": [{"x": 1}]})"),
              HasSubstr("spec.results[0].x: no such field"));
  EXPECT_THAT(Fault(R"({"requirements": {"a": {"x": 1}}})"),
              HasSubstr("spec.requirements.a.x: no such field"));
}

TEST(TemplateTest, WrongTypesAreFaults) {
  EXPECT_THAT(Fault("[]"), HasSubstr("spec: must be an object"));
  EXPECT_THAT(Fault(R"({"resources": {}})"),
              HasSubstr("spec.resources: must be a list"));
  EXPECT_THAT(Fault(R"({"resources": ["x"]})"),
              HasSubstr("spec.resources[0]: must be an object"));
  EXPECT_THAT(Fault(R"({"resources": [{"name": 1}]})"),
              HasSubstr("spec.resources[0].name: must be text"));
  EXPECT_THAT(Fault(R"({"resources": [{"name": "a"}]})"),
              HasSubstr("spec.resources[0].base: is needed"));
  EXPECT_THAT(Fault(R"({"resources": [{"name": "a", "base": 1}]})"),
              HasSubstr("spec.resources[0].base: must be an object"));
  EXPECT_THAT(Fault(R"({"resources": [{"name": "a", "base": {"kind": "A"}}]})"),
              HasSubstr("spec.resources[0].base.apiVersion: is needed"));
  EXPECT_THAT(Fault(R"({"status": 1})"),
              HasSubstr("spec.status: must be an object"));
  EXPECT_THAT(Fault(R"({"context": []})"),
              HasSubstr("spec.context: must be an object"));
  EXPECT_THAT(
      Fault(R"({"conditions": [{"type": "A", "status": 1, "reason": "R"}]})"),
      HasSubstr("spec.conditions[0].status: must be True, False or Unknown"));
  EXPECT_THAT(Fault(R"({"results": [{"message": "m", "severity": "Bad"}]})"),
              HasSubstr("must be Normal, Warning or Fatal"));
  EXPECT_THAT(Fault(R"({"results": [{"message": "m", "target": "Bad"}]})"),
              HasSubstr("must be Composite or CompositeAndClaim"));
}

TEST(TemplateTest, InputOfAnotherKindIsAFault) {
  RunFunctionRequest request = Request("{}");
  (*request.mutable_input()->mutable_fields())["kind"].set_string_value("X");
  EXPECT_EQ(Answer(request).results(0).message(), "kind: must be Template");
  request.mutable_input()->mutable_fields()->erase("apiVersion");
  EXPECT_EQ(Answer(request).results(0).message(),
            "apiVersion: must be function.fncache.dev/v1alpha1");
}

TEST(TemplateFunctionTest, TtlCanBeZeroAbsentOrAFraction) {
  TemplateOptions options;
  options.ttl = absl::ZeroDuration();
  RunFunctionResponse response = Respond(TemplateFunction(options), {});
  EXPECT_TRUE(response.meta().has_ttl());
  EXPECT_EQ(response.meta().ttl().seconds(), 0);
  options.ttl = absl::Milliseconds(1500);
  response = Respond(TemplateFunction(options), {});
  EXPECT_EQ(response.meta().ttl().seconds(), 1);
  EXPECT_EQ(response.meta().ttl().nanos(), 500000000);
  options.ttl = absl::nullopt;
  for (const char* const fatal : {"", "broken"}) {
    if (*fatal != 0) options.fatal = fatal;
    response = Respond(TemplateFunction(options), {});
    EXPECT_FALSE(response.meta().has_ttl());
  }
}

TEST(TemplateFunctionTest, FatalAnswersWithTheResultAndPassesTheRestThrough) {
  TemplateOptions options;
  options.fatal = "broken";
  ExpectJson(Respond(TemplateFunction(options),
                     Request(R"({"status": {"a": 1}})",
                             R"(, "desired": {"resources": {"net": {}}})")),
             R"({"meta": {"tag": "t", "ttl": "60s"},
      "desired": {"resources": {"net": {}}},
      "results": [{"severity": "SEVERITY_FATAL", "message": "broken"}]})");
}

}  // namespace
}  // namespace fncache::runner::function
