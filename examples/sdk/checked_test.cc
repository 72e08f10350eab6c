// SPDX-License-Identifier: Apache-2.0
#include "fncache/function/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

void Checked(fncache::function::Context& ctx);  // checked.cc

namespace fn = fncache::function;
namespace ft = fncache::function::testing;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

constexpr char kSchema[] = R"(
    type: object
    properties:
      apiVersion: {type: string}
      kind: {type: string}
      spec:
        type: object
        properties:
          replicas: {type: integer}
          selector: {type: object, x-kubernetes-preserve-unknown-fields: true}
          template: {type: object, x-kubernetes-preserve-unknown-fields: true})";

ft::Call CheckedCall() {
  return ft::Call(Checked)
      .input("replicas: 3")
      .schema("deployment", kSchema)
      .credentials("cloud", {{"key", "hunter2"}});
}

}  // namespace

TEST(Checked, AValidDeploymentIsDesired) {
  const ft::Settled settled = ft::Settle(CheckedCall());
  EXPECT_EQ(settled.fatal(), "");
  EXPECT_EQ(settled.calls(), 2u);
  EXPECT_THAT(settled.resource("app"), ft::HasField("spec.replicas", 3));
  EXPECT_THAT(
      settled.resource("app"),
      ft::HasField("spec.template.spec.containers[0].image", "nginx:1"));
  EXPECT_EQ(settled.required_schemas().at("deployment").kind, "Deployment");
  ASSERT_EQ(settled.conditions().size(), 1u);
  EXPECT_EQ(settled.conditions()[0].reason, "Valid");
  EXPECT_EQ(settled.conditions()[0].target, fn::Target::kCompositeAndClaim);
  EXPECT_EQ(settled.ttl(), absl::Minutes(10));
}

TEST(Checked, AnInputOfAnotherTypeIsFatal) {
  const ft::Answer answer = CheckedCall().input("replicas: many")();
  EXPECT_EQ(answer.fatal().substr(0, 14), "spec.replicas ");
  EXPECT_THAT(answer.resources(), IsEmpty());
  EXPECT_FALSE(answer.ttl().has_value());
}

TEST(Checked, ARunnerWithoutSchemasGetsAnUncheckedDeployment) {
  const ft::Answer answer =
      CheckedCall().capabilities({fn::Capability::kCapabilities})();
  EXPECT_EQ(answer.conditions()[0].reason, "NotChecked");
  EXPECT_THAT(answer.required_schemas(), IsEmpty());
}

TEST(Checked, PassesTheChecks) {
  const ft::Call call = CheckedCall().observed("app", "kind: Deployment");
  EXPECT_TRUE(ft::CheckDeterministic(call));
  EXPECT_TRUE(ft::CheckReads(call));
  EXPECT_TRUE(ft::CheckSafe(call));
}
