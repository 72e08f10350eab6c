// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/composition.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/field_path.h"
#include "common/nearest.h"
#include "common/utf8.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "text/object.h"
#include "text/type_name.h"

namespace fncache::runner::engine {

using google::protobuf::Struct;
using google::protobuf::Value;
namespace {

using apiextensions::fn::proto::v1::ResourceSelector;
using apiextensions::fn::proto::v1::SchemaSelector;

// The fields of one map. Null is absent, as everywhere in objects of a fixed
// form. All readers of an object share one status, which keeps the first wrong
// field.
class Fields {
 public:
  Fields(const Struct* map, std::string path, absl::Status* status)
      : map_(map), path_(std::move(path)), status_(status) {}

  bool Has(absl::string_view name) const {
    const Value* const value = At(name);
    return value != nullptr && !text::IsNull(*value);
  }

  // The value as it was written, which may be null; null where there is none.
  const Value* At(absl::string_view name) const {
    return map_ == nullptr ? nullptr : text::Find(*map_, {name});
  }

  // "" where there is none.
  std::string Text(absl::string_view name) const {
    const Value* const value = At(name);
    if (value == nullptr) return "";
    return TextOf(*value, PathOf(name));
  }

  // A map of text, empty where there is none.
  std::map<std::string, std::string> Texts(absl::string_view name) const {
    std::map<std::string, std::string> texts;
    const Fields fields = Map(name);
    if (fields.map_ == nullptr) return texts;
    for (const auto& field : fields.map_->fields()) {
      texts[field.first] = TextOf(field.second, fields.PathOf(field.first));
    }
    return texts;
  }

  // The fields of a map; none where there is no such map.
  Fields Map(absl::string_view name) const {
    return MapOf(At(name), PathOf(name));
  }

  // Calls `element(fields)` for each of a list of maps.
  template <typename Element>
  void Each(absl::string_view name, Element element) const {
    if (!Has(name)) return;
    const Value& list = *At(name);
    if (!list.has_list_value()) {
      Wrong(PathOf(name), "a list", list);
      return;
    }
    for (int i = 0; i < list.list_value().values_size(); ++i) {
      element(
          MapOf(&list.list_value().values(i), PathOfElement(PathOf(name), i)));
    }
  }

 private:
  std::string PathOf(absl::string_view name) const {
    return PathBelow(path_, name);
  }

  std::string TextOf(const Value& value, const std::string& path) const {
    if (value.kind_case() == Value::kStringValue) return value.string_value();
    if (!text::IsNull(value)) Wrong(path, "text", value);
    return "";
  }

  Fields MapOf(const Value* value, std::string path) const {
    const Struct* map = nullptr;
    if (value != nullptr && !text::IsNull(*value)) {
      if (value->has_struct_value()) {
        map = &value->struct_value();
      } else {
        Wrong(path, "a map", *value);
      }
    }
    return Fields(map, std::move(path), status_);
  }

  void Wrong(const std::string& path, absl::string_view wanted,
             const Value& value) const {
    status_->Update(absl::InvalidArgumentError(absl::StrCat(
        path, ": must be ", wanted, ", is ", text::TypeName(value))));
  }

