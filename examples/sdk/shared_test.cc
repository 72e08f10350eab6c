// SPDX-License-Identifier: Apache-2.0
#include "absl/status/status.h"
#include "fncache/function/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

void Shared(fncache::function::Context& ctx);  // shared.cc

namespace ft = fncache::function::testing;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

constexpr char kDefault[] = R"(
    apiVersion: ec2.aws.upbound.io/v1beta1
    kind: VPC
    metadata: {name: default, labels: {env: prod}}
    spec: {forProvider: {project: shop}}
    status: {atProvider: {isDefault: true}})";
constexpr char kOther[] = R"(
    apiVersion: ec2.aws.upbound.io/v1beta1
    kind: VPC
    metadata: {name: another, labels: {env: prod}}
    status: {atProvider: {isDefault: false}})";
constexpr char kTest[] = R"(
    apiVersion: ec2.aws.upbound.io/v1beta1
    kind: VPC
    metadata: {name: test, labels: {env: test}})";

ft::Call SharedCall() {
  return ft::Call(Shared).required("existing-vpcs", {kDefault, kOther, kTest});
}

}  // namespace

TEST(Shared, TheSecondCallHasTheVpcs) {
  const ft::Settled settled = ft::Settle(SharedCall());
  EXPECT_EQ(settled.outcome(), absl::OkStatus());
  EXPECT_EQ(settled.calls(), 2u);
  EXPECT_THAT(settled.answers()[0].resources(), IsEmpty());
  EXPECT_EQ(settled.requirements().at("existing-vpcs").match_labels.at("env"),
            "prod");
  EXPECT_THAT(settled.resource("bucket"),
              ft::HasField("spec.forProvider.project", "shop"));
}

TEST(Shared, NoDefaultVpcMakesNoBucket) {
  EXPECT_THAT(
      ft::Call(Shared).required("existing-vpcs", {kOther})().resources(),
      IsEmpty());
}

TEST(Shared, ResponsesAreDeterministicAndReportTheirReads) {
  EXPECT_TRUE(ft::CheckDeterministic(SharedCall()));
  EXPECT_TRUE(ft::CheckReads(SharedCall()));
}

// The bucket exists only while the default VPC does.
TEST(Shared, LosingTheVpcDeletesTheBucket) {
  const ft::CheckResult check =
      ft::CheckSafe(SharedCall().observed("bucket", "kind: Bucket"));
  EXPECT_EQ(check.text(),
            "without required_resources.existing-vpcs.items[0], the response "
            "leaves out desired.resources.bucket, which is observed and was "
            "desired: it would be deleted");
}
