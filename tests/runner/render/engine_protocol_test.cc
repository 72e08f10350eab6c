// SPDX-License-Identifier: Apache-2.0
#include "runner/render/engine_protocol.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/render.pb.h"
#include "tests/runner/messages.h"

namespace fncache::runner::render {
namespace {

namespace v1 = apiextensions::fn::proto::v1;
using crossplane::render::v1alpha1::RenderRequest;
using crossplane::render::v1alpha1::RenderResponse;
using ::testing::HasSubstr;

// A function of one line, and what it was asked.
using Function =
    std::function<client::CallResult(const v1::RunFunctionRequest&)>;

class FakeCaller : public client::FunctionCaller {
 public:
  explicit FakeCaller(Function function) : function_(std::move(function)) {}
  void Call(const std::string& function, const v1::RunFunctionRequest& request,
            absl::Time deadline, Done done) override {
    done(function_(request));
  }

 private:
  const Function function_;
};

// A request to render composite `a`, of kind XR, by steps that are called as
// `steps` says; `more` are further fields of the input.
std::string Request(const std::string& steps, const std::string& more = "") {
  return FromJson<RenderRequest>(absl::StrCat(R"({"meta": {}, "composite": {
    "compositeResource": {"apiVersion": "ex.org/v1", "kind": "XR",
                          "metadata": {"name": "a"}, "spec": {"x": 1}},
    "composition": {
      "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
      "metadata": {"name": "xrs"},
      "spec": {"compositeTypeRef": {"apiVersion": "ex.org/v1", "kind": "XR"},
               "pipeline": [)",
                                              steps, "]}}", more, "}}"))
      .SerializeAsString();
}

constexpr char kStep[] = R"({"step": "one", "functionRef": {"name": "fn"}})";

class EngineProtocolTest : public ::testing::Test {
 protected:
  EngineAnswer Answer(const std::string& request, const Function& function) {
    return AnswerRenderRequest(
        request, absl::Now() + absl::Minutes(1),
        [&](std::vector<client::FunctionTarget> functions)
            -> absl::StatusOr<std::unique_ptr<client::FunctionCaller>> {
          functions_ = std::move(functions);
          return std::make_unique<FakeCaller>([&](const auto& request) {
            requests_.push_back(request);
            return function(request);
          });
        },
        &clock_);
  }
  EngineAnswer Answer(const std::string& request) {
    return Answer(request, [](const auto&) { return client::CallResult(); });
  }

  // The response; meta must be set.
  RenderResponse Response(const EngineAnswer& answer) {
    RenderResponse response;
    EXPECT_TRUE(response.ParseFromString(answer.output));
    EXPECT_TRUE(response.has_meta());
    EXPECT_TRUE(response.has_composite());
    return response;
  }

  SimulatedClock clock_{absl::UnixEpoch()};
  std::vector<client::FunctionTarget> functions_;
  std::vector<v1::RunFunctionRequest> requests_;
};

client::CallResult WithDesired(absl::string_view json) {
  client::CallResult result;
  result.response = FromJson<v1::RunFunctionResponse>(json);
  return result;
}

TEST_F(EngineProtocolTest, SuccessIsAResponseWithMetaAndExitCodeZero) {
  const EngineAnswer answer = Answer(Request(kStep), [](const auto&) {
    return WithDesired(R"({"desired": {"resources": {"r": {
      "ready": "READY_TRUE",
      "resource": {"apiVersion": "v1", "kind": "ConfigMap"}}}},
      "results": [{"severity": "SEVERITY_NORMAL", "message": "made"}]})");
  });
  EXPECT_EQ(answer.exit_code, 0);
  EXPECT_EQ(answer.message, "");
  const RenderResponse response = Response(answer);
  ASSERT_EQ(response.composite().composed_resources_size(), 1);
  EXPECT_EQ(response.composite()
                .composed_resources(0)
                .fields()
                .at("kind")
                .string_value(),
            "ConfigMap");
  EXPECT_EQ(response.composite()
                .composite_resource()
                .fields()
                .at("kind")
                .string_value(),
            "XR");
  bool told = false;
  for (const auto& event : response.composite().events()) {
    told |= event.message() == "Pipeline step \"one\": made";
  }
  EXPECT_TRUE(told) << ToJson(response);
}

TEST_F(EngineProtocolTest, FunctionsArePassedOnInTheirOrder) {
  Answer(Request(kStep, R"(, "functions": [
      {"name": "fn", "address": "127.0.0.1:1"},
      {"name": "other", "address": "dns:///x:2"},
      {"name": "fn", "address": "127.0.0.1:3"}])"));
  ASSERT_EQ(functions_.size(), 3u);
  EXPECT_EQ(functions_[0].name, "fn");
  EXPECT_EQ(functions_[0].target, "127.0.0.1:1");
  EXPECT_EQ(functions_[1].target, "dns:///x:2");
  EXPECT_EQ(functions_[2].target, "127.0.0.1:3");
}

