// SPDX-License-Identifier: Apache-2.0
// ObjectStore: the objects that a render knows, as an API server would store
// them: the composite, observed objects, objects that functions may require,
// Secrets. It finds the same objects as the reference runner's own store,
// quirks included.
//
// Built by one thread, then shared and only read: thread-safe from then on.
#ifndef FNCACHE_RUNNER_ENGINE_OBJECT_STORE_H_
#define FNCACHE_RUNNER_ENGINE_OBJECT_STORE_H_

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1_fwd.h"

namespace fncache::runner::engine {

class ObjectStore {
 public:
  ObjectStore() = default;
  ObjectStore(const ObjectStore&) = delete;
  ObjectStore& operator=(const ObjectStore&) = delete;
  // Moving a store leaves the pointers that Get gave valid.
  ObjectStore(ObjectStore&&) = default;
  ObjectStore& operator=(ObjectStore&&) = default;

  // Adds an object under its apiVersion, kind, namespace and name, of which one
  // that is absent, or no text, counts as empty. An object that is there
  // already is replaced. An apiVersion with two slashes counts as none, and its
  // object as one without a kind.
  void Add(google::protobuf::Struct object);
  // Adds them all in their order. They are shared, not copied, since many
  // renders may have the same ones.
  void Add(
      std::shared_ptr<const std::vector<google::protobuf::Struct>> objects);

  // Returns null if there is none. The pointer lives as long as the store.
  const google::protobuf::Struct* Get(absl::string_view api_version,
                                      absl::string_view kind,
                                      absl::string_view object_namespace,
                                      absl::string_view name) const;

  // Returns the objects that `selector` asks for. By name that is at most one;
  // else it is all that have its labels, or simply all if it has none, sorted
  // by the bytes of namespace/name. A version or namespace that the selector
  // leaves out matches any, and a list of kind FooList has items of kind Foo.
  // Each item has only its `resource`.
  apiextensions::fn::proto::v1::Resources Select(
      const apiextensions::fn::proto::v1::ResourceSelector& selector) const;

 private:
  // Group, kind, version, namespace, name, in this order so that a list is a
  // range of the map.
  using Id = std::tuple<std::string, std::string, std::string, std::string,
                        std::string>;
  static Id MakeId(absl::string_view api_version, absl::string_view kind,
                   absl::string_view object_namespace, absl::string_view name);
  void Index(const google::protobuf::Struct& object);

  std::map<Id, const google::protobuf::Struct*> objects_;
  // The objects that objects_ points to, and those that were replaced there.
  std::deque<google::protobuf::Struct> own_;
  std::vector<std::shared_ptr<const std::vector<google::protobuf::Struct>>>
      shared_;
};

// The decoded `data` of a Secret, never its `stringData`; a value of null is
// empty. InvalidArgument, in the reference's words, if any of its fields has
// another type than a Secret's.
absl::StatusOr<std::map<std::string, std::string>> SecretData(
    const google::protobuf::Struct& secret);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_OBJECT_STORE_H_
