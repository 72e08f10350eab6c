// SPDX-License-Identifier: Apache-2.0
// Requirements: resources and schemas that a function asks for besides the
// state it is given, and the loop that calls it again until it has them. This
// file has the functions of that loop that call no function.
//
// A step is first called with the requirements of its Composition, called
// bootstrap. Then the requirements of the response are looked up, and the step
// is called again with both, until a response requires the same as the response
// before it.
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

// The selectors that are to be resolved, each with the name of its requirement,
// in the order of fetching.
struct Selectors {
  template <typename Selector>
  using Named = std::vector<std::pair<std::string, Selector>>;

  Named<apiextensions::fn::proto::v1::ResourceSelector> extra_resources;
  Named<apiextensions::fn::proto::v1::ResourceSelector> resources;
  Named<apiextensions::fn::proto::v1::SchemaSelector> schemas;
};

Selectors BootstrapSelectors(const PipelineStep& step);
// The selectors of a response, each of the three kinds in the order of names.
Selectors RequiredSelectors(
    const apiextensions::fn::proto::v1::Requirements& requirements);

// Everything that was fetched, by the names of the requirements.
struct Required {
  google::protobuf::Map<std::string, apiextensions::fn::proto::v1::Resources>
      extra_resources;
  google::protobuf::Map<std::string, apiextensions::fn::proto::v1::Resources>
      resources;
  google::protobuf::Map<std::string, apiextensions::fn::proto::v1::Schema>
      schemas;
  // The names in `resources` that asked for one object by name, which does not
  // exist. A request shows that like an empty list, yet the runner
  // distinguishes the two.
  std::set<std::string> not_found;
};

// Resolves all of `selectors` but the schemas. The last of two with one name
// counts.
Required FetchResources(const Selectors& selectors, const ObjectStore& objects);

// The most calls of a step: the first, and five more while its requirements
// change.
inline constexpr int kMaxCallsOfStep = 6;

// Decides, for the calls of one step, the required objects of each call, and
// which call is the last.
class RequirementsLoop {
 public:
  explicit RequirementsLoop(Required bootstrap);

  // Sets all that `request` has of required things to bootstrap's.
  void FillFirst(apiextensions::fn::proto::v1::RunFunctionRequest* request);

  // Records a response. Returns true if it is the step's last. Otherwise the
  // caller fetches its requirements, and then calls Fetched.
  bool IsLast(
      const apiextensions::fn::proto::v1::RunFunctionResponse& response);

  // Takes the objects for the last response's requirements. Returns false if
  // that response was the step's last after all, because the function had seen
  // all of it. Otherwise it returns true, with `request` filled for the next
  // call except for its context, which is the caller's task. FailedPrecondition
  // once the step has been called kMaxCallsOfStep times.
  absl::StatusOr<bool> Fetched(
      Required required,
      apiextensions::fn::proto::v1::RunFunctionRequest* request);

  // The number of responses so far.
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
