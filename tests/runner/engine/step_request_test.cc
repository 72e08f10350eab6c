// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/step_request.h"

#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "tests/runner/messages.h"

namespace fncache::runner::engine {
namespace {

namespace fn = apiextensions::fn::proto::v1;
using google::protobuf::Struct;
using google::protobuf::Value;

PipelineStep Step() {
  PipelineStep step;
  step.name = "render \"it\"";
  return step;
}

StepCredentials FromSecret(absl::string_view name, absl::string_view ns,
                           absl::string_view secret) {
  StepCredentials credentials;
  credentials.name = std::string(name);
  credentials.source = "Secret";
  credentials.secret_ref =
      StepCredentials::SecretRef{std::string(ns), std::string(secret)};
  return credentials;
}

ObjectStore Secrets() {
  ObjectStore store;
  store.Add(FromJson<Struct>(R"({
      "apiVersion": "v1", "kind": "Secret",
      "metadata": {"namespace": "ns", "name": "full"},
      "data": {"user": "YWRtaW4=", "none": ""}})"));
  store.Add(FromJson<Struct>(R"({
      "apiVersion": "v1", "kind": "Secret",
      "metadata": {"namespace": "ns", "name": "empty"}})"));
  store.Add(FromJson<Struct>(R"({
      "apiVersion": "v1", "kind": "Secret",
      "metadata": {"namespace": "ns", "name": "broken"},
      "data": {"user": "?"}})"));
  store.Add(FromJson<Struct>(R"({
      "apiVersion": "v1", "kind": "ConfigMap",
      "metadata": {"namespace": "ns", "name": "map"}})"));
  return store;
}

TEST(StepRequestTest, InputIsTheStepsOrAbsent) {
  const ObjectStore none;
  fn::RunFunctionRequest request;
  PipelineStep step = Step();
  ASSERT_TRUE(FillStep(step, none, &request).ok());
  EXPECT_FALSE(request.has_input());

  step.input = FromJson<Value>(R"({"kind": "Input", "none": null, "n": []})");
  ASSERT_TRUE(FillStep(step, none, &request).ok());
  ExpectJson(request, R"({"input": {"kind": "Input", "none": null, "n": []}})");

  step.input = FromJson<Value>("{}");
  ASSERT_TRUE(FillStep(step, none, &request).ok());
  EXPECT_TRUE(request.has_input());
  EXPECT_EQ(request.input().fields_size(), 0);

  // An earlier step's input goes away.
  step.input.reset();
  ASSERT_TRUE(FillStep(step, none, &request).ok());
  EXPECT_FALSE(request.has_input());
}

TEST(StepRequestTest, InputThatIsNoObjectIsAnError) {
  const auto message = [](const Value& input) {
    const ObjectStore none;
    fn::RunFunctionRequest request;
    PipelineStep step = Step();
    step.input = input;
    const absl::Status status = FillStep(step, none, &request);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  const std::string start =
      R"(cannot unmarshal input for Composition pipeline step )"
      R"("render \"it\"": proto: syntax error (line 1:1): unexpected token )";
  EXPECT_EQ(message(FromJson<Value>(R"("a \"b\"")")), start + R"("a \"b\"")");
  EXPECT_EQ(message(FromJson<Value>("5")), start + "5");
  EXPECT_EQ(message(FromJson<Value>("-0.25")), start + "-0.25");
  EXPECT_EQ(message(FromJson<Value>("1e300")), start + "1e+300");
  EXPECT_EQ(message(FromJson<Value>("true")), start + "true");
  EXPECT_EQ(message(FromJson<Value>("false")), start + "false");
  EXPECT_EQ(message(FromJson<Value>("[{}]")), start + "[");
  EXPECT_EQ(message(FromJson<Value>("null")), start + "null");
  Value nan;
  nan.set_number_value(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(message(nan), start + "null");
}

TEST(StepRequestTest, CredentialsAreTheDecodedDataOfSecrets) {
  const ObjectStore secrets = Secrets();
  fn::RunFunctionRequest request;
  PipelineStep step = Step();
  step.credentials = {FromSecret("a", "ns", "full"),
                      FromSecret("b", "ns", "empty")};
  ASSERT_TRUE(FillStep(step, secrets, &request).ok());
  ExpectJson(request, R"({"credentials": {
      "a": {"credentialData": {"data": {"user": "YWRtaW4=", "none": ""}}},
      "b": {"credentialData": {}}}})");

  // The last of two with one name counts. Credentials of an earlier step go.
  step.credentials = {FromSecret("c", "ns", "full"),
                      FromSecret("c", "ns", "empty")};
  ASSERT_TRUE(FillStep(step, secrets, &request).ok());
  ExpectJson(request, R"({"credentials": {"c": {"credentialData": {}}}})");
}

TEST(StepRequestTest, OtherSourcesGiveNoCredentials) {
  const ObjectStore secrets = Secrets();
  fn::RunFunctionRequest request;
  PipelineStep step = Step();
  step.credentials = {
      FromSecret("a", "ns", "full"), FromSecret("b", "ns", "missing"), {}};
  step.credentials[0].source = "None";
  step.credentials[1].source = "secret";
  step.credentials[2].source = "Secret";  // without secretRef
  ASSERT_TRUE(FillStep(step, secrets, &request).ok());
  EXPECT_EQ(request.credentials_size(), 0);
}

TEST(StepRequestTest, AMissingSecretIsNamed) {
  const ObjectStore secrets = Secrets();
  fn::RunFunctionRequest request;
  for (const StepCredentials& missing :
       {FromSecret("c", "ns", "map"), FromSecret("c", "other", "map"),
        FromSecret("c", "", "map")}) {
    PipelineStep step = Step();
    step.credentials = {FromSecret("a", "ns", "full"), missing};
    const absl::Status status = FillStep(step, secrets, &request);
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(status.message(),
              R"(cannot get Composition pipeline step "render \"it\"" )"
              R"(credential "c" from Secret: Secret "map" not found)");
  }
}

TEST(StepRequestTest, ASecretThatCannotBeDecodedIsAnError) {
  const ObjectStore secrets = Secrets();
  fn::RunFunctionRequest request;
  PipelineStep step = Step();
  step.credentials = {FromSecret("c", "ns", "broken")};
  EXPECT_EQ(
      FillStep(step, secrets, &request).message(),
      R"(cannot get Composition pipeline step "render \"it\"" )"
      R"(credential "c" from Secret: error decoding from json: illegal base64 data at )"
      R"(input byte 0)");
}

}  // namespace
}  // namespace fncache::runner::engine
