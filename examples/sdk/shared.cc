// SPDX-License-Identifier: Apache-2.0
// A required resource: a bucket in the project of the default VPC.
#include <fncache/function.h>

namespace fn = fncache::function;

void Shared(fn::Context& ctx) {
  for (fn::Resource vpc :
       ctx.require("existing-vpcs", "ec2.aws.upbound.io/v1beta1", "VPC",
                   fn::MatchLabels({{"env", "prod"}}))) {
    if (!vpc.observed()["status"]["atProvider"]["isDefault"].as<bool>()) {
      continue;
    }
    auto bucket =
        ctx.resource("bucket", "storage.gcp.upbound.io/v1beta1", "Bucket");
    bucket["spec"]["forProvider"]["project"] =
        vpc.observed()["spec"]["forProvider"]["project"];
    break;
  }
}

int main(int argc, char** argv) {
  return fn::Main(argc, argv, "function-shared", Shared);
}
