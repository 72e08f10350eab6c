// SPDX-License-Identifier: Apache-2.0
#include "runner/testing/alter.h"

#include <map>
#include <utility>
#include <vector>

#include "common/field_path.h"
#include "google/protobuf/struct.pb.h"
#include "runner/testing/messages.h"
#include "text/object.h"

// extra_resources is deprecated, and old runners have nothing else.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fncache::function::testing {

namespace proto = apiextensions::fn::proto::v1;
using cache::key::MaskNode;
using google::protobuf::ListValue;
using google::protobuf::Struct;
using PbValue = google::protobuf::Value;

namespace {

// FNV-1a: the same in each process, as a test's failure must be.
uint64_t Hash(absl::string_view text, uint64_t seed) {
  uint64_t hash = 0xcbf29ce484222325 ^ seed;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

std::set<std::string> Keys(const Struct& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.fields()) keys.insert(key);
  return keys;
}

class Alterer {
 public:
  Alterer(uint64_t seed, const std::set<std::string>* only,
          std::set<std::string>* altered)
      : seed_(seed), only_(only), altered_(altered) {
    for (const char* const text : {"True", "False", "altered"}) {
      values_.push_back(text::TextValue(text));
    }
    values_.push_back(text::BoolValue(true));
    values_.push_back(text::BoolValue(false));
    values_.emplace_back().set_number_value(7);
    values_.emplace_back().set_null_value(google::protobuf::NULL_VALUE);
    values_.emplace_back().mutable_struct_value();
    values_.emplace_back().mutable_list_value();
  }

  // Changes use keys and values of the request and of the hint, because a
  // function may ask for them elsewhere, too.
  void Learn(const std::string& key) { keys_.push_back(key); }
  void Learn(const Struct& object) {
    for (const std::string& key : Keys(object)) {
      keys_.push_back(key);
      Learn(object.fields().at(key));
    }
  }

  // `node`: what the hint reads at and below the object, null for nothing.
  void Object(Struct* object, const MaskNode* node, const std::string& path) {
    auto& fields = *object->mutable_fields();
    for (const std::string& key : Keys(*object)) {
      if (Field(&fields[key], node == nullptr ? nullptr : node->Find(key),
                PathBelow(path, key))) {
        fields.erase(key);
      }
    }
    uint64_t random = Hash(path, seed_);
    if (keys_.empty()) return;
    const std::string& key = keys_[NextRandom(&random) % keys_.size()];
    const bool read = node != nullptr && node->Find(key) != nullptr;
    if (!read && !fields.contains(key) &&
        Decide(PathBelow(path, key), &random)) {
      fields[key] = Other(&random);
    }
  }

 private:
  void Learn(const PbValue& value) {
    values_.push_back(value);
    Learn(value.struct_value());
    for (const PbValue& element : value.list_value().values()) Learn(element);
  }

  // Whether to change what is at the path.
  bool Decide(const std::string& path, uint64_t* random) {
    if (NextRandom(random) % 3 != 0) return false;
    if (only_ != nullptr && only_->count(path) == 0) return false;
    altered_->insert(path);
    return true;
  }

  const PbValue& Other(uint64_t* random) {
    return values_[NextRandom(random) % values_.size()];
  }

  // True where the field is to be removed.
  bool Field(PbValue* value, const MaskNode* node, const std::string& path) {
    uint64_t random = Hash(path, seed_);
    if (node != nullptr && node->masked) return false;
    if (node == nullptr && Decide(path, &random)) {
      if (NextRandom(&random) % 4 == 0) return true;
      *value = Other(&random);
      return false;
    }
    if (value->has_struct_value()) {
      Object(value->mutable_struct_value(), node, path);
    }
    if (!value->has_list_value()) return false;
    ListValue& list = *value->mutable_list_value();
    for (int i = 0; i < list.values_size(); ++i) {
      // An element that would be removed becomes another.
      if (Field(list.mutable_values(i),
                node == nullptr ? nullptr : node->element(),
                PathOfElement(path, i))) {
        *list.mutable_values(i) = Other(&random);
      }
    }
    if (node == nullptr && Decide(PathBelow(path, "*"), &random)) {
      if (list.values().empty() || NextRandom(&random) % 2 == 0) {
        *list.add_values() = Other(&random);
      } else {
        list.mutable_values()->RemoveLast();
      }
    }
    return false;
  }

  const uint64_t seed_;
  const std::set<std::string>* const only_;
  std::set<std::string>* const altered_;
  std::vector<std::string> keys_;
  std::vector<PbValue> values_;
};

const MaskNode* Down(const MaskNode* node, const std::string& name) {
  return node == nullptr || node->masked ? node : node->Find(name);
}

// Calls each(object, node, path) for each object whose content a hint can name.
template <typename Each>
void ForEachObject(proto::RunFunctionRequest* request, const MaskNode* root,
                   const Each& each) {
  const auto visit = [&](proto::Resource* resource, const MaskNode* node,
                         const std::string& path) {
    if (!resource->has_resource()) return;
    node = Down(node, "resource");
    if (node != nullptr && node->masked) return;
    each(resource->mutable_resource(), node, PathBelow(path, "resource"));
  };
  const MaskNode* const observed = Down(root, "observed");
  if (request->observed().has_composite()) {
    visit(request->mutable_observed()->mutable_composite(),
          Down(observed, "composite"), "observed.composite");
  }
  const MaskNode* const resources = Down(observed, "resources");
  for (auto& [name, resource] :
       *request->mutable_observed()->mutable_resources()) {
    visit(&resource, Down(resources, name),
          PathBelow("observed.resources", name));
  }
  const auto items = [&](const char* field, auto* all) {
    const MaskNode* const named = Down(root, field);
    for (auto& [name, of] : *all) {
      const MaskNode* const list = Down(Down(named, name), "items");
      const std::string path = PathBelow(PathBelow(field, name), "items");
      for (int i = 0; i < of.items_size(); ++i) {
        visit(of.mutable_items(i),
              list == nullptr || list->masked ? list : list->element(),
              PathOfElement(path, i));
      }
    }
  };
  items("required_resources", request->mutable_required_resources());
  items("extra_resources", request->mutable_extra_resources());
}

}  // namespace

proto::RunFunctionRequest Altered(proto::RunFunctionRequest request,
                                  const cache::key::MaskSet& reads,
                                  uint64_t seed,
                                  const std::set<std::string>* only,
                                  std::set<std::string>* altered) {
  Alterer alterer(seed, only, altered);
  for (const cache::key::MaskPath& path : reads.paths()) {
    for (const cache::key::MaskElement& element : path) {
      if (!element.any) alterer.Learn(element.name);
    }
  }
  // In the order of names, so that the values to draw from are the same.
  std::map<std::string, Struct*> objects;
  ForEachObject(&request, nullptr,
                [&](Struct* object, const MaskNode* node,
                    const std::string& path) { objects[path] = object; });
  for (const auto& [path, object] : objects) alterer.Learn(*object);
  ForEachObject(
      &request, reads.root(),
      [&](Struct* object, const MaskNode* node, const std::string& path) {
        alterer.Object(object, node, path);
      });
  return request;
}

}  // namespace fncache::function::testing
