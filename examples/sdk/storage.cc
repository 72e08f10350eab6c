// SPDX-License-Identifier: Apache-2.0
// Typed models: a bucket, and its ACL once the bucket has its external name.
#include <fncache/function.h>

#include "model/com/example/platform/v1alpha1/xstoragebucket.h"
#include "model/io/upbound/gcp/storage/v1beta1/bucket.h"
#include "model/io/upbound/gcp/storage/v1beta1/bucketacl.h"

namespace fn = fncache::function;
namespace gcp = model::io::upbound::gcp::storage::v1beta1;
using model::com::example::platform::v1alpha1::XStorageBucket;

void Storage(fn::Context& ctx) {
  auto xr = ctx.composite<XStorageBucket>();
  auto wanted = xr.observed().spec().parameters();
  auto bucket = ctx.resource<gcp::Bucket>("bucket");
  bucket.spec()
      .forProvider()
      .location(wanted.location())
      .versioning({gcp::Bucket::Spec::ForProvider::VersioningItem().enabled(
          wanted.versioning())});
  if (bucket.spec().forProvider().location() == "US") {
    bucket.spec().forProvider().storageClass("STANDARD");
  }
  // Held until the bucket has its external name.
  auto acl = ctx.resource<gcp::BucketACL>("acl");
  acl.spec()
      .forProvider()
      .bucket(bucket.observed().external_name())
      .predefinedAcl(wanted.acl());
  xr.status().bucketName(bucket.observed().external_name());
}

int main(int argc, char** argv) {
  return fn::Main(argc, argv, "function-storage", Storage);
}
