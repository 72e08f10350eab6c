// SPDX-License-Identifier: Apache-2.0
// The differences of two maps and of two objects, in the order of keys.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_TEXT_DIFFERENCES_H_
#define FNCACHE_TEXT_DIFFERENCES_H_

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "text/object.h"

namespace fncache::text {

// Calls each(key, a, b) for every key of the two maps, with pointers to its
// values; null where a map lacks the key.
template <typename Map, typename Each>
void ForEachKey(const Map& a, const Map& b, const Each& each) {
  using Pointer = const typename Map::mapped_type*;
  std::map<absl::string_view, std::pair<Pointer, Pointer>> both;
  for (const auto& [key, value] : a) both[key].first = &value;
  for (const auto& [key, value] : b) both[key].second = &value;
  for (const auto& [key, values] : both) {
    each(std::string(key), values.first, values.second);
  }
}

struct DifferenceVisitor {
  // The path of a field below the object at `path`.
  std::function<std::string(const std::string& path, const std::string& key)>
      below;
  // Whether lists of unequal length are compared by their elements; else they
  // are one difference.
  bool into_uneven_lists = true;
  // Gets each difference: the path and the two values, null where there is
  // none. Two objects are no difference, only fields in them are.
  std::function<void(const std::string& path, const Value* a, const Value* b)>
      differs;
};

void VisitDifferences(const std::string& path, const Struct& a, const Struct& b,
                      const DifferenceVisitor& visitor);

}  // namespace fncache::text

#endif  // FNCACHE_TEXT_DIFFERENCES_H_
