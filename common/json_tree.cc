// SPDX-License-Identifier: Apache-2.0
#include "common/json_tree.h"

#include <utility>

#include "nlohmann/json.hpp"

namespace fncache {

using Json = nlohmann::ordered_json;

struct JsonTree::Tree {
  Json json;
};

JsonTree::JsonTree() : tree_(std::make_unique<Tree>()) {}

JsonTree::JsonTree(bool value) : JsonTree() { tree_->json = value; }
JsonTree::JsonTree(double value) : JsonTree() { tree_->json = value; }
JsonTree::JsonTree(int value) : JsonTree() { tree_->json = value; }
JsonTree::JsonTree(long value) : JsonTree() { tree_->json = value; }
JsonTree::JsonTree(long long value) : JsonTree() { tree_->json = value; }
JsonTree::JsonTree(unsigned value) : JsonTree() { tree_->json = value; }
JsonTree::JsonTree(unsigned long value) : JsonTree() { tree_->json = value; }
JsonTree::JsonTree(unsigned long long value) : JsonTree() {
  tree_->json = value;
}
JsonTree::JsonTree(const char* text) : JsonTree(std::string(text)) {}
JsonTree::JsonTree(const std::string& text) : JsonTree() { tree_->json = text; }
JsonTree::JsonTree(absl::string_view text) : JsonTree(std::string(text)) {}

JsonTree::JsonTree(const std::vector<std::string>& list) : JsonTree() {
  tree_->json = list;
}

JsonTree::JsonTree(std::initializer_list<Field> fields) : JsonTree(Object()) {
  for (const Field& field : fields) {
    tree_->json.emplace(std::string(field.name),
                        std::move(field.value.tree_->json));
  }
}

JsonTree JsonTree::Object() {
  JsonTree object;
  object.tree_->json = Json::object();
  return object;
}

JsonTree JsonTree::Array() {
  JsonTree array;
  array.tree_->json = Json::array();
  return array;
}

JsonTree::JsonTree(const JsonTree& other)
    : tree_(std::make_unique<Tree>(*other.tree_)) {}
JsonTree::JsonTree(JsonTree&& other) noexcept = default;
JsonTree& JsonTree::operator=(const JsonTree& other) {
  tree_ = std::make_unique<Tree>(*other.tree_);
  return *this;
}
JsonTree& JsonTree::operator=(JsonTree&& other) noexcept = default;
JsonTree::~JsonTree() = default;

void JsonTree::Set(absl::string_view name, JsonTree value) {
  tree_->json[std::string(name)] = std::move(value.tree_->json);
}

void JsonTree::Append(JsonTree value) {
  tree_->json.push_back(std::move(value.tree_->json));
}

std::string JsonTree::Dump(int indent, Order order) const {
  constexpr auto kReplace = Json::error_handler_t::replace;
  return order == Order::kSorted
             ? nlohmann::json(tree_->json).dump(indent, ' ', false, kReplace)
             : tree_->json.dump(indent, ' ', false, kReplace);
}

}  // namespace fncache
