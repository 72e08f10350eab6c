// SPDX-License-Identifier: Apache-2.0
// The functions of the SDK design (section 1) as they stand there.
#include <fncache/function.h>
#include "model/com/example/platform/v1alpha1/xstoragebucket.h"      // generated, section 9
#include "model/io/upbound/gcp/storage/v1beta1/bucket.h"
#include "model/io/upbound/gcp/storage/v1beta1/bucketacl.h"
namespace fn = fncache::function;
namespace gcp = model::io::upbound::gcp::storage::v1beta1;
using model::com::example::platform::v1alpha1::XStorageBucket;

void Storage(fn::Context& ctx) {                                     // typed; any callable void(fn::Context&)
  auto xr = ctx.composite<XStorageBucket>();
  auto wanted = xr.observed().spec().parameters();                   // what the user asked for
  auto bucket = ctx.resource<gcp::Bucket>("bucket");                 // on top of what earlier steps desire of "bucket"
  bucket.spec().forProvider()
      .location(wanted.location())
      .versioning({gcp::Bucket::Spec::ForProvider::VersioningItem().enabled(wanted.versioning())});
  if (bucket.spec().forProvider().location() == "US") bucket.spec().forProvider().storageClass("STANDARD");
  auto acl = ctx.resource<gcp::BucketACL>("acl");                    // held until the bucket has its external name
  acl.spec().forProvider().bucket(bucket.observed().external_name()).predefinedAcl(wanted.acl());   // no acl given: left unset
  xr.status().bucketName(bucket.observed().external_name());
}

void Network(fn::Context& ctx) {                                     // untyped, the same semantics: vpc, then subnet, then security-group
  auto add = [&](const char* name, const char* kind) { return ctx.resource(name, "ec2.aws.upbound.io/v1beta1", kind); };
  auto vpc = add("vpc", "VPC");
  vpc["spec"]["forProvider"]["cidrBlock"] = "10.0.0.0/16";
  auto subnet = add("subnet", "Subnet");
  subnet["spec"]["forProvider"]["vpcId"] = vpc.observed()["status"]["atProvider"]["vpcId"];
  auto group = add("security-group", "SecurityGroup");
  group["spec"]["forProvider"]["vpcId"] = vpc.observed()["status"]["atProvider"]["vpcId"];
  group["spec"]["forProvider"]["subnetId"] = subnet.observed()["status"]["atProvider"]["id"];
  group["spec"]["forProvider"]["description"] = fn::Concat("for ", subnet.observed()["status"]["atProvider"]["arn"].as<std::string>());
}

void Shared(fn::Context& ctx) {                                      // required resources: asked for and read through one handle
  for (fn::Resource vpc : ctx.require("existing-vpcs", "ec2.aws.upbound.io/v1beta1", "VPC", fn::MatchLabels({{"env", "prod"}}))) {
    if (!vpc.observed()["status"]["atProvider"]["isDefault"].as<bool>()) continue;
    auto bucket = ctx.resource<gcp::Bucket>("bucket");
    bucket.spec().forProvider().project(vpc.observed()["spec"]["forProvider"]["project"]);
    break;
  }
}

void Checked(fn::Context& ctx) {                                     // input, schema, credentials, condition, TTL
  auto deployment = ctx.resource("app", "apps/v1", "Deployment");
  deployment["spec"].merge(fn::Yaml(R"(
      selector: {matchLabels: {app: web}}
      template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "nginx:1"}]}})"));
  deployment["spec"]["replicas"] = ctx.input()["replicas"];
  auto schema = ctx.require_schema("deployment", "apps/v1", "Deployment");
  for (const fn::Problem& p : schema.Validate(deployment)) ctx.fatal(p.path + " " + p.text);
  const fn::Secrets key = ctx.credentials("cloud");
  if (!key.exists()) ctx.fatal("credentials \"cloud\" are needed");
  ctx.condition("Validated", fn::Status::kTrue, schema.state() == fn::State::kUnsupported ? "NotChecked" : "Valid").target(fn::Target::kCompositeAndClaim);
  ctx.ttl(absl::Minutes(10));
}

int main(int argc, char** argv) { return fn::Main(argc, argv, "function-storage", Storage); }
