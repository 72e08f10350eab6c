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
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "fncache/function/resource.h"
#include "fncache/function/value.h"

namespace fncache::sdk {
class Call;
struct Requirement;
struct SchemaRequirement;
}  // namespace fncache::sdk

namespace fncache::function {

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
// A value that stands alone, until the context gets it.
Value NewContextValue(std::string_view key);
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
  using Iterator = internal::IndexIterator<Required, R>;

  explicit Required(sdk::Requirement* requirement)
      : requirement_(requirement) {}
  State state() const { return internal::StateOf(requirement_); }
  size_t size() const { return internal::SizeOf(requirement_); }
  bool empty() const { return size() == 0; }
  template <class I, class = internal::IfIndex<I>>
  R operator[](I index) const {
    return R(internal::ItemOf(requirement_, static_cast<size_t>(index)));
  }
  // A pending requirement gives an item whose fields are awaited.
  R first() const { return (*this)[0]; }
  Iterator begin() const { return Iterator(this, 0); }
  Iterator end() const { return Iterator(this, size()); }
  // FATAL once the runner has answered with fewer items, and where it will not
  // be asked in this reconcile: the selector waits for a field that an observed
  // or required resource lacks, or the Composition's step does not request what
  // bootstrap() reads.
  template <class I, class = internal::IfIndex<I>>
  Required at_least(I count) const {
    internal::RequireAtLeast(requirement_, static_cast<size_t>(count));
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
    if constexpr (std::is_base_of_v<Object, T>) {
      set_context(key, Value(value.ref()));
    } else {
      Value stored = internal::NewContextValue(key);
      stored = value;
      set_context(key, stored);
    }
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
