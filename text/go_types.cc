// SPDX-License-Identifier: Apache-2.0
#include "text/go_types.h"

#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace fncache::text {
namespace {

// A struct's name, and below it its fields: the name in JSON, the type, and `?`
// where Go leaves it out when it is empty. `*` is a pointer, `text=NAME` a text
// with a type of its own, and `+` a struct that is embedded. (Crossplane's API
// v2.3, Kubernetes 1.35; the fields of 2.4 are the same.)
constexpr char kTypes[] = R"(
v1.TypeMeta
  kind string ?
  apiVersion string ?
v1.OwnerReference
  apiVersion string
  kind string
  name string
  uid text=types.UID
  controller *bool ?
  blockOwnerDeletion *bool ?
v1.ManagedFieldsEntry
  manager string ?
  operation text=v1.ManagedFieldsOperationType ?
  apiVersion string ?
  time *time ?
  fieldsType string ?
  fieldsV1 *any ?
  subresource string ?
v1.ObjectMeta
  name string ?
  generateName string ?
  namespace string ?
  selfLink string ?
  uid text=types.UID ?
  resourceVersion string ?
  generation int64 ?
  creationTimestamp time ?
  deletionTimestamp *time ?
  deletionGracePeriodSeconds *int64 ?
  labels map[string]string ?
  annotations map[string]string ?
  ownerReferences []v1.OwnerReference ?
  finalizers []string ?
  managedFields []v1.ManagedFieldsEntry ?
v1.TypeReference
  apiVersion string
  kind string
v1.FunctionReference
  name string
v2.SecretReference
  name string
  namespace string
v1.FunctionCredentials
  name string
  source text=v1.FunctionCredentialsSource
  secretRef *v2.SecretReference ?
v1.RequiredResourceSelector
  requirementName string
  apiVersion string
  kind string
  namespace *string ?
  name *string ?
  matchLabels map[string]string ?
v1.RequiredSchemaSelector
  requirementName string
  apiVersion string
  kind string
v1.FunctionRequirements
  requiredResources []v1.RequiredResourceSelector ?
  requiredSchemas []v1.RequiredSchemaSelector ?
v1.PipelineStep
  step string
  functionRef v1.FunctionReference
  input *any ?
  credentials []v1.FunctionCredentials ?
  requirements *v1.FunctionRequirements ?
v1.CompositionSpec
  compositeTypeRef v1.TypeReference
  mode text=v1.CompositionMode ?
  pipeline []v1.PipelineStep ?
  writeConnectionSecretsToNamespace *string ?
v1.Composition
  + v1.TypeMeta
  metadata v1.ObjectMeta ?
  spec v1.CompositionSpec ?
v1.LocalObjectReference
  name string ?
v1.PackageSpec
  package string
  revisionActivationPolicy *text=v1.RevisionActivationPolicy ?
  revisionHistoryLimit *int64 ?
  packagePullSecrets []v1.LocalObjectReference ?
  packagePullPolicy *text=v1.PullPolicy ?
  ignoreCrossplaneConstraints *bool ?
  skipDependencyResolution *bool ?
  commonLabels map[string]string ?
  commonAnnotations map[string]string ?
v1.RuntimeConfigReference
  apiVersion *string ?
  kind *string ?
  name string
v1.PackageRuntimeSpec
  runtimeConfigRef *v1.RuntimeConfigReference ?
v1.FunctionSpec
  + v1.PackageSpec
  + v1.PackageRuntimeSpec
v2.Condition
  type text=v2.ConditionType
  status text=v1.ConditionStatus
  lastTransitionTime time
  reason text=v2.ConditionReason
  message string ?
  observedGeneration int64 ?
v2.ConditionedStatus
  conditions []v2.Condition ?
v1.ImageConfigRef
  name string
  reason text=v1.ImageConfigRefReason
v1.PackageStatus
  currentRevision string ?
  currentIdentifier string ?
  appliedImageConfigRefs []v1.ImageConfigRef ?
  resolvedPackage string ?
v1.FunctionStatus
  + v2.ConditionedStatus
  + v1.PackageStatus
v1.Function
  + v1.TypeMeta
  metadata v1.ObjectMeta ?
  spec v1.FunctionSpec ?
  status v1.FunctionStatus ?
v1.CustomResourceDefinitionNames
  plural string
  singular string ?
  shortNames []string ?
  kind string
  listKind string ?
  categories []string ?
v1.CompositionReference
  name string
v1.LabelSelectorRequirement
  key string
  operator text=v1.LabelSelectorOperator
  values []string ?
v1.LabelSelector
  matchLabels map[string]string ?
  matchExpressions []v1.LabelSelectorRequirement ?
v1.CompositeResourceValidation
  openAPIV3Schema any ?
v1.CustomResourceColumnDefinition
  name string
  type string
  format string ?
  description string ?
  priority int32 ?
  jsonPath string
v1.CustomResourceSubresourceScale
  specReplicasPath string
  statusReplicasPath string
  labelSelectorPath *string ?
v1.CompositeResourceDefinitionVersionSubresources
  scale *v1.CustomResourceSubresourceScale ?
v1.CompositeResourceDefinitionVersion
  name string
  referenceable bool
  served bool
  deprecated *bool ?
  deprecationWarning *string ?
  schema *v1.CompositeResourceValidation ?
  additionalPrinterColumns []v1.CustomResourceColumnDefinition ?
  subresources *v1.CompositeResourceDefinitionVersionSubresources ?
v1.ServiceReference
  namespace string
  name string
  path *string ?
  port *int32 ?
v1.WebhookClientConfig
  url *string ?
  service *v1.ServiceReference ?
  caBundle bytes ?
v1.WebhookConversion
  clientConfig *v1.WebhookClientConfig ?
  conversionReviewVersions []string
v1.CustomResourceConversion
  strategy text=v1.ConversionStrategyType
  webhook *v1.WebhookConversion ?
v1.CompositeResourceDefinitionSpecMetadata
  labels map[string]string ?
  annotations map[string]string ?
v1.CompositeResourceDefinitionSpec
  group string
  names v1.CustomResourceDefinitionNames
  scope *text=v1.CompositeResourceScope ?
  claimNames *v1.CustomResourceDefinitionNames ?
  connectionSecretKeys []string ?
  defaultCompositeDeletePolicy *text=v2.CompositeDeletePolicy ?
  defaultCompositionRef *v1.CompositionReference ?
  defaultCompositionRevisionSelector *v1.LabelSelector ?
  enforcedCompositionRef *v1.CompositionReference ?
  defaultCompositionUpdatePolicy *text=v2.UpdatePolicy ?
  versions []v1.CompositeResourceDefinitionVersion
  conversion *v1.CustomResourceConversion ?
  metadata *v1.CompositeResourceDefinitionSpecMetadata ?
v1.CompositeResourceDefinitionControllerStatus
  compositeResourceType v1.TypeReference ?
  compositeResourceClaimType v1.TypeReference ?
v1.CompositeResourceDefinitionStatus
  + v2.ConditionedStatus
  controllers v1.CompositeResourceDefinitionControllerStatus ?
v1.CompositeResourceDefinition
  + v1.TypeMeta
  metadata v1.ObjectMeta ?
  spec v1.CompositeResourceDefinitionSpec ?
  status v1.CompositeResourceDefinitionStatus ?
v1.Secret
  + v1.TypeMeta
  metadata v1.ObjectMeta ?
  immutable *bool ?
  data map[string]bytes ?
  stringData map[string]string ?
  type text=v1.SecretType ?
)";

