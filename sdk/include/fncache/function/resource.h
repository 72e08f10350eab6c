// SPDX-License-Identifier: Apache-2.0
// Resources: handles of composed resources, composites and required resources.
// Generated kinds include this header alone, which is a quarter of what
// context.h costs to compile. context.h explains them.
#ifndef FNCACHE_FUNCTION_RESOURCE_H_
#define FNCACHE_FUNCTION_RESOURCE_H_

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fncache/function/value.h"

namespace fncache::sdk {
struct ComposedResource;
}  // namespace fncache::sdk

namespace fncache::function {

// The readiness of a resource; kObserved: what its observed condition `Ready`
// says.
enum class Ready { kTrue, kFalse, kObserved };
// How long a dependency lasts: until the other resource is observed, or until
// its condition `Ready` is True.
enum class Until { kReady, kObserved };
// The effect of an awaited value that is lost for a resource that exists.
enum class OnLost {
  kKeep,   // its field keeps what the resource has
  kFatal,  // the response is FATAL
};

// A condition of an observed object, read by its type.
class ObservedCondition {
 public:
  explicit ObservedCondition(Value condition)
      : condition_(std::move(condition)) {}
  bool has_value() const { return condition_.has_value(); }
  explicit operator bool() const { return is_true(); }
  bool is_true() const { return status() == "True"; }
  Field<std::string> status() const {
    return condition_["status"].as<std::string>();
  }
  Field<std::string> reason() const {
    return condition_["reason"].as<std::string>();
  }
  Field<std::string> message() const {
    return condition_["message"].as<std::string>();
  }
  Value value() const { return condition_; }

 private:
  Value condition_;
};

// Secrets by key: credentials or connection details.
class Secrets {
 public:
  Secrets() = default;
  Secrets(bool exists, std::map<std::string, Secret, std::less<>> all)
      : exists_(exists), all_(std::move(all)) {}
  // A key that is absent gives absent_, e.g. one that is awaited.
  Secrets(bool exists, std::map<std::string, Secret, std::less<>> all,
          Secret absent)
      : exists_(exists), all_(std::move(all)), absent_(std::move(absent)) {}
  bool exists() const { return exists_; }
  explicit operator bool() const { return exists_; }
  Secret operator[](std::string_view key) const;
  std::vector<std::string> keys() const;

 private:
  bool exists_ = false;
  std::map<std::string, Secret, std::less<>> all_;
  Secret absent_;
};

// A resource: the desired state of a composed resource or of the composite; a
// required resource; or the observed state of any of them.
class Resource : public Object {
 public:
  Resource(internal::Ref node, sdk::ComposedResource* composed)
      : Object(std::move(node)), composed_(composed) {}
  Resource(const Resource&) = default;
  Resource& operator=(const Resource& other) {
    Object::operator=(other);
    return *this;
  }
  Resource& operator=(const Object& other) {
    Object::operator=(other);
    return *this;
  }
  Resource& operator=(const Value& other) {
    Object::operator=(other);
    return *this;
  }

  // Its name in the composition; a required resource's is its metadata.name:
  // empty while it is pending, FATAL where the runner found none.
  std::string name() const;
  Value metadata() const { return (*this)["metadata"]; }
  // The annotation crossplane.io/external-name.
  Field<std::string> external_name() const;
  Resource external_name(const Observable<std::string>& name) const;
  // Its observed state. A write through it is FATAL.
  Resource observed() const;
  // Whether it is observed.
  bool exists() const;
  // The observed condition of this type.
  ObservedCondition condition(std::string_view type) const;
  Resource ready(Ready ready) const;
  // Holds this resource until `other` is ready or observed, unless this one is
  // observed already.
  Resource depends_on(const Resource& other, Until until = Until::kReady) const;
  Resource on_lost(OnLost on_lost) const;
  // The observed connection details; those of the composite can be set.
  Secrets connection_details() const;
  Resource connection_detail(std::string_view key,
                             const Observable<std::string>& value) const;

  sdk::ComposedResource* composed() const { return composed_; }

 private:
  sdk::ComposedResource* composed_;
};

// Base of generated kinds: `class Bucket : public Model<Bucket>`.
template <class D>
class Model : public Resource {
 public:
  using Resource::Resource;
  // A document that stands alone.
  Model() : Resource(internal::NewDocument(), nullptr) {}
  explicit Model(internal::Ref node) : Resource(std::move(node), nullptr) {}
  explicit Model(const Resource& resource) : Resource(resource) {}
  D observed() const { return D(Resource::observed()); }
};

}  // namespace fncache::function

#endif  // FNCACHE_FUNCTION_RESOURCE_H_
