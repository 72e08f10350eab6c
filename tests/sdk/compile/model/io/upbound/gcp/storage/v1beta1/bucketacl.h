// SPDX-License-Identifier: Apache-2.0
// The ACL of the SDK design, with the members that the generator writes.
#ifndef FNCACHE_TESTS_SDK_COMPILE_MODEL_IO_UPBOUND_GCP_STORAGE_V1BETA1_BUCKETACL_H_
#define FNCACHE_TESTS_SDK_COMPILE_MODEL_IO_UPBOUND_GCP_STORAGE_V1BETA1_BUCKETACL_H_

#include <initializer_list>

#include "fncache/function/context.h"

namespace model::io::upbound::gcp::storage::v1beta1 {

class BucketACL : public ::fncache::function::Model<BucketACL> {
 public:
  static constexpr char kApiVersion[] = "storage.gcp.upbound.io/v1beta1";
  static constexpr char kKind[] = "BucketACL";
  using Model::Model;
  class Spec : public ::fncache::function::Object {
   public:
    using Object::Object;
    class ForProvider : public ::fncache::function::Object {
     public:
      using Object::Object;
      ::fncache::function::Field<std::string> bucket() const {
        return (*this)["bucket"].as<std::string>();
      }
      const ForProvider& bucket(
          const ::fncache::function::Observable<std::string>& value) const {
        Put("bucket", value);
        return *this;
      }
      ::fncache::function::Field<std::string> predefinedAcl() const {
        return (*this)["predefinedAcl"].as<std::string>();
      }
      const ForProvider& predefinedAcl(
          const ::fncache::function::Observable<std::string>& value) const {
        Put("predefinedAcl", value);
        return *this;
      }
    };
    ForProvider forProvider() const { return ForProvider(At("forProvider")); }
    const Spec& forProvider(const ForProvider& value) const {
      Put("forProvider", value.ref());
      return *this;
    }
  };
  Spec spec() const { return Spec(At("spec")); }
  const BucketACL& spec(const Spec& value) const {
    Put("spec", value.ref());
    return *this;
  }
};

}  // namespace model::io::upbound::gcp::storage::v1beta1

#endif  // FNCACHE_TESTS_SDK_COMPILE_MODEL_IO_UPBOUND_GCP_STORAGE_V1BETA1_BUCKETACL_H_
