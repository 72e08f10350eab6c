// What a step's function requires besides its state, and how often it is called
// for that: the parts of the requirements loop that need no function.
//
// A step is called with what its Composition asks for up front (bootstrap).
// What the response requires is resolved, and the step is called again with
// bootstrap and that, until a response requires what the one before it did.
//
// RequirementsLoop is used by one thread at a time; the rest are pure
// functions.
#ifndef FNCACHE_RUNNER_ENGINE_REQUIREMENTS_H_
#define FNCACHE_RUNNER_ENGINE_REQUIREMENTS_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/function_v1.pb.h"
#include "runner/engine/composition.h"
#include "runner/engine/object_store.h"

namespace fncache::runner::engine {

// What is to be fetched, by requirement name, in the order of fetching.
struct Selectors {
  template <typename Selector>
  using Named = std::vector<std::pair<std::string, Selector>>;

  Named<apiextensions::fn::proto::v1::ResourceSelector> extra_resources;
  Named<apiextensions::fn::proto::v1::ResourceSelector> resources;
  Named<apiextensions::fn::proto::v1::SchemaSelector> schemas;
};

Selectors BootstrapSelectors(const PipelineStep& step);
// Each of the three kinds in the order of its names.
Selectors RequiredSelectors(
    const apiextensions::fn::proto::v1::Requirements& requirements);

// What was fetched, by requirement name.
struct Required {
  google::protobuf::Map<std::string, apiextensions::fn::proto::v1::Resources>
      extra_resources;
  google::protobuf::Map<std::string, apiextensions::fn::proto::v1::Resources>
      resources;
  google::protobuf::Map<std::string, apiextensions::fn::proto::v1::Schema>
      schemas;
  // Those of `resources` that were asked by name and not found. A request shows
  // them like an empty list, yet the runner tells the two apart.
  std::set<std::string> not_found;
};

// Resolves all of `selectors` but the schemas. Of two with one name the last
// counts.
Required FetchResources(const Selectors& selectors, const ObjectStore& objects);

// InvalidArgument where `selector`'s apiVersion cannot be one: the runner fails
// then, whether it has schemas or not.
absl::Status CheckSchemaSelector(
    const apiextensions::fn::proto::v1::SchemaSelector& selector);

// The calls of one step.
class RequirementsLoop {
 public:
  explicit RequirementsLoop(Required bootstrap);

  // Sets all that `request` has of required things to bootstrap's.
  void FillFirst(apiextensions::fn::proto::v1::RunFunctionRequest* request);

  // Takes note of a response. True if it is the step's last; else fetch what it
  // requires, then call Fetched.
  bool IsLast(
      const apiextensions::fn::proto::v1::RunFunctionResponse& response);

  // Given what the last response's requirements resolved to: false if that
  // response was the step's last after all, as the function had seen all of
  // it; true with `request` filled for the next call, its context being left to
  // the caller. FailedPrecondition if there have been calls enough.
  absl::StatusOr<bool> Fetched(
      Required required,
      apiextensions::fn::proto::v1::RunFunctionRequest* request);

  // How many responses there were.
  int calls() const { return calls_; }

 private:
  bool WasSent(const Required& required) const;

  const Required bootstrap_;
  int calls_ = 0;
  // The requirements of the last response, serialized with their maps ordered;
  // nullopt if it had none.
  absl::optional<std::string> requirements_;
};

}  // namespace fncache::runner::engine

#endif  // FNCACHE_RUNNER_ENGINE_REQUIREMENTS_H_
