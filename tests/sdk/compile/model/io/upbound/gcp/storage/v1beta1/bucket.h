// SPDX-License-Identifier: Apache-2.0
// The bucket of the SDK design, with the members that the generator writes.
#ifndef FNCACHE_TESTS_SDK_COMPILE_MODEL_IO_UPBOUND_GCP_STORAGE_V1BETA1_BUCKET_H_
#define FNCACHE_TESTS_SDK_COMPILE_MODEL_IO_UPBOUND_GCP_STORAGE_V1BETA1_BUCKET_H_

#include <initializer_list>

#include "fncache/function/context.h"

namespace model::io::upbound::gcp::storage::v1beta1 {

class Bucket : public ::fncache::function::Model<Bucket> {
 public:
  static constexpr char kApiVersion[] = "storage.gcp.upbound.io/v1beta1";
  static constexpr char kKind[] = "Bucket";
  using Model::Model;
  class Spec : public ::fncache::function::Object {
   public:
    using Object::Object;
    class ForProvider : public ::fncache::function::Object {
     public:
      using Object::Object;
      class VersioningItem : public ::fncache::function::Object {
       public:
        using Object::Object;
        ::fncache::function::Field<bool> enabled() const {
          return (*this)["enabled"].as<bool>();
        }
        const VersioningItem& enabled(
            const ::fncache::function::Observable<bool>& value) const {
          Put("enabled", value);
          return *this;
        }
      };
      ::fncache::function::Field<std::string> location() const {
        return (*this)["location"].as<std::string>();
      }
      const ForProvider& location(
          const ::fncache::function::Observable<std::string>& value) const {
        Put("location", value);
        return *this;
      }
      ::fncache::function::Field<std::string> storageClass() const {
        return (*this)["storageClass"].as<std::string>();
      }
      const ForProvider& storageClass(
          const ::fncache::function::Observable<std::string>& value) const {
        Put("storageClass", value);
        return *this;
      }
      ::fncache::function::Field<std::string> project() const {
        return (*this)["project"].as<std::string>();
      }
      const ForProvider& project(
          const ::fncache::function::Observable<std::string>& value) const {
        Put("project", value);
        return *this;
      }
      ::fncache::function::Field<int64_t> retentionDays() const {
        return (*this)["retentionDays"].as<int64_t>();
      }
      const ForProvider& retentionDays(
          const ::fncache::function::Observable<int64_t>& value) const {
        Put("retentionDays", value);
        return *this;
      }
      ::fncache::function::List<VersioningItem> versioning() const {
        return ::fncache::function::List<VersioningItem>(At("versioning"));
      }
      const ForProvider& versioning(
          const ::fncache::function::List<VersioningItem>& value) const {
        Put("versioning", value.ref());
        return *this;
      }
      const ForProvider& versioning(
          std::initializer_list<VersioningItem> value) const {
        return versioning(::fncache::function::List<VersioningItem>(value));
      }
    };
    ForProvider forProvider() const { return ForProvider(At("forProvider")); }
    const Spec& forProvider(const ForProvider& value) const {
      Put("forProvider", value.ref());
      return *this;
    }
  };
  Spec spec() const { return Spec(At("spec")); }
  const Bucket& spec(const Spec& value) const {
    Put("spec", value.ref());
    return *this;
  }
};

}  // namespace model::io::upbound::gcp::storage::v1beta1

#endif  // FNCACHE_TESTS_SDK_COMPILE_MODEL_IO_UPBOUND_GCP_STORAGE_V1BETA1_BUCKET_H_
