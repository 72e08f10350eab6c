// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/composition_revision.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/sha256.h"
#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"
#include "proto/function_v1.pb.h"
#include "runner/text/json.h"
#include "runner/text/rfc3339.h"
#include "runner/text/yaml_writer.h"

namespace fncache::runner::engine {
namespace {

namespace fn = apiextensions::fn::proto::v1;
using text::Json;

constexpr char kApiVersion[] = "apiextensions.crossplane.io/v1";
// A label's value has no more characters.
constexpr size_t kMaxLabel = 63;
constexpr size_t kNameSuffix = 7;

// An empty map counts as none, which Go writes as null.
Json Texts(const std::map<std::string, std::string>& texts) {
  return texts.empty() ? Json() : Json(texts);
}

Json RequiredResource(const std::string& name,
                      const fn::ResourceSelector& selector) {
  Json json = {{"requirementName", name},
               {"apiVersion", selector.api_version()},
               {"kind", selector.kind()}};
  if (selector.has_namespace_()) json["namespace"] = selector.namespace_();
  if (selector.has_match_name()) json["name"] = selector.match_name();
  for (const auto& [key, value] : selector.match_labels().labels()) {
    json["matchLabels"][key] = value;
  }
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
  for (const auto& [name, selector] : step.required_resources) {
    json["requirements"]["requiredResources"].push_back(
        RequiredResource(name, selector));
  }
  for (const auto& [name, selector] : step.required_schemas) {
    json["requirements"]["requiredSchemas"].push_back(
        {{"requirementName", name},
         {"apiVersion", selector.api_version()},
         {"kind", selector.kind()}});
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
  if (!composition.connection_secrets_namespace.empty()) {
    spec["writeConnectionSecretsToNamespace"] =
        composition.connection_secrets_namespace;
  }
  return spec;
}

}  // namespace

google::protobuf::Struct CompositionRevision(const Composition& composition,
                                             absl::Time now) {
  Json spec = Spec(composition);
  const std::string hash = Sha256Hex(absl::StrCat(
      text::ToYaml(Texts(composition.labels)),
      text::ToYaml(Texts(composition.annotations)), text::ToYaml(spec)));
  spec["revision"] = 1;
  Json labels = composition.labels;
  labels.emplace("crossplane.io/composition-name", composition.name);
  labels.emplace("crossplane.io/composition-hash", hash.substr(0, kMaxLabel));
  const Json revision = {
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
  return text::ToStruct(revision);
}

}  // namespace fncache::runner::engine
