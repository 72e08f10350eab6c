// SPDX-License-Identifier: Apache-2.0
#include "sdk/schema/names.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/string_view.h"
#include "sdk/schema/keywords.h"

namespace fncache::sdk::schema {
namespace {

// The fields that an object may have besides those of its schema.
enum class Level { kResource, kMetadata, kPlain };

// Fields of ObjectMeta in Kubernetes' API. A CRD lists at most some of them,
// and each resource may have them all.
bool IsMetadataField(absl::string_view key) {
  static const auto* const fields =
      new std::set<absl::string_view>{"annotations",
                                      "creationTimestamp",
                                      "deletionGracePeriodSeconds",
                                      "deletionTimestamp",
                                      "finalizers",
                                      "generateName",
                                      "generation",
                                      "labels",
                                      "managedFields",
                                      "name",
                                      "namespace",
                                      "ownerReferences",
                                      "resourceVersion",
                                      "selfLink",
                                      "uid"};
  return fields->count(key) != 0;
}

bool IsKnownTo(Level level, absl::string_view key) {
  if (level == Level::kMetadata) return IsMetadataField(key);
  return level == Level::kResource &&
         (key == "apiVersion" || key == "kind" || key == "metadata");
}

// Goes down the schema with each step, so its depth bounds the recursion.
class Names {
 public:
  explicit Names(Problems* problems) : problems_(problems) {}

  // All `schemas` are of this value. A name is known if one of them knows it.
  void Check(const std::vector<const Node*>& schemas, Node* node, Level level) {
    const Node* const value = Look(node);
    if (value == nullptr || Ends()) return;
    std::vector<const Node*> all;
    for (const Node* const schema : schemas) {
      if (!Expand(schema, &all)) return;
    }
    if (value->kind == Kind::kObject) return CheckObject(all, node, level);
    if (value->kind != Kind::kList) return;
    std::vector<const Node*> items;
    for (const Node* const schema : all) {
      const Node* const one = Keyword(schema, "items", Kind::kObject);
      if (one != nullptr) items.push_back(one);
    }
    const size_t size = items.empty() ? 0 : Size(node);
    for (size_t i = 0; i < size && !Ends(); ++i) {
      Check(items, ElementOf(node, i), Level::kPlain);
    }
  }

 private:
  bool Ends() { return problems_->full() || !problems_->Step(); }

  // Adds the schema and those of its allOf, anyOf and oneOf. False where a
  // schema among them is not there to see.
  bool Expand(const Node* schema, std::vector<const Node*>* all) {
    if (schema->kind != Kind::kObject) return true;
    if (!problems_->Step() || Keyword(schema, "$ref") != nullptr) return false;
    all->push_back(schema);
    for (const char* const forms : {"allOf", "anyOf", "oneOf"}) {
      const Node* const list = Keyword(schema, forms, Kind::kList);
      for (size_t i = 0; list != nullptr && i < list->size; ++i) {
        if (!Expand(list->elements[i], all)) return false;
      }
    }
    return true;
  }

  void CheckObject(const std::vector<const Node*>& all, Node* node,
                   Level level) {
    bool lists = false;  // what it knows
    bool free = false;
    for (const Node* const schema : all) {
      const Node* const others = Keyword(schema, "additionalProperties");
      const bool closed =
          others != nullptr && others->kind == Kind::kBool && !others->boolean;
      free = free || (others != nullptr && !closed) ||
             IsSet(schema, "x-kubernetes-preserve-unknown-fields") ||
             Keyword(schema, "patternProperties") != nullptr;
      lists = lists || closed ||
              Keyword(schema, "properties", Kind::kObject) != nullptr;
      if (IsSet(schema, "x-kubernetes-embedded-resource")) {
        level = Level::kResource;
      }
    }
    for (const absl::string_view key : Keys(node)) {
      if (Ends()) return;
      // One that is awaited is right.
      Node* const child = ChildOf(node, key);
      bool known =
          !lists || free || IsKnownTo(level, key) || Peek(child) == nullptr;
      std::vector<const Node*> below;
      for (const Node* const schema : all) {
        const Node* const named = Keyword(Keyword(schema, "properties"), key);
        const Node* const one =
            named != nullptr ? named : Keyword(schema, "additionalProperties");
        if (one != nullptr) below.push_back(one);
        known = known || named != nullptr;
      }
      if (!known) {
        problems_->Add(node, key, "is not known");
      } else if (!below.empty()) {
        Check(below, child,
              level == Level::kResource && key == "metadata" ? Level::kMetadata
                                                             : Level::kPlain);
      }
    }
  }

  Problems* const problems_;
};

}  // namespace

void CheckNames(const Node* schema, Node* object, Problems* problems) {
  Names(problems).Check({schema}, object, Level::kResource);
}

}  // namespace fncache::sdk::schema
