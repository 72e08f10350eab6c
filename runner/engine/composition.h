// SPDX-License-Identifier: Apache-2.0
// Composition: the pipeline that a Composition object describes, in the form
// that the engine runs. Parsed once, then shared by any number of renders.
//
// Immutable once made.
#ifndef FNCACHE_RUNNER_ENGINE_COMPOSITION_H_
#define FNCACHE_RUNNER_ENGINE_COMPOSITION_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"

namespace fncache::runner::engine {

struct StepCredentials {
  std::string name;
  std::string source;  // only `Secret` gives any
  // The Secret that they come from, if there is one.
  struct SecretRef {
    std::string secret_namespace;
    std::string name;
  };
  absl::optional<SecretRef> secret_ref;
};

struct PipelineStep {
  std::string name;
  std::string function;
  // As it was written; absent where it is missing or null. It should be an
  // object, but if it is not, that is an error only once the step runs.
  absl::optional<google::protobuf::Value> input;
  std::vector<StepCredentials> credentials;
  // Resources and schemas that are fetched before the first call, each with the
  // name of its requirement, in the order in which they are written.
  std::vector<
      std::pair<std::string, apiextensions::fn::proto::v1::ResourceSelector>>
      required_resources;
  std::vector<
      std::pair<std::string, apiextensions::fn::proto::v1::SchemaSelector>>
      required_schemas;
  // All of the step's requirements as they were written, for the
  // CompositionRevision; absent where they are missing or null.
  absl::optional<google::protobuf::Value> requirements;
};

struct Composition {
  std::string name;
  std::string uid;
  // Absent where they are missing or null, which gives another hash than an
  // empty map does.
  absl::optional<std::map<std::string, std::string>> labels;
  absl::optional<std::map<std::string, std::string>> annotations;
  // spec.compositeTypeRef
  std::string composite_api_version;
  std::string composite_kind;
  std::string mode;
  // spec.writeConnectionSecretsToNamespace; absent where it is missing or null.
  absl::optional<std::string> connection_secrets_namespace;
  std::vector<PipelineStep> steps;
};

// Reads a Composition. Fields that no Composition has are ignored, and step
// names may repeat. InvalidArgument names the field that is of the wrong type,
// such as `spec.pipeline[2].functionRef.name`.
absl::StatusOr<Composition> ParseComposition(
    const google::protobuf::Struct& object);

// Finds mistakes that the reference runner overlooks, since it ignores fields
// that it does not know and takes a missing pipeline for an empty one.
// InvalidArgument where a field of spec is called almost like one that is
// needed and missing, or where a Composition of mode Pipeline has no pipeline
// at all. (An empty list is a pipeline.)
absl::Status CheckFieldsOfSpec(const google::protobuf::Struct& object);

// Compares one field of spec.compositeTypeRef, `kind` or `apiVersion`, with
// that of the composite that is to be rendered. InvalidArgument if they differ.
absl::Status CheckCompositeType(absl::string_view field,
                                absl::string_view of_composition,
                                absl::string_view of_composite);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_COMPOSITION_H_
