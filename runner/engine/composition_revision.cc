// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/composition_revision.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/sha256.h"
#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"
#include "text/json.h"
#include "text/rfc3339.h"
#include "text/yaml_writer.h"

namespace fncache::runner::engine {
namespace {

using text::Json;

constexpr char kApiVersion[] = "apiextensions.crossplane.io/v1";
// A label's value has no more characters.
constexpr size_t kMaxLabel = 63;
constexpr size_t kNameSuffix = 7;

using Texts = std::map<std::string, std::string>;

// Go writes a map that is absent as null.
Json ToJson(const absl::optional<Texts>& texts) {
  return texts.has_value() ? Json(*texts) : Json();
}

// Removes a field that Go leaves out if it is empty.
void OmitEmpty(const char* field, Json* json) {
  const auto it = json->find(field);
  if (it != json->end() && it->empty()) json->erase(it);
}

Json Requirements(const google::protobuf::Value& written) {
  Json json = text::FromValue(written);
  if (const auto list = json.find("requiredResources"); list != json.end()) {
    for (Json& selector : *list) OmitEmpty("matchLabels", &selector);
  }
  OmitEmpty("requiredResources", &json);
  OmitEmpty("requiredSchemas", &json);
  return json;
}

Json Step(const PipelineStep& step) {
  Json json = {{"step", step.name}, {"functionRef", {{"name", step.function}}}};
  if (step.input.has_value()) json["input"] = text::FromValue(*step.input);
  for (const StepCredentials& credentials : step.credentials) {
    Json one = {{"name", credentials.name}, {"source", credentials.source}};
    if (credentials.secret_ref.has_value()) {
      one["secretRef"] = {
          {"namespace", credentials.secret_ref->secret_namespace},
          {"name", credentials.secret_ref->name}};
    }
    json["credentials"].push_back(std::move(one));
  }
  if (step.requirements.has_value()) {
    json["requirements"] = Requirements(*step.requirements);
  }
  return json;
}

Json Spec(const Composition& composition) {
  Json spec = {
      {"compositeTypeRef",
       {{"apiVersion", composition.composite_api_version},
        {"kind", composition.composite_kind}}},
  };
  if (!composition.mode.empty()) spec["mode"] = composition.mode;
  for (const PipelineStep& step : composition.steps) {
    spec["pipeline"].push_back(Step(step));
  }
  if (composition.connection_secrets_namespace.has_value()) {
    spec["writeConnectionSecretsToNamespace"] =
        *composition.connection_secrets_namespace;
  }
  return spec;
}

}  // namespace

google::protobuf::Struct CompositionRevision(const Composition& composition,
                                             absl::Time now) {
  Json spec = Spec(composition);
  const std::string hash = Sha256Hex(absl::StrCat(
      text::ToYaml(ToJson(composition.labels)),
      text::ToYaml(ToJson(composition.annotations)), text::ToYaml(spec)));
  spec["revision"] = 1;
  Json labels = composition.labels.value_or(Texts());
  labels.emplace("crossplane.io/composition-name", composition.name);
  labels.emplace("crossplane.io/composition-hash", hash.substr(0, kMaxLabel));
  Json revision = {
      {"apiVersion", kApiVersion},
      {"kind", "CompositionRevision"},
      {"metadata",
       {{"name",
         absl::StrCat(composition.name, "-", hash.substr(0, kNameSuffix))},
        {"labels", std::move(labels)},
        {"ownerReferences", Json::array({{{"apiVersion", kApiVersion},
                                          {"kind", "Composition"},
                                          {"name", composition.name},
                                          {"uid", composition.uid},
                                          {"controller", true},
                                          {"blockOwnerDeletion", true}}})}}},
      {"spec", std::move(spec)},
      {"status",
       {{"conditions",
         Json::array({{{"type", "ValidPipeline"},
                       {"status", "True"},
                       {"reason", "ValidPipeline"},
                       {"lastTransitionTime", text::FormatRfc3339(now)}}})}}},
  };
  if (composition.annotations.has_value() &&
      !composition.annotations->empty()) {
    revision["metadata"]["annotations"] = *composition.annotations;
  }
  return text::ToStruct(revision);
}

}  // namespace fncache::runner::engine
