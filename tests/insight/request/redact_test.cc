// SPDX-License-Identifier: Apache-2.0
// A message after Redact has nothing of its secrets, and all of the rest.
#include "insight/request/redact.h"

#include <string>
#include <utility>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"

namespace fncache::insight::request {
namespace {

namespace fn = ::apiextensions::fn::proto::v1;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::TestWithParam;
using ::testing::Values;

// Each secret of these tests, key and value; base64 of it is aGlkZGVu.
constexpr char kHidden[] = "hidden";

template <typename Message>
Message Of(const std::string& json) {
  Message message;
  const auto status =
      google::protobuf::util::JsonStringToMessage(json, &message);
  EXPECT_TRUE(status.ok()) << status.ToString() << "\n" << json;
  return message;
}

// `object` at the @ of a message.
std::string Holding(const std::string& place, const std::string& object) {
  return absl::StrReplaceAll(place, {{"@", object}});
}

constexpr char kSecret[] = R"({"apiVersion": "v1", "kind": "Secret",
    "metadata": {"name": "plain"}, "type": "Opaque", "data": {"hidden": "hidden",
    "hidden2": "hidden"}, "stringData": {"hidden": "hidden"}})";

bool Same(const google::protobuf::Message& a,
          const google::protobuf::Message& b) {
  return google::protobuf::util::MessageDifferencer::Equals(a, b);
}

template <typename Message>
void ExpectSecretsGo(const std::string& place) {
  auto message = Of<Message>(Holding(place, kSecret));
  ASSERT_THAT(message.SerializeAsString(), HasSubstr(kHidden));
  Redact(&message);
  const std::string bytes = message.SerializeAsString();
  EXPECT_THAT(bytes, Not(HasSubstr(kHidden)));
  EXPECT_THAT(bytes, HasSubstr("plain"));
  EXPECT_THAT(bytes, HasSubstr("Opaque"));
  EXPECT_THAT(bytes, HasSubstr("redacted-2"));
  EXPECT_THAT(bytes, Not(HasSubstr("redacted-3")));
  // A second Redact changes nothing.
  auto again = message;
  Redact(&again);
  EXPECT_TRUE(Same(message, again));

  for (const auto& other : {std::make_pair("\"Secret\"", "\"ConfigMap\""),
                            std::make_pair("\"v1\"", "\"example.org/v1\""),
                            std::make_pair("\"Secret\"", "[\"Secret\"]"),
                            std::make_pair("\"v1\"", "1")}) {
    const auto before =
        Of<Message>(Holding(place, absl::StrReplaceAll(kSecret, {other})));
    auto after = before;
    Redact(&after);
    EXPECT_TRUE(Same(before, after)) << other.second;
  }
}

class RedactRequest : public TestWithParam<const char*> {};

TEST_P(RedactRequest, DataOfSecretsGoesAndNothingElse) {
  ExpectSecretsGo<fn::RunFunctionRequest>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Places, RedactRequest,
    Values(R"({"observed": {"composite": {"resource": @}}})",
           R"({"observed": {"resources": {"a": {"resource": @}}}})",
           R"({"desired": {"composite": {"resource": @}}})",
           R"({"desired": {"resources": {"a": {"resource": @}}}})",
           R"({"requiredResources": {"a": {"items": [{}, {"resource": @}]}}})",
           R"({"extraResources": {"a": {"items": [{"resource": @}]}}})",
           R"({"input": @})", R"({"context": @})",
           // As functions put what they found into the context.
           R"({"context": {"apiextensions.crossplane.io/extra-resources":
               {"a": [1, [@]]}}})",
           // Another object's manifest, and a list of objects.
           R"({"desired": {"resources": {"a": {"resource": {"kind": "Object",
               "apiVersion": "kubernetes.crossplane.io/v1alpha2", "spec":
               {"forProvider": {"manifest": @}}}}}}})",
           R"({"observed": {"resources": {"a": {"resource": {"kind": "List",
               "apiVersion": "v1", "items": [null, @]}}}}})",
           R"({"input": {"resources": [{"name": "a", "base": @}]}})"));

class RedactResponse : public TestWithParam<const char*> {};

TEST_P(RedactResponse, DataOfSecretsGoesAndNothingElse) {
  ExpectSecretsGo<fn::RunFunctionResponse>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Places, RedactResponse,
    Values(R"({"desired": {"composite": {"resource": @}}})",
           R"({"desired": {"resources": {"a": {"resource": @}}}})",
           R"({"context": {"a": @}})", R"({"output": {"a": [@]}})"));

TEST(Redact, CredentialsGoButForTheirNames) {
  auto request = Of<fn::RunFunctionRequest>(R"({"credentials": {
      "plain": {"credentialData": {"data": {"hidden": "aGlkZGVu",
                                            "hidden2": "aGlkZGVu"}}},
      "empty": {"credentialData": {}}, "none": {}}})");
  // Another source, of a later version of the protocol.
  request.mutable_credentials()
      ->at("none")
      .GetReflection()
      ->MutableUnknownFields(&request.mutable_credentials()->at("none"))
      ->AddLengthDelimited(2, kHidden);
  ASSERT_THAT(request.SerializeAsString(), HasSubstr(kHidden));
  Redact(&request);
  EXPECT_TRUE(Same(request, Of<fn::RunFunctionRequest>(R"({"credentials": {
      "plain": {"credentialData": {"data": {"redacted-1": "cmVkYWN0ZWQ=",
                                            "redacted-2": "cmVkYWN0ZWQ="}}},
      "empty": {"credentialData": {}}, "none": {}}})")))
      << request.DebugString();
}

