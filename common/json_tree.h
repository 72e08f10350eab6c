// SPDX-License-Identifier: Apache-2.0
// JsonTree: a tree of values that is built in order to print it as JSON.
//
// nlohmann/json.hpp costs a source file more compile time than its other
// headers together. A file that only prints JSON includes this instead. Braces
// build a tree as they do there, but they always mean an object:
//
//   JsonTree all = {{"version", 1}, {"process", {{"open_files", 7}}}};
//   all.Set("notes", JsonTree::Array());
//   all.Dump();  // {"version":1,"process":{"open_files":7},"notes":[]}
//
// A file that reads JSON uses text/json.h.
//
// Not thread-safe. A tree owns copies of all that it was built from. A tree
// that was moved from may only be assigned to or destroyed.
#ifndef FNCACHE_COMMON_JSON_TREE_H_
#define FNCACHE_COMMON_JSON_TREE_H_

#include <cstddef>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fncache {

class JsonTree {
 public:
  struct Field;
  enum class Order {
    kAsBuilt,  // fields in the order in which they were added
    kSorted,   // fields by the bytes of their names
  };

  // Null.
  JsonTree();

  // Conversions are implicit, so that braces take values as they are. NaN and
  // the infinities are printed as null.
  // NOLINTBEGIN(google-explicit-constructor)
  JsonTree(bool value);
  JsonTree(double value);
  JsonTree(int value);
  JsonTree(long value);
  JsonTree(long long value);
  JsonTree(unsigned value);
  JsonTree(unsigned long value);
  JsonTree(unsigned long long value);
  JsonTree(const char* text);
  JsonTree(const std::string& text);
  JsonTree(absl::string_view text);
  // Without this a pointer would become true.
  JsonTree(const void*) = delete;

  JsonTree(const std::vector<std::string>& list);
  template <typename T>
  JsonTree(const std::map<std::string, T>& fields);

  // An object. The first of two fields with one name counts.
  JsonTree(std::initializer_list<Field> fields);
  // NOLINTEND(google-explicit-constructor)

  static JsonTree Object();
  static JsonTree Array();

  JsonTree(const JsonTree& other);
  JsonTree(JsonTree&& other) noexcept;
  JsonTree& operator=(const JsonTree& other);
  JsonTree& operator=(JsonTree&& other) noexcept;
  ~JsonTree();

  // Adds a field to an object, or replaces its value.
  void Set(absl::string_view name, JsonTree value);
  // Adds an element to an array.
  void Append(JsonTree value);

  // One line without spaces, or with `indent` spaces for each level. Bytes that
  // are not UTF-8 become U+FFFD.
  std::string Dump(int indent = kOneLine, Order order = Order::kAsBuilt) const;
  static constexpr int kOneLine = -1;

 private:
  struct Tree;
  std::unique_ptr<Tree> tree_;
};

// `value` is moved out of the braces, whose elements are const.
struct JsonTree::Field {
  absl::string_view name;
  mutable JsonTree value;
};

template <typename T>
JsonTree::JsonTree(const std::map<std::string, T>& fields)
    : JsonTree(Object()) {
  for (const auto& [name, value] : fields) Set(name, value);
}

}  // namespace fncache

#endif  // FNCACHE_COMMON_JSON_TREE_H_
