// SPDX-License-Identifier: Apache-2.0
// The parts of a request into which masks go: its objects, and its context.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_RUNNER_PROBE_OBJECTS_H_
#define FNCACHE_RUNNER_PROBE_OBJECTS_H_

#include <map>
#include <string>

#include "common/field_path.h"
#include "proto/function_v1.pb.h"

// extra_resources is deprecated, and honoured.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fncache::runner::probe {

// The entries of a map by their names, in order.
template <typename Map>
auto Sorted(Map* map) {
  std::map<std::string, decltype(&map->begin()->second)> entries;
  for (auto& [name, value] : *map) entries[name] = &value;
  return entries;
}

// Calls `each` with the Struct of each object, its path as masks spell it and
// its own, and of the context.
template <typename Each>
void ForEachObject(apiextensions::fn::proto::v1::RunFunctionRequest* request,
                   const Each& each) {
  const auto below = PathBelow;
  const auto resource = [&](auto* holder, const std::string& mask,
                            const std::string& path) {
    if (!holder->has_resource()) return;
    each(holder->mutable_resource(), below(mask, "resource"),
         below(path, "resource"));
  };
  if (request->has_observed()) {
    auto* const observed = request->mutable_observed();
    const std::string composite = "observed.composite";
    if (observed->has_composite()) {
      resource(observed->mutable_composite(), composite, composite);
    }
    for (const auto& [name, one] : Sorted(observed->mutable_resources())) {
      const std::string path = below("observed.resources", name);
      resource(one, path, path);
    }
  }
  const auto required = [&](const char* field, auto* map) {
    for (const auto& [name, one] : Sorted(map)) {
      const std::string items = below(below(field, name), "items");
      for (int i = 0; i < one->items_size(); ++i) {
        resource(one->mutable_items(i), items + ".*", PathOfElement(items, i));
      }
    }
  };
  required("extra_resources", request->mutable_extra_resources());
  required("required_resources", request->mutable_required_resources());
  if (request->has_context()) {
    each(request->mutable_context(), "context", "context");
  }
}

}  // namespace fncache::runner::probe

#pragma GCC diagnostic pop

#endif  // FNCACHE_RUNNER_PROBE_OBJECTS_H_
