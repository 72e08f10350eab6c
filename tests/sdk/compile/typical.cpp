// SPDX-License-Identifier: Apache-2.0
// A function with one model, as most functions are. The test generates the
// model.
#include <fncache/function.h>

#include "model/org/example/database/v1/instance.h"

namespace fn = fncache::function;
using model::org::example::database::v1::Instance;

void Database(fn::Context& ctx) {
  const auto wanted = ctx.composite().observed()["spec"];
  auto instance = ctx.resource<Instance>("instance");
  instance.spec()
      .forProvider()
      .region(wanted["region"])
      .engine(Instance::Spec::ForProvider::Engine::kPostgres)
      .storage()
      .sizeGiB(wanted["size"])
      .encrypted(true);
  ctx.composite()["status"]["address"] =
      instance.observed().status().atProvider().address();
}

int main(int argc, char** argv) {
  return fn::Main(argc, argv, "function-database", Database);
}
