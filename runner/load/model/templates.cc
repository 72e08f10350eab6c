// SPDX-License-Identifier: Apache-2.0
#include "runner/load/model/templates.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/sha256.h"
#include "runner/engine/metadata.h"
#include "text/object.h"

namespace fncache::runner::load::model {

using google::protobuf::Struct;

namespace {

std::shared_ptr<const engine::ObjectStore> StoreOf(
    const engine::EngineInput& input) {
  auto store = std::make_shared<engine::ObjectStore>();
  if (input.required != nullptr) store->Add(input.required);
  if (input.credentials != nullptr) {
    for (const Struct& credential : *input.credentials) {
      Struct secret = credential;
      if (text::FindText(secret, {"kind"}).empty()) {
        text::SetText(&secret, {"apiVersion"}, "v1");
        text::SetText(&secret, {"kind"}, "Secret");
      }
      store->Add(std::move(secret));
    }
  }
  return store;
}

}  // namespace

Templates::Templates(std::vector<engine::EngineInput> inputs) {
  MutexLock lock(&mutex_);
  for (engine::EngineInput& input : inputs) {
    Template made;
    const auto schema =
        engine::SchemaOf(input.definition.get(), input.composite);
    if (schema.ok()) {
      made.schema = *schema;
    } else {
      made.error = std::string(schema.status().message());
    }
    made.revision =
        absl::StrCat(input.composition->name, "-",
                     Sha256Hex(input.composition->name).substr(0, 7));
    made.kind = KindOf(input.composite);
    objects_.push_back(StoreOf(input));
    made.input = std::move(input);
    templates_.push_back(std::move(made));
  }
}

size_t Templates::KindOf(const Struct& composite) {
  const std::string kind =
      absl::StrCat(text::FindText(composite, {"apiVersion"}), "/",
                   text::FindText(composite, {"kind"}));
  const auto found = std::find(kinds_.begin(), kinds_.end(), kind);
  const auto index = static_cast<size_t>(found - kinds_.begin());
  if (found == kinds_.end()) kinds_.push_back(kind);
  return index;
}

std::string Templates::NameOf(int composite) const {
  const Struct& object = Of(composite).input.composite;
  const std::string& own_name = engine::NameOf(object);
  const std::string name = absl::StrFormat(
      "%s-%06d", own_name.empty() ? "composite" : own_name, composite);
  const std::string& own_namespace = engine::NamespaceOf(object);
  return own_namespace.empty() ? name : absl::StrCat(own_namespace, "/", name);
}

Struct Templates::Named(int composite) const {
  const Template& made_of = Of(composite);
  Struct object = made_of.input.composite;
  std::string name = NameOf(composite);
  name.erase(0, name.find('/') + 1);
  text::SetText(&object, {"metadata", "name"}, name);
  text::Remove(&object, {"metadata", "generateName"});
  engine::RemoveLabels(&object, {engine::kCompositeLabel});
  const bool modern = made_of.schema == engine::CompositeSchema::kModern;
  for (const char* const field : {"resourceRefs", "compositionRevisionRef"}) {
    if (modern) {
      text::Remove(&object, {"spec", "crossplane", field});
    } else {
      text::Remove(&object, {"spec", field});
    }
  }
  if (engine::FindOwnField(object, made_of.schema, "compositionUpdatePolicy") ==
      nullptr) {
    engine::SetOwnField(made_of.schema, "compositionUpdatePolicy",
                        text::TextValue("Automatic"), &object);
  }
  return object;
}

std::shared_ptr<const engine::ObjectStore> Templates::ObjectsFor(
    int composite) const {
  MutexLock lock(&mutex_);
  return objects_[IndexOf(composite)];
}

void Templates::PutRequired(const Struct& object) {
  for (size_t i = 0; i < templates_.size(); ++i) {
    engine::EngineInput input = templates_[i].input;
    auto required = std::make_shared<std::vector<Struct>>();
    if (input.required != nullptr) *required = *input.required;
    required->push_back(object);  // the later one of a name counts
    input.required = std::move(required);
    auto store = StoreOf(input);
    MutexLock lock(&mutex_);
    objects_[i] = std::move(store);
  }
}

}  // namespace fncache::runner::load::model
