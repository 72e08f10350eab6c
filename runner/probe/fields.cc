// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/fields.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "common/field_path.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "runner/probe/alter.h"
#include "runner/probe/objects.h"

namespace fncache::runner::probe {

using apiextensions::fn::proto::v1::RunFunctionRequest;
using google::protobuf::Struct;
using google::protobuf::Value;

namespace {

// An added entry of an altered object.
constexpr char kAddedKey[] = "fncacheProbe";
constexpr char kAddedText[] = "probe";
// A function that reads the third element of a list shows it if there is one.
constexpr int kAddedElements = 8;

}  // namespace

// A field, and how to get from it to those in it. The root's children are the
// objects, which are no fields themselves.
struct RequestFields::Node {
  int index = -1;
  bool container = false;
  bool scalar = false;
  bool boolean = false;
  bool guessed = false;
  uint64_t bytes = 0;
  std::set<size_t> requests;  // those that have it
  std::vector<Value> likely;
  std::string mask;
  std::string path;
  std::map<std::string, std::unique_ptr<Node>> named;
  std::unique_ptr<Node> element;

  Node* At(const std::string& name, const std::string& mask_of,
           const std::string& path_of) {
    std::unique_ptr<Node>& node = named[name];
    if (node == nullptr) node = Make(mask_of, path_of);
    return node.get();
  }
  static std::unique_ptr<Node> Make(const std::string& mask,
                                    const std::string& path) {
    auto node = std::make_unique<Node>();
    node->mask = mask;
    node->path = path;
    return node;
  }

  void AddEntries(const Struct& object, const std::string& path_of,
                  size_t request) {
    for (const auto& [key, value] : object.fields()) {
      const std::string there = PathBelow(path_of, key);
      Node* const child = At(key, PathBelow(mask, key), there);
      child->bytes += key.size();
      child->Add(value, there, request);
    }
  }
  void Add(const Value& value, const std::string& path_of, size_t request) {
    requests.insert(request);
    constexpr uint64_t kOverhead = 6;  // tags and lengths of an entry
    bytes += kOverhead;
    switch (value.kind_case()) {
      case Value::kStructValue:
        container = true;
        AddEntries(value.struct_value(), path_of, request);
        break;
      case Value::kListValue: {
        container = true;
        const auto& values = value.list_value().values();
        for (int i = 0; i < values.size(); ++i) {
          const std::string there = PathOfElement(path_of, i);
          if (element == nullptr) element = Make(mask + ".*", there);
          element->Add(values[i], there, request);
        }
        break;
      }
      case Value::kStringValue:
        scalar = true;
        bytes += value.string_value().size();
        break;
      case Value::kNumberValue:
        scalar = true;
        bytes += sizeof(double);
        break;
      case Value::kBoolValue:
        scalar = boolean = true;
        ++bytes;
        break;
      default:
        ++bytes;
    }
  }
};

RequestFields::RequestFields(std::vector<Request> requests,
                             const std::vector<Addition>& additions,
                             size_t made_up)
    : requests_(std::move(requests)), root_(std::make_unique<Node>()) {
  for (size_t i = 0; i < requests_.size(); ++i) {
    ForEachObject(&requests_[i], [&](Struct* object, const std::string& mask,
                                     const std::string& path) {
      Node* const node = root_->At(mask, mask, path);
      node->requests.insert(i);
      node->AddEntries(*object, path, i);
    });
  }
  for (const Addition& addition : additions) {
    const auto object = root_->named.find(addition.object);
    if (object != root_->named.end()) AddTo(object->second.get(), addition);
  }
  has_.resize(requests_.size());
  has_object_.resize(requests_.size());
  for (auto& [mask, object] : root_->named) {
    for (auto& [name, node] : object->named) Number(node.get(), -1);
    for (const size_t request : object->requests) {
      has_object_[request].resize(fields_.size(), true);
    }
    for (auto& has : has_object_) has.resize(fields_.size());
  }
  for (auto& has : has_) has.resize(fields_.size());
  const size_t real = requests_.size() - made_up;
  for (size_t i = 0; i < fields_.size(); ++i) {
    for (size_t request = 0; request < requests_.size(); ++request) {
      if (!has_[request][i]) continue;
      fields_[i].held = true;
      fields_[i].real |= request < real;
    }
  }
}

// Adds nothing where another value is on the path: a leaf before its end, or an
// object or list at its end. Values in lists are not added.
void RequestFields::AddTo(Node* object, const Addition& addition) {
  const bool in_list =
      std::any_of(addition.path.begin(), addition.path.end(),
                  [](const auto& name) { return !name.has_value(); });
  Node* node = object;
  for (const auto& name : addition.path) {
    if (node->scalar || !node->likely.empty()) return;
    if (!name.has_value()) {
      node = node->element.get();
    } else if (in_list) {
      const auto found = node->named.find(*name);
      node = found == node->named.end() ? nullptr : found->second.get();
    } else if (node->element != nullptr) {
      return;
    } else {
      node = node->At(*name, PathBelow(node->mask, *name),
                      PathBelow(node->path, *name));
    }
    if (node == nullptr) return;
  }
  if (node == object || node->container || !node->named.empty() ||
      node->element != nullptr) {
    return;
  }
  if (node->requests.empty() && node->likely.empty()) {
    node->guessed = addition.guessed;
  }
  for (const Value& value : addition.values) {
    if (node->likely.size() < kMostLikely) node->likely.push_back(value);
  }
}

RequestFields::~RequestFields() = default;

size_t RequestFields::requests() const { return requests_.size(); }

const RequestFields::Request& RequestFields::request(size_t index) const {
  return requests_[index];
}

void RequestFields::Number(Node* node, int parent) {
  node->index = static_cast<int>(fields_.size());
  Field field;
  field.mask = node->mask;
  field.path = node->path;
  field.parent = parent;
  field.container =
      node->container || !node->named.empty() || node->element != nullptr;
  field.scalar = node->scalar;
  field.boolean = node->boolean;
  field.likely = static_cast<int>(node->likely.size());
  field.guessed = node->guessed;
  field.bytes = node->bytes / std::max<size_t>(node->requests.size(), 1);
  fields_.push_back(std::move(field));
  for (const size_t request : node->requests) {
    has_[request].resize(fields_.size());
    has_[request].back() = true;
  }
  for (auto& [name, child] : node->named) Number(child.get(), node->index);
  if (node->element != nullptr) Number(node->element.get(), node->index);
  fields_[node->index].end = static_cast<int>(fields_.size());
}

// One making of a changed request.
struct RequestFields::Walk {
  const std::vector<Field>& all;
  const std::vector<Change>& changes;
  const uint64_t seed;
  // How many of the fields before each one are to be set.
  std::vector<int> set_before;

