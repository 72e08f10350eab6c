// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/fields.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cache/key/field_path.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "runner/probe/alter.h"

// extra_resources is deprecated, and honoured.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fncache::runner::probe {

using apiextensions::fn::proto::v1::RunFunctionRequest;
using google::protobuf::Struct;
using google::protobuf::Value;

namespace {

// What an altered object has besides.
constexpr char kAddedKey[] = "fncacheProbe";
constexpr char kAddedText[] = "probe";

// The entries of a map by their names, in order.
template <typename Map>
auto Sorted(Map* map) {
  std::map<std::string, decltype(&map->begin()->second)> entries;
  for (auto& [name, value] : *map) entries[name] = &value;
  return entries;
}

// Calls `each` for what holds fields in the request: the objects, each with its
// path as masks spell it and its own, and the context.
template <typename Each>
void ForEachObject(RunFunctionRequest* request, const Each& each) {
  const auto below = cache::key::PathBelow;
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
        resource(one->mutable_items(i), items + ".*",
                 cache::key::PathOfElement(items, i));
      }
    }
  };
  required("extra_resources", request->mutable_extra_resources());
  required("required_resources", request->mutable_required_resources());
  if (request->has_context()) {
    each(request->mutable_context(), "context", "context");
  }
}

}  // namespace

// A field, and how to get from it to those in it. The root's children are the
// objects, which are no fields themselves.
struct RequestFields::Node {
  int index = -1;
  bool container = false;
  uint64_t bytes = 0;
  std::set<size_t> requests;  // those that have it
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
      const std::string there = cache::key::PathBelow(path_of, key);
      Node* const child = At(key, cache::key::PathBelow(mask, key), there);
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
          const std::string there = cache::key::PathOfElement(path_of, i);
          if (element == nullptr) element = Make(mask + ".*", there);
          element->Add(values[i], there, request);
        }
        break;
      }
      case Value::kStringValue:
        bytes += value.string_value().size();
        break;
      case Value::kNumberValue:
        bytes += sizeof(double);
        break;
      default:
        ++bytes;
    }
  }
};

RequestFields::RequestFields(std::vector<Request> requests)
    : requests_(std::move(requests)), root_(std::make_unique<Node>()) {
  for (size_t i = 0; i < requests_.size(); ++i) {
    ForEachObject(&requests_[i], [&](Struct* object, const std::string& mask,
                                     const std::string& path) {
      root_->At(mask, mask, path)->AddEntries(*object, path, i);
    });
  }
  has_.resize(requests_.size());
  for (auto& [mask, object] : root_->named) {
    for (auto& [name, node] : object->named) Number(node.get(), -1);
  }
  for (auto& has : has_) has.resize(fields_.size());
}

RequestFields::~RequestFields() = default;

size_t RequestFields::requests() const { return requests_.size(); }

const RequestFields::Request& RequestFields::request(size_t index) const {
  return requests_[index];
}

void RequestFields::Number(Node* node, int parent) {
  node->index = static_cast<int>(fields_.size());
  fields_.push_back({node->mask, node->path, parent, 0, node->container,
                     node->bytes / std::max<size_t>(node->requests.size(), 1)});
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
  const std::vector<Change>& changes;
  const uint64_t seed;

  Change At(const Node& node) const { return changes[node.index]; }

  void Entries(Struct* object, const Node& node) const {
    auto& fields = *object->mutable_fields();
    for (const auto& [name, child] : node.named) {
      const auto found = fields.find(name);
      if (found == fields.end()) continue;
      if (At(*child) == Change::kRemove) {
        fields.erase(found);
      } else {
        One(&found->second, *child, 0);
      }
    }
  }

  // `place` tells the elements of a list apart.
  void One(Value* value, const Node& node, uint64_t place) const {
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
    } else {
      const Value last = list->values(list->values_size() - 1);
      *list->add_values() = last;
    }
  }
};

RunFunctionRequest RequestFields::Changed(size_t request,
                                          const std::vector<Change>& changes,
                                          uint64_t seed) const {
  RunFunctionRequest changed = requests_[request];
  const Walk walk{changes, seed};
  ForEachObject(&changed, [&](Struct* object, const std::string& mask,
                              const std::string& /*path*/) {
    walk.Entries(object, *root_->named.at(mask));
  });
  return changed;
}

bool RequestFields::HasAny(size_t request,
                           const std::vector<Change>& changes) const {
  for (size_t i = 0; i < changes.size(); ++i) {
    if (changes[i] != Change::kKeep && has_[request][i]) return true;
  }
  return false;
}

}  // namespace fncache::runner::probe