constexpr char kDetails[] =
    R"({"resource": {"kind": "X"}, "ready": "READY_TRUE",
        "connectionDetails": {"hidden": "aGlkZGVu"}})";

class RedactDetails : public TestWithParam<const char*> {};

TEST_P(RedactDetails, ConnectionDetailsGo) {
  const std::string redacted = absl::StrReplaceAll(
      kDetails, {{"aGlkZGVu", "cmVkYWN0ZWQ="}, {"hidden", "redacted-1"}});
  auto request = Of<fn::RunFunctionRequest>(Holding(GetParam(), kDetails));
  Redact(&request);
  EXPECT_TRUE(
      Same(request, Of<fn::RunFunctionRequest>(Holding(GetParam(), redacted))))
      << request.DebugString();
}

INSTANTIATE_TEST_SUITE_P(
    Places, RedactDetails,
    Values(R"({"observed": {"composite": @}})",
           R"({"observed": {"resources": {"a": @, "b": {}}}})",
           R"({"desired": {"composite": @}})",
           R"({"desired": {"resources": {"a": @}}})",
           R"({"requiredResources": {"a": {"items": [@]}}})",
           R"({"extraResources": {"a": {"items": [{}, @]}}})"));

TEST(Redact, ConnectionDetailsOfAnAnswerGo) {
  auto response = Of<fn::RunFunctionResponse>(
      Holding(R"({"desired": {"composite": @, "resources": {"a": @}},
                  "results": [{"message": "plain"}]})",
              kDetails));
  Redact(&response);
  EXPECT_THAT(response.SerializeAsString(), Not(HasSubstr(kHidden)));
  EXPECT_THAT(response.SerializeAsString(), HasSubstr("plain"));
  EXPECT_THAT(response.desired().composite().connection_details(), SizeIs(1));
}

// No API server sends these, but a function may.
TEST(Redact, DataOfUnusualShapesGoesToo) {
  for (const char* const data :
       {R"("hidden")", R"(["hidden", {"hidden": "hidden"}])",
        R"({"hidden": {"hidden": ["hidden"]}})", R"({"hidden": null})",
        R"({"apiVersion": "v1", "kind": "Secret", "data": "hidden"})"}) {
    for (const char* const name : {"data", "stringData", "binaryData"}) {
      auto request = Of<fn::RunFunctionRequest>(
          absl::StrReplaceAll(R"({"observed": {"composite": {"resource": {
              "apiVersion": "v1", "kind": "Secret", "NAME": DATA}}}})",
                              {{"NAME", name}, {"DATA", data}}));
      ASSERT_THAT(request.SerializeAsString(), HasSubstr(kHidden));
      Redact(&request);
      EXPECT_THAT(request.SerializeAsString(), Not(HasSubstr(kHidden)))
          << name << ": " << data;
      // The number of fields stays visible.
      EXPECT_THAT(request.observed().composite().resource().fields(),
                  SizeIs(3));
    }
  }
  for (const char* const odd :
       {"{}", R"({"data": null})", R"({"data": {}, "metadata": null})",
        R"({"data": {}, "metadata": {"annotations": "plain"}})"}) {
    fn::RunFunctionRequest before;
    auto& secret = *before.mutable_observed()->mutable_composite();
    *secret.mutable_resource() = Of<google::protobuf::Struct>(odd);
    auto& fields = *secret.mutable_resource()->mutable_fields();
    fields["apiVersion"].set_string_value("v1");
    fields["kind"].set_string_value("Secret");
    auto after = before;
    Redact(&after);
    EXPECT_THAT(after.observed().composite().resource().fields(),
                SizeIs(fields.size()))
        << odd;
  }
}

// The metadata repeats the data: of a Secret, and of what holds one.
TEST(Redact, MetadataOfSecretsRepeatsNothing) {
  constexpr char kMetadata[] = R"({"name": "plain",
      "annotations": {"kubectl.kubernetes.io/last-applied-configuration":
        "{\"data\":{\"hidden\":\"hidden\"}}", "plain": "plain"},
      "managedFields": [{"fieldsV1": {"f:data": {"f:hidden": {}}}}]})";
  for (const char* const object :
       {R"({"apiVersion": "v1", "kind": "Secret", "metadata": @})",
        R"({"apiVersion": "e.org/v1", "kind": "Object", "metadata": @,
            "spec": {"manifest": {"apiVersion": "v1", "kind": "Secret"}}})"}) {
    auto request = Of<fn::RunFunctionRequest>(
        Holding(R"({"observed": {"resources": {"a": {"resource": @}}}})",
                Holding(object, kMetadata)));
    Redact(&request);
    EXPECT_THAT(request.SerializeAsString(), Not(HasSubstr(kHidden)));
    EXPECT_THAT(request.SerializeAsString(), HasSubstr("plain"));
  }
  // On another object they stay.
  const auto before = Of<fn::RunFunctionRequest>(
      Holding(R"({"observed": {"resources": {"a": {"resource": {
          "apiVersion": "v1", "kind": "ConfigMap", "metadata": @}}}}})",
              kMetadata));
  auto after = before;
  Redact(&after);
  EXPECT_TRUE(Same(before, after));
}

}  // namespace
}  // namespace fncache::insight::request
