// SPDX-License-Identifier: Apache-2.0
// The composite of the SDK design, with the members that the generator writes.
#ifndef FNCACHE_TESTS_SDK_COMPILE_MODEL_COM_EXAMPLE_PLATFORM_V1ALPHA1_XSTORAGEBUCKET_H_
#define FNCACHE_TESTS_SDK_COMPILE_MODEL_COM_EXAMPLE_PLATFORM_V1ALPHA1_XSTORAGEBUCKET_H_

#include <initializer_list>

#include "fncache/function/context.h"

namespace model::com::example::platform::v1alpha1 {

class XStorageBucket : public ::fncache::function::Model<XStorageBucket> {
 public:
  static constexpr char kApiVersion[] = "platform.example.com/v1alpha1";
  static constexpr char kKind[] = "XStorageBucket";
  using Model::Model;
  class Spec : public ::fncache::function::Object {
   public:
    using Object::Object;
    class Parameters : public ::fncache::function::Object {
     public:
      using Object::Object;
      ::fncache::function::Field<std::string> location() const {
        return (*this)["location"].as<std::string>();
      }
      const Parameters& location(
          const ::fncache::function::Observable<std::string>& value) const {
        Put("location", value);
        return *this;
      }
      ::fncache::function::Field<bool> versioning() const {
        return (*this)["versioning"].as<bool>();
      }
      const Parameters& versioning(
          const ::fncache::function::Observable<bool>& value) const {
        Put("versioning", value);
        return *this;
      }
      ::fncache::function::Field<std::string> acl() const {
        return (*this)["acl"].as<std::string>();
      }
      const Parameters& acl(
          const ::fncache::function::Observable<std::string>& value) const {
        Put("acl", value);
        return *this;
      }
    };
    Parameters parameters() const { return Parameters(At("parameters")); }
    const Spec& parameters(const Parameters& value) const {
      Put("parameters", value.ref());
      return *this;
    }
  };
  class Status : public ::fncache::function::Object {
   public:
    using Object::Object;
    ::fncache::function::Field<std::string> bucketName() const {
      return (*this)["bucketName"].as<std::string>();
    }
    const Status& bucketName(
        const ::fncache::function::Observable<std::string>& value) const {
      Put("bucketName", value);
      return *this;
    }
  };
  Spec spec() const { return Spec(At("spec")); }
  const XStorageBucket& spec(const Spec& value) const {
    Put("spec", value.ref());
    return *this;
  }
  Status status() const { return Status(At("status")); }
  const XStorageBucket& status(const Status& value) const {
    Put("status", value.ref());
    return *this;
  }
};

}  // namespace model::com::example::platform::v1alpha1

#endif  // FNCACHE_TESTS_SDK_COMPILE_MODEL_COM_EXAMPLE_PLATFORM_V1ALPHA1_XSTORAGEBUCKET_H_
