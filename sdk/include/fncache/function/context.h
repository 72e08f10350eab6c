// SPDX-License-Identifier: Apache-2.0
// Context: one call of a composition function, from its request to its
// response.
//
//   void Storage(fncache::function::Context& ctx) {
//     auto bucket = ctx.resource("bucket", "s3.example.org/v1", "Bucket");
//     bucket["spec"]["region"] = ctx.composite().observed()["spec"]["region"];
//   }
//
// A resource that gets a value that is not there yet is *held*: left out of the
// response until the value is there. If it exists already, it is emitted, and
// the field keeps the value that the resource has. So no call deletes something
// because a value was missing for a moment.
//
// A Context and its handles belong to one call and one thread.
#ifndef FNCACHE_FUNCTION_CONTEXT_H_
#define FNCACHE_FUNCTION_CONTEXT_H_

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "fncache/function/value.h"

namespace fncache::sdk {
class Call;
struct ComposedResource;
struct Requirement;
struct SchemaRequirement;
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
enum class State {
  kPending,  // the request has no such key yet
  kMissing,  // the runner found nothing
  kFound,
  kUnsupported,  // the runner cannot do it; nothing is requested
};
enum class Status { kUnknown, kTrue, kFalse };
enum class Target { kComposite, kCompositeAndClaim };
enum class Capability {
  kCapabilities,
  kRequiredResources,
  kCredentials,
  kConditions,
  kRequiredSchemas,
};
// When the response has the result with the graph of dependencies.
enum class Graph { kWaiting, kAlways, kNever };

// Settings of all calls of a function.
struct Options {
  // TTL of the responses: not negative, not infinite. Zero forbids caching.
  absl::Duration ttl = absl::Seconds(60);
  // The author's promise that nothing but the request decides the response.
  bool pure = false;
  OnLost on_lost = OnLost::kKeep;
  Graph graph = Graph::kWaiting;
  // Type of a condition that reports waits: False `Waiting`, True `Complete`.
  // Empty: none.
  std::string waiting_condition;
  // Responses with a FATAL result have the TTL, too.
  bool ttl_on_fatal = false;
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
  Secret operator[](std::string_view key) const {
    const auto found = all_.find(key);
    return found == all_.end() ? absent_ : found->second;
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, secret] : all_) keys.push_back(key);
    return keys;
  }

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
  Resource(Resource&&) = default;
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

  // Its name in the composition; a required resource's is its metadata.name.
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

// Which resources are required.
class Selector {
 public:
  Selector& in(const Observable<std::string>& name_space) {
    name_space_ = name_space;
    return *this;
  }

  // For the SDK.
  bool by_name = false;
  Observable<std::string> name;
  std::vector<std::pair<std::string, Observable<std::string>>> labels;
  std::optional<Observable<std::string>> name_space_;
};
Selector MatchName(const Observable<std::string>& name);
Selector MatchLabels(
    std::initializer_list<std::pair<std::string, Observable<std::string>>>
        labels);

namespace internal {
State StateOf(const sdk::Requirement* requirement);
size_t SizeOf(const sdk::Requirement* requirement);
Resource ItemOf(sdk::Requirement* requirement, size_t index);
void RequireAtLeast(sdk::Requirement* requirement, size_t count);
}  // namespace internal

// Required resources, in the runner's order. Empty while they are pending. R:
// Resource or a generated kind.
template <class R>
class Required {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = R;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = R;
    Iterator(const Required* all, size_t index) : all_(all), index_(index) {}
    R operator*() const { return (*all_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator==(const Iterator& o) const { return index_ == o.index_; }
    bool operator!=(const Iterator& o) const { return index_ != o.index_; }

   private:
    const Required* all_;
    size_t index_;
  };

  explicit Required(sdk::Requirement* requirement)
      : requirement_(requirement) {}
  State state() const { return internal::StateOf(requirement_); }
  size_t size() const { return internal::SizeOf(requirement_); }
  bool empty() const { return size() == 0; }
  R operator[](size_t index) const {
    return R(internal::ItemOf(requirement_, index));
  }
  // A pending requirement gives an item whose fields are awaited.
  R first() const { return (*this)[0]; }
  Iterator begin() const { return Iterator(this, 0); }
  Iterator end() const { return Iterator(this, size()); }
  // FATAL once the runner has answered with fewer items.
  Required at_least(size_t count) const {
    internal::RequireAtLeast(requirement_, count);
    return *this;
  }

 private:
  sdk::Requirement* requirement_;
};

// Something that a schema does not allow.
struct Problem {
  std::string path;  // below the object, spelled as in masks
  std::string text;
};

class RequiredSchema {
 public:
  explicit RequiredSchema(sdk::SchemaRequirement* requirement)
      : requirement_(requirement) {}
  State state() const;
  Value schema() const;
  // Empty unless the state is kFound.
  std::vector<Problem> Validate(const Value& object) const;

