// SPDX-License-Identifier: Apache-2.0
#include "fncache/function/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

void Network(fncache::function::Context& ctx);  // network.cc

namespace fn = fncache::function;
namespace ft = fncache::function::testing;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

namespace {

void Aws(const std::string& name, fn::Value object) {
  object["status"]["atProvider"]["id"] = name + "-1";
  object["status"]["atProvider"]["arn"] = "arn:aws:" + name;
  if (name == "vpc") object["status"]["atProvider"]["vpcId"] = "vpc-1";
}

}  // namespace

TEST(Network, ThreeReconcilesMakeThreeResources) {
  const std::vector<ft::Answer> answers =
      ft::Reconcile(ft::Call(Network).composite("kind: XNetwork"), Aws);
  ASSERT_EQ(answers.size(), 4u);  // the last one changes nothing
  EXPECT_THAT(answers[0].resources(), ElementsAre("vpc"));
  EXPECT_THAT(answers[0].held(), ElementsAre("security-group", "subnet"));
  EXPECT_THAT(answers[1].resources(), ElementsAre("subnet", "vpc"));
  EXPECT_THAT(answers[2].held(), IsEmpty());
  EXPECT_THAT(answers[2].resource("security-group"), ft::IsYaml(R"(
      apiVersion: ec2.aws.upbound.io/v1beta1
      kind: SecurityGroup
      spec:
        forProvider:
          vpcId: vpc-1
          subnetId: subnet-1
          description: for arn:aws:subnet)"));
}

TEST(Network, AVpcThatLosesItsStatusDeletesNothing) {
  ft::Call call(Network);
  call.observed("vpc", "status: {conditions: []}")
      .observed("subnet", R"(
          spec: {forProvider: {vpcId: vpc-1}}
          status: {atProvider: {id: subnet-1, arn: a}})")
      .observed("security-group", "spec: {forProvider: {vpcId: vpc-1}}");
  const ft::Answer answer = call();
  EXPECT_THAT(answer.resources(),
              ElementsAre("security-group", "subnet", "vpc"));
  EXPECT_THAT(answer.kept(),
              ElementsAre("security-group.spec.forProvider.vpcId",
                          "subnet.spec.forProvider.vpcId"));
  EXPECT_THAT(answer.resource("subnet"),
              ft::HasField("spec.forProvider.vpcId", "vpc-1"));
}

TEST(Network, PassesTheChecks) {
  ft::Call call(Network);
  call.observed("vpc", "status: {atProvider: {vpcId: vpc-1}}")
      .observed("subnet", "status: {atProvider: {id: subnet-1, arn: a}}")
      .observed("security-group", "spec: {forProvider: {vpcId: vpc-1}}");
  EXPECT_TRUE(ft::CheckDeterministic(call));
  EXPECT_TRUE(ft::CheckReads(call));
  EXPECT_TRUE(ft::CheckSafe(call));
  EXPECT_THAT(call().reads(), Not(IsEmpty()));
}
