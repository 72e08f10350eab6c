// SPDX-License-Identifier: Apache-2.0
#include "fncache/function/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

void Storage(fncache::function::Context& ctx);  // storage.cc

namespace fn = fncache::function;
namespace ft = fncache::function::testing;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

namespace {

constexpr char kComposite[] = R"(
    apiVersion: platform.example.com/v1alpha1
    kind: XStorageBucket
    metadata: {name: photos}
    spec: {parameters: {location: US, versioning: true, acl: private}})";

void Gcp(const std::string& name, fn::Value object) {
  object["metadata"]["annotations"]["crossplane.io/external-name"] =
      "photos-" + name;
}

}  // namespace

TEST(Storage, TheAclWaitsForTheBucketsName) {
  const ft::Answer answer = ft::Call(Storage).composite(kComposite)();
  EXPECT_THAT(answer.resources(), ElementsAre("bucket"));
  EXPECT_THAT(answer.resource("bucket"), ft::IsYaml(R"(
      apiVersion: storage.gcp.upbound.io/v1beta1
      kind: Bucket
      spec:
        forProvider:
          location: US
          storageClass: STANDARD
          versioning: [{enabled: true}])"));
  EXPECT_THAT(answer.held(), ElementsAre("acl"));
  EXPECT_THAT(answer.composite(), Not(ft::HasField("status.bucketName")));
  EXPECT_EQ(answer.ready(), false);
}

TEST(Storage, EverythingIsThereOnceTheBucketHasItsName) {
  const std::vector<ft::Answer> answers =
      ft::Reconcile(ft::Call(Storage).composite(kComposite), Gcp);
  const ft::Answer& last = answers.back();
  EXPECT_THAT(last.held(), IsEmpty());
  EXPECT_THAT(last.resource("acl"),
              ft::HasField("spec.forProvider.bucket", "photos-bucket"));
  EXPECT_THAT(last.resource("acl"),
              ft::HasField("spec.forProvider.predefinedAcl", "private"));
  EXPECT_THAT(last.composite(),
              ft::HasField("status.bucketName", "photos-bucket"));
}

TEST(Storage, ALocationOfAnEarlierStepStays) {
  ft::Call call(Storage);
  call.composite("{apiVersion: v1, kind: XR, spec: {parameters: {}}}")
      .desired("bucket", R"(
          apiVersion: storage.gcp.upbound.io/v1beta1
          kind: Bucket
          spec: {forProvider: {location: EU}})");
  EXPECT_THAT(call().resource("bucket"),
              ft::HasField("spec.forProvider.location", "EU"));
}

TEST(Storage, PassesTheChecks) {
  ft::Call call(Storage);
  call.composite(kComposite)
      .observed("bucket", R"(
          metadata:
            annotations: {crossplane.io/external-name: photos-bucket}
          status: {atProvider: {id: "1"}})")
      .observed("acl", "spec: {forProvider: {bucket: photos-bucket}}");
  EXPECT_TRUE(ft::CheckDeterministic(call));
  EXPECT_TRUE(ft::CheckReads(call));
  EXPECT_TRUE(ft::CheckSafe(call));
}
