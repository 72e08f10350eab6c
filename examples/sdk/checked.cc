// SPDX-License-Identifier: Apache-2.0
// Input, schema, credentials, a condition and a TTL: a Deployment that is
// checked before it is applied.
#include <fncache/function.h>

namespace fn = fncache::function;

void Checked(fn::Context& ctx) {
  auto deployment = ctx.resource("app", "apps/v1", "Deployment");
  deployment["spec"].merge(fn::Yaml(R"(
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: web, image: "nginx:1"}]})"));
  deployment["spec"]["replicas"] = ctx.input()["replicas"];
  auto schema = ctx.require_schema("deployment", "apps/v1", "Deployment");
  for (const fn::Problem& p : schema.Validate(deployment)) {
    ctx.fatal(p.path + " " + p.text);
  }
  const fn::Secrets key = ctx.credentials("cloud");
  if (!key.exists()) ctx.fatal("credentials \"cloud\" are needed");
  ctx.condition(
         "Validated", fn::Status::kTrue,
         schema.state() == fn::State::kUnsupported ? "NotChecked" : "Valid")
      .target(fn::Target::kCompositeAndClaim);
  ctx.ttl(absl::Minutes(10));
}

int main(int argc, char** argv) {
  return fn::Main(argc, argv, "function-checked", Checked);
}