  const Struct* map_;  // null = no fields
  std::string path_;
  absl::Status* status_;
};

ResourceSelector ReadResourceSelector(const Fields& fields) {
  ResourceSelector selector;
  selector.set_api_version(fields.Text("apiVersion"));
  selector.set_kind(fields.Text("kind"));
  if (fields.Has("namespace"))
    selector.set_namespace_(fields.Text("namespace"));
  const std::map<std::string, std::string> labels = fields.Texts("matchLabels");
  if (fields.Has("name")) {
    // Beats labels, even if it is "".
    selector.set_match_name(fields.Text("name"));
  } else if (fields.Has("matchLabels")) {
    selector.mutable_match_labels()->mutable_labels()->insert(labels.begin(),
                                                              labels.end());
  }
  return selector;
}

SchemaSelector ReadSchemaSelector(const Fields& fields) {
  SchemaSelector selector;
  selector.set_api_version(fields.Text("apiVersion"));
  selector.set_kind(fields.Text("kind"));
  return selector;
}

StepCredentials ReadCredentials(const Fields& fields) {
  StepCredentials credentials;
  credentials.name = fields.Text("name");
  credentials.source = fields.Text("source");
  const Fields secret = fields.Map("secretRef");
  if (fields.Has("secretRef")) {
    credentials.secret_ref = StepCredentials::SecretRef{
        secret.Text("namespace"), secret.Text("name")};
  }
  return credentials;
}

PipelineStep ReadStep(const Fields& fields) {
  PipelineStep step;
  step.name = fields.Text("step");
  step.function = fields.Map("functionRef").Text("name");
  if (fields.Has("input")) step.input = *fields.At("input");
  fields.Each("credentials", [&step](const Fields& credentials) {
    step.credentials.push_back(ReadCredentials(credentials));
  });
  if (fields.Has("requirements")) {
    step.requirements = *fields.At("requirements");
  }
  const Fields requirements = fields.Map("requirements");
  requirements.Each("requiredResources", [&step](const Fields& required) {
    step.required_resources.emplace_back(required.Text("requirementName"),
                                         ReadResourceSelector(required));
  });
  requirements.Each("requiredSchemas", [&step](const Fields& required) {
    step.required_schemas.emplace_back(required.Text("requirementName"),
                                       ReadSchemaSelector(required));
  });
  return step;
}

}  // namespace

absl::StatusOr<Composition> ParseComposition(const Struct& object) {
  absl::Status status;
  const Fields top(&object, "", &status);
  Composition composition;
  const Fields metadata = top.Map("metadata");
  composition.name = metadata.Text("name");
  composition.uid = metadata.Text("uid");
  if (metadata.Has("labels")) composition.labels = metadata.Texts("labels");
  if (metadata.Has("annotations")) {
    composition.annotations = metadata.Texts("annotations");
  }
  const Fields spec = top.Map("spec");
  const Fields type = spec.Map("compositeTypeRef");
  composition.composite_api_version = type.Text("apiVersion");
  composition.composite_kind = type.Text("kind");
  composition.mode = spec.Text("mode");
  if (spec.Has("writeConnectionSecretsToNamespace")) {
    composition.connection_secrets_namespace =
        spec.Text("writeConnectionSecretsToNamespace");
  }
  spec.Each("pipeline", [&composition](const Fields& step) {
    composition.steps.push_back(ReadStep(step));
  });
  if (!status.ok()) return status;
  return composition;
}

absl::Status CheckFieldsOfSpec(const Struct& object) {
  const Struct* const spec = text::FindMap(object, {"spec"});
  if (spec == nullptr) return absl::OkStatus();
  const std::vector<std::string> needed = {"compositeTypeRef", "mode",
                                           "pipeline"};
  std::vector<std::string> missing;
  for (const std::string& field : needed) {
    const Value* const value = text::Find(*spec, {field});
    if (value == nullptr || text::IsNull(*value)) missing.push_back(field);
  }
  std::set<std::string> found;  // sorted, so that the message never varies
  for (const auto& field : spec->fields()) {
    found.insert(Printable(SpellKey(field.first)));
  }
  for (const std::string& field : found) {
    if (absl::c_linear_search(needed, field)) continue;
    const std::string meant = DidYouMean(field, missing);
    if (meant.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "spec.", field, ": a Composition has no such field", meant));
  }
  if (!absl::c_linear_search(missing, "pipeline") ||
      text::FindText(*spec, {"mode"}) != "Pipeline") {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "spec.pipeline: is missing, and nothing would be composed without its "
      "steps; spec has ",
      absl::StrJoin(found, ", ")));
}

absl::Status CheckCompositeType(absl::string_view field,
                                absl::string_view of_composition,
                                absl::string_view of_composite) {
  if (of_composition == of_composite) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "composition's compositeTypeRef.", field, " (", of_composition,
      ") does not match XR's ", field, " (", of_composite, ")"));
}

}  // namespace fncache::runner::engine
