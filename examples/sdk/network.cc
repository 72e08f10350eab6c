// SPDX-License-Identifier: Apache-2.0
// References: a VPC, a subnet in it, and a security group in both.
#include <fncache/function.h>

#include <string>

namespace fn = fncache::function;

void Network(fn::Context& ctx) {
  auto add = [&](const char* name, const char* kind) {
    return ctx.resource(name, "ec2.aws.upbound.io/v1beta1", kind);
  };
  auto vpc = add("vpc", "VPC");
  vpc["spec"]["forProvider"]["cidrBlock"] = "10.0.0.0/16";
  auto subnet = add("subnet", "Subnet");
  subnet["spec"]["forProvider"]["vpcId"] =
      vpc.observed()["status"]["atProvider"]["vpcId"];
  auto group = add("security-group", "SecurityGroup");
  group["spec"]["forProvider"]["vpcId"] =
      vpc.observed()["status"]["atProvider"]["vpcId"];
  group["spec"]["forProvider"]["subnetId"] =
      subnet.observed()["status"]["atProvider"]["id"];
  group["spec"]["forProvider"]["description"] = fn::Concat(
      "for ",
      subnet.observed()["status"]["atProvider"]["arn"].as<std::string>());
}

int main(int argc, char** argv) {
  return fn::Main(argc, argv, "function-network", Network);
}
