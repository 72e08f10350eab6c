// SPDX-License-Identifier: Apache-2.0
// A function with one model, as most functions are.
#include <fncache/function.h>

#include "model/io/upbound/gcp/storage/v1beta1/bucket.h"

namespace fn = fncache::function;
using model::io::upbound::gcp::storage::v1beta1::Bucket;

void Storage(fn::Context& ctx) {
  const auto wanted = ctx.composite().observed()["spec"];
  auto bucket = ctx.resource<Bucket>("bucket");
  bucket.spec()
      .forProvider()
      .location(wanted["location"])
      .project(wanted["project"])
      .versioning({Bucket::Spec::ForProvider::VersioningItem().enabled(true)});
  ctx.composite()["status"]["bucketName"] = bucket.observed().external_name();
}

int main(int argc, char** argv) {
  return fn::Main(argc, argv, "function-storage", Storage);
}