 private:
  sdk::SchemaRequirement* requirement_;
};

// A result that was added. The setters return it, so that calls chain.
class Result {
 public:
  Result(sdk::Call* call, size_t index) : call_(call), index_(index) {}
  Result& reason(std::string_view reason);
  Result& target(Target target);

 private:
  sdk::Call* call_;
  size_t index_;
};

class Condition {
 public:
  Condition(sdk::Call* call, size_t index) : call_(call), index_(index) {}
  Condition& message(std::string_view message);
  Condition& target(Target target);

 private:
  sdk::Call* call_;
  size_t index_;
};

// Log lines with the kind, namespace and name of the composite.
class Log {
 public:
  using Fields =
      std::initializer_list<std::pair<std::string_view, std::string_view>>;
  explicit Log(sdk::Call* call) : call_(call) {}
  void debug(std::string_view message, Fields fields = {}) const;
  void info(std::string_view message, Fields fields = {}) const;
  void error(std::string_view message, Fields fields = {}) const;

 private:
  sdk::Call* call_;
};

class Context {
 public:
  explicit Context(sdk::Call* call) : call_(call) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // The composite. Its status, readiness and connection details can be set.
  Resource composite();
  template <class R>
  R composite() {
    return R(composite());
  }
  // The desired state of a composed resource. The same name gives the same
  // handle; another apiVersion or kind than an earlier step's is FATAL.
  Resource resource(std::string_view name, std::string_view api_version,
                    std::string_view kind);
  template <class R>
  R resource(std::string_view name) {
    return R(resource(name, R::kApiVersion, R::kKind));
  }
  // A composed resource without desiring it: writes take effect where an
  // earlier step desires it.
  Resource existing(std::string_view name);
  template <class R>
  R existing(std::string_view name) {
    return R(existing(name));
  }
  // Leaves out what an earlier step desires, so that it is deleted.
  void remove(std::string_view name);
  // Readiness as observed, for all resources of this call that set none.
  void auto_ready();

  Required<Resource> require(std::string_view name,
                             std::string_view api_version,
                             std::string_view kind, const Selector& selector) {
    return Required<Resource>(Require(name, api_version, kind, selector));
  }
  template <class R>
  Required<R> require(std::string_view name, const Selector& selector) {
    return Required<R>(Require(name, R::kApiVersion, R::kKind, selector));
  }
  // Reads the requirement of the Composition's step; requests nothing.
  template <class R = Resource>
  Required<R> bootstrap(std::string_view name) {
    return Required<R>(Bootstrap(name));
  }
  RequiredSchema require_schema(std::string_view name,
                                std::string_view api_version,
                                std::string_view kind);
  RequiredSchema bootstrap_schema(std::string_view name);
  Secrets credentials(std::string_view name);

  Value input();
  // Checked against the schema that the generator embeds in I.
  template <class I>
  I input() {
    CheckInput(I::kSchema);
    return I(input().ref());
  }
  Value context(std::string_view key);
  void set_context(std::string_view key, const Value& value);
  template <class T, class = std::enable_if_t<!std::is_base_of_v<Value, T>>>
  void set_context(std::string_view key, const T& value) {
    Value stored;
    stored = value;
    set_context(key, stored);
  }
  // context("apiextensions.crossplane.io/environment")
  Value environment();
  bool advertises_capabilities();
  bool has_capability(Capability capability);

  Result normal(std::string_view text);
  Result warning(std::string_view text);
  Result fatal(std::string_view text);
  Condition condition(std::string_view type, Status status,
                      std::string_view reason);
  // UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ABORTED and CANCELLED
  // end the call with that gRPC status; any other is FATAL.
  void fail(const absl::Status& status);
  // False once the call is FATAL or failed.
  bool ok() const;
  void ttl(absl::Duration ttl);
  // A duration as Go writes it: "10m". Absent: no effect.
  void ttl(const Field<std::string>& ttl);
  void ttl_at_most(absl::Duration ttl);
  // The output of an operation.
  Value output();
  // The object that a WatchOperation watches.
  Resource watched();
  // Each of these three drops `pure`.
  absl::Time now();
  absl::Time deadline();
  bool cancelled();
  Log log() { return Log(call_); }

  sdk::Call* call() const { return call_; }

 private:
  sdk::Requirement* Require(std::string_view name, std::string_view api_version,
                            std::string_view kind, const Selector& selector);
  sdk::Requirement* Bootstrap(std::string_view name);
  void CheckInput(std::string_view schema);

  sdk::Call* const call_;
};

using Function = std::function<void(Context&)>;

}  // namespace fncache::function

#endif  // FNCACHE_FUNCTION_CONTEXT_H_
