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
  // Of a Secret; absent = none.
  struct SecretRef {
    std::string secret_namespace;
    std::string name;
  };
  absl::optional<SecretRef> secret_ref;
};

struct PipelineStep {
  std::string name;
  std::string function;
  // As written; an error once the step runs, if it is no object. Absent where
  // it is missing or null.
  absl::optional<google::protobuf::Value> input;
  std::vector<StepCredentials> credentials;
  // What is fetched before the first call, by requirement name, as written.
  std::vector<
      std::pair<std::string, apiextensions::fn::proto::v1::ResourceSelector>>
      required_resources;
  std::vector<
      std::pair<std::string, apiextensions::fn::proto::v1::SchemaSelector>>
      required_schemas;
};

struct Composition {
  std::string name;
  std::map<std::string, std::string> labels;
  // spec.compositeTypeRef
  std::string composite_api_version;
  std::string composite_kind;
  std::string mode;
  // spec.writeConnectionSecretsToNamespace; "" = none.
  std::string connection_secrets_namespace;
  std::vector<PipelineStep> steps;
};

// Fields that no Composition has are ignored; step names may repeat.
// InvalidArgument names the field that is of the wrong type, such as
// `spec.pipeline[2].functionRef.name`.
absl::StatusOr<Composition> ParseComposition(
    const google::protobuf::Struct& object);

// One field of spec.compositeTypeRef, `kind` or `apiVersion`, beside the same
// of the composite that is to be rendered: InvalidArgument if they differ.
absl::Status CheckCompositeType(absl::string_view field,
                                absl::string_view of_composition,
                                absl::string_view of_composite);

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_COMPOSITION_H_