TEST_F(EngineProtocolTest, EverythingOfTheInputReachesTheFunctions) {
  const std::string step = R"({
      "step": "one", "functionRef": {"name": "fn"},
      "input": {"a": "b"},
      "credentials": [{"name": "c", "source": "Secret",
                       "secretRef": {"namespace": "n", "name": "s"}}],
      "requirements": {
        "requiredResources": [{"requirementName": "r", "apiVersion": "v1",
                               "kind": "ConfigMap", "name": "m",
                               "namespace": "n"}],
        "requiredSchemas": [{"requirementName": "s", "apiVersion": "v1",
                             "kind": "Pod"}]}})";
  const EngineAnswer answer = Answer(Request(step, R"(,
    "observedResources": [{"apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": "p", "namespace": "n", "annotations": {
          "crossplane.io/composition-resource-name": "pod"}}}],
    "requiredResources": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata":
        {"name": "m", "namespace": "n"}, "data": {"k": "v"}}],
    "credentials": [{"apiVersion": "v1", "kind": "Secret", "metadata":
        {"name": "s", "namespace": "n"}, "data": {"k": "dmFsdWU="}}],
    "requiredSchemas": [{"components": {"schemas": {"Pod": {"type": "object",
        "x-kubernetes-group-version-kind": [
          {"group": "", "version": "v1", "kind": "Pod"}]}}}}])"));
  ASSERT_EQ(answer.exit_code, 0) << answer.message;
  ASSERT_EQ(requests_.size(), 1u);
  const v1::RunFunctionRequest& request = requests_[0];
  EXPECT_EQ(request.input().fields().at("a").string_value(), "b");
  EXPECT_EQ(request.observed().resources().count("pod"), 1u);
  EXPECT_EQ(request.credentials().at("c").credential_data().data().at("k"),
            "value");
  EXPECT_EQ(request.required_resources().at("r").items_size(), 1);
  EXPECT_EQ(request.required_schemas()
                .at("s")
                .openapi_v3()
                .fields()
                .at("type")
                .string_value(),
            "object");
}

TEST_F(EngineProtocolTest, DefinitionTellsLegacyComposites) {
  const auto has_legacy_reference = [&](const std::string& more) {
    requests_.clear();
    const EngineAnswer answer = Answer(Request(kStep, more));
    EXPECT_EQ(answer.exit_code, 0) << answer.message;
    return requests_.at(0)
               .observed()
               .composite()
               .resource()
               .fields()
               .at("spec")
               .struct_value()
               .fields()
               .count("compositionRef") > 0;
  };
  EXPECT_FALSE(has_legacy_reference(""));
  EXPECT_TRUE(has_legacy_reference(R"(, "compositeResourceDefinition": {
    "apiVersion": "apiextensions.crossplane.io/v1",
    "kind": "CompositeResourceDefinition", "metadata": {"name": "xrs.ex.org"},
    "spec": {"group": "ex.org", "names": {"kind": "XR", "plural": "xrs"},
             "versions": [{"name": "v1"}]}})"));
}

TEST_F(EngineProtocolTest, FatalResultIsExitCodeThreeWithPartOfTheOutput) {
  const EngineAnswer answer = Answer(Request(kStep), [](const auto&) {
    return WithDesired(
        R"({"results": [{"severity": "SEVERITY_FATAL", "message": "no"}]})");
  });
  EXPECT_EQ(answer.exit_code, 3);
  EXPECT_EQ(answer.message,
            "cannot render composite resource: cannot compose resources: "
            "pipeline step \"one\" returned a fatal result: no");
  EXPECT_EQ(Response(answer).composite().composed_resources_size(), 0);
}

TEST_F(EngineProtocolTest, FailedCallIsExitCodeOneWithoutOutput) {
  const EngineAnswer answer = Answer(Request(kStep), [](const auto&) {
    client::CallResult result;
    result.status =
        absl::InternalError("rpc error: code = Internal desc = boom");
    return result;
  });
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_EQ(answer.output, "");
  EXPECT_EQ(answer.message,
            "cannot render composite resource: reconcile failed: cannot "
            "compose resources: cannot run Composition pipeline step \"one\": "
            "rpc error: code = Internal desc = boom");
}