  Change At(const Node& node) const { return changes[node.index]; }

  // Whether the field, or one in it, is to be set.
  bool Sets(const Node& node) const {
    return set_before[all[node.index].end] > set_before[node.index];
  }

  void Entries(Struct* object, const Node& node) const {
    auto& fields = *object->mutable_fields();
    for (const auto& [name, child] : node.named) {
      auto found = fields.find(name);
      if (found == fields.end()) {
        if (!Sets(*child)) continue;
        found = fields.insert({name, Value()}).first;
        if (At(*child) != Change::kSet) found->second.mutable_struct_value();
      }
      if (At(*child) == Change::kRemove) {
        fields.erase(found);
      } else {
        One(&found->second, *child, 0);
      }
    }
  }

  // `place` distinguishes the elements of a list.
  void One(Value* value, const Node& node, uint64_t place) const {
    if (At(node) == Change::kSet && !node.likely.empty()) {
      if (value->has_struct_value() || value->has_list_value()) return;
      *value = node.likely[seed % node.likely.size()];
      return;
    }
    const bool alter = At(node) == Change::kAlter;
    uint64_t state = seed ^ (static_cast<uint64_t>(node.index) << 24) ^ place;
    const uint64_t random = NextRandom(&state);
    switch (value->kind_case()) {
      case Value::kStructValue:
        Entries(value->mutable_struct_value(), node);
        if (alter) {
          (*value->mutable_struct_value()->mutable_fields())[kAddedKey]
              .set_string_value(kAddedText);
        }
        return;
      case Value::kListValue:
        List(value->mutable_list_value(), node, alter, place);
        return;
      case Value::kStringValue:
        if (alter) {
          value->set_string_value(AlteredText(value->string_value(), random));
        }
        return;
      case Value::kNumberValue:
        if (alter) {
          value->set_number_value(AlteredNumber(value->number_value(), random));
        }
        return;
      case Value::kBoolValue:
        if (alter) value->set_bool_value(!value->bool_value());
        return;
      default:
        if (alter) value->set_string_value(kAddedText);
    }
  }

  void List(google::protobuf::ListValue* list, const Node& node, bool alter,
            uint64_t place) const {
    if (node.element != nullptr) {
      for (int i = 0; i < list->values_size(); ++i) {
        Value* const value = list->mutable_values(i);
        if (At(*node.element) == Change::kRemove) {
          value->set_null_value(google::protobuf::NULL_VALUE);
        } else {
          One(value, *node.element, place * 31 + i + 1);
        }
      }
    }
    if (!alter) return;
    if (list->values_size() == 0) {
      list->add_values()->set_string_value(kAddedText);
    }
    const Value last = list->values(list->values_size() - 1);
    for (int i = 0; i < kAddedElements; ++i) *list->add_values() = last;
  }
};

RunFunctionRequest RequestFields::Changed(RunFunctionRequest changed,
                                          const std::vector<Change>& changes,
                                          uint64_t seed) const {
  Walk walk{fields_, changes, seed, std::vector<int>(changes.size() + 1)};
  for (size_t i = 0; i < changes.size(); ++i) {
    walk.set_before[i + 1] =
        walk.set_before[i] + (changes[i] == Change::kSet ? 1 : 0);
  }
  ForEachObject(&changed, [&](Struct* object, const std::string& mask,
                              const std::string& /*path*/) {
    const auto node = root_->named.find(mask);
    if (node != root_->named.end()) walk.Entries(object, *node->second);
  });
  return changed;
}

bool RequestFields::HasAny(size_t request,
                           const std::vector<Change>& changes) const {
  for (size_t i = 0; i < changes.size(); ++i) {
    if (changes[i] == Change::kKeep) continue;
    if (has_[request][i]) return true;
    if (changes[i] == Change::kSet && has_object_[request][i]) return true;
  }
  return false;
}

}  // namespace fncache::runner::probe