// All types, which are made once and never destroyed.
class Types {
 public:
  Types() {
    GoType* at = nullptr;
    for (const absl::string_view line :
         absl::StrSplit(kTypes, '\n', absl::SkipEmpty())) {
      if (!absl::StartsWith(line, " ")) {
        at = Make(GoType::Kind::kStruct, line, line);
        continue;
      }
      const std::vector<absl::string_view> words =
          absl::StrSplit(line, ' ', absl::SkipEmpty());
      if (words[0] == "+") {
        const GoType* const embedded = Named(words[1]);
        for (GoType::Field field : embedded->fields) {
          field.embedded = embedded;
          at->fields.push_back(std::move(field));
        }
        continue;
      }
      GoType::Field field;
      field.name = std::string(words[0]);
      absl::string_view type = words[1];
      field.pointer = absl::ConsumePrefix(&type, "*");
      field.type = Spelled(type);
      field.omit_empty = words.size() > 2;
      at->fields.push_back(std::move(field));
    }
  }

  const GoType* Named(absl::string_view name) const {
    return by_spelling_.at(std::string(name));
  }

 private:
  GoType* Make(GoType::Kind kind, absl::string_view spelling,
               absl::string_view name) {
    all_.emplace_back();
    GoType* const type = &all_.back();
    type->kind = kind;
    type->name = std::string(name);
    by_spelling_[std::string(spelling)] = type;
    return type;
  }

  const GoType* Spelled(absl::string_view spelling) {
    const auto known = by_spelling_.find(std::string(spelling));
    if (known != by_spelling_.end()) return known->second;
    using Kind = GoType::Kind;
    absl::string_view rest = spelling;
    if (absl::ConsumePrefix(&rest, "text=")) {
      return Make(Kind::kText, spelling, rest);
    }
    if (absl::ConsumePrefix(&rest, "[]")) {
      GoType* const list = Make(Kind::kList, spelling, spelling);
      list->element = Spelled(rest);
      return list;
    }
    if (absl::ConsumePrefix(&rest, "map[string]")) {
      const GoType* const element = Spelled(rest);
      GoType* const map =
          Make(Kind::kMap, spelling, "map[string]" + element->name);
      map->element = element;
      return map;
    }
    static constexpr struct {
      absl::string_view spelling;
      Kind kind;
      absl::string_view name;
    } kSimple[] = {
        {"string", Kind::kText, "string"},  {"int32", Kind::kInt32, "int32"},
        {"int64", Kind::kInt64, "int64"},   {"bool", Kind::kBool, "bool"},
        {"bytes", Kind::kBytes, "[]uint8"}, {"time", Kind::kTime, "v1.Time"},
        {"any", Kind::kAny, "any"}};
    for (const auto& simple : kSimple) {
      if (simple.spelling == spelling) {
        return Make(simple.kind, spelling, simple.name);
      }
    }
    return nullptr;
  }

  std::deque<GoType> all_;
  std::map<std::string, GoType*> by_spelling_;
};

}  // namespace

absl::string_view GoType::ShortName() const {
  return absl::string_view(name).substr(name.find('.') + 1);
}

const GoType::Field* GoType::Find(absl::string_view field) const {
  const Field* other_case = nullptr;
  for (const Field& one : fields) {
    if (one.name == field) return &one;
    if (other_case == nullptr && absl::EqualsIgnoreCase(one.name, field)) {
      other_case = &one;
    }
  }
  return other_case;
}

const GoType& GoStruct(absl::string_view name) {
  static const auto* const types = new Types;
  return *types->Named(name);
}

}  // namespace fncache::text