TEST_F(EngineProtocolTest,
       SchemaOfWhatIsNoApiVersionIsAnErrorWithoutDocuments) {
  const EngineAnswer answer = Answer(Request(R"({
      "step": "one", "functionRef": {"name": "fn"},
      "requirements": {"requiredSchemas": [
        {"requirementName": "s", "apiVersion": "a/b/c", "kind": "Pod"}]}})"));
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_THAT(answer.message,
              HasSubstr("unexpected GroupVersion string: a/b/c"));
}

TEST_F(EngineProtocolTest, CompositionThatIsNoneIsRefused) {
  const EngineAnswer answer =
      Answer(Request(R"({"step": {}, "functionRef": {"name": "fn"}})"));
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_EQ(answer.output, "");
  EXPECT_THAT(answer.message,
              HasSubstr("cannot render composite resource: cannot convert "
                        "composition from protobuf: "));
  EXPECT_THAT(answer.message, HasSubstr("PipelineStep.spec.pipeline.step"));
}

TEST_F(EngineProtocolTest, WhatIsObservedIsCheckedBeforeTheComposition) {
  const EngineAnswer answer = Answer(
      Request(R"({"step": {}, "functionRef": {"name": "fn"}})",
              R"(, "observedResources": [{"apiVersion": "v1", "kind": "Secret",
                  "metadata": {"name": "s", "ownerReferences": [
                    {"controller": true, "uid": "another"}]}}])"));
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_EQ(answer.message,
            "cannot render composite resource: invalid observed resources: "
            "observed resource s has a controller ref but is not controlled by "
            "the XR");
}

TEST_F(EngineProtocolTest, WayToTheFunctionsThatFailsIsAnError) {
  const EngineAnswer answer = AnswerRenderRequest(
      Request(kStep), absl::Now(),
      [](const auto&)
          -> absl::StatusOr<std::unique_ptr<client::FunctionCaller>> {
        return absl::InvalidArgumentError("no way");
      },
      &clock_);
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_EQ(answer.message,
            "cannot render composite resource: cannot connect to functions: no "
            "way");
}

TEST_F(EngineProtocolTest, OperationsAreRefused) {
  const struct {
    const char* json;
    const char* message;
  } kCases[] = {
      {R"({"operation": {}})",
       "cannot render operation: not supported, fncache renders composite "
       "resources only"},
      {R"({"cronOperation": {}})",
       "cannot render cron operation: not supported, fncache renders composite "
       "resources "
       "only"},
      {R"({"watchOperation": {}})",
       "cannot render watch operation: not supported, fncache renders "
       "composite resources "
       "only"}};
  for (const auto& one : kCases) {
    const EngineAnswer answer =
        Answer(FromJson<RenderRequest>(one.json).SerializeAsString());
    EXPECT_EQ(answer.exit_code, 1);
    EXPECT_EQ(answer.output, "");
    EXPECT_EQ(answer.message, one.message);
  }
}

TEST_F(EngineProtocolTest, RequestWithoutInputSaysWhatIsMissing) {
  for (const char* json : {"{}", R"({"meta": {}})"}) {
    const EngineAnswer answer =
        Answer(FromJson<RenderRequest>(json).SerializeAsString());
    EXPECT_EQ(answer.exit_code, 1);
    EXPECT_EQ(answer.message,
              "render request must set exactly one of: composite, operation, "
              "cron_operation, watch_operation");
  }
}

TEST_F(EngineProtocolTest, BytesThatAreNoRequestAreRefused) {
  const std::string whole = Request(kStep);
  for (const std::string& bytes :
       {std::string("\xff\xff\xff"), std::string("{\"composite\": {}}"),
        whole.substr(0, whole.size() - 1)}) {
    const EngineAnswer answer = Answer(bytes);
    EXPECT_EQ(answer.exit_code, 1);
    EXPECT_EQ(answer.output, "");
    EXPECT_THAT(answer.message, HasSubstr("cannot unmarshal render request"));
  }
  EXPECT_TRUE(requests_.empty());
}

TEST_F(EngineProtocolTest, DeeplyNestedCompositesAreRendered) {
  RenderRequest request;
  ASSERT_TRUE(request.ParseFromString(Request(kStep)));
  auto* at = (*request.mutable_composite()
                   ->mutable_composite_resource()
                   ->mutable_fields())["spec"]
                 .mutable_struct_value();
  for (int i = 0; i < 300; ++i) {
    at = (*at->mutable_fields())["k"].mutable_struct_value();
  }
  (*at->mutable_fields())["end"].set_bool_value(true);
  const EngineAnswer answer = Answer(request.SerializeAsString());
  ASSERT_EQ(answer.exit_code, 0) << answer.message;
  EXPECT_THAT(requests_.at(0).SerializeAsString(), HasSubstr("end"));
}

}  // namespace
}  // namespace fncache::runner::render
