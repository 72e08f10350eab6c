// SPDX-License-Identifier: Apache-2.0
// Additions: fields and values that requests do not have and could have. A
// probe adds them, since a function may wait for a field that is not there yet.
//
//   other requests of the trace      values of theirs, fields of theirs
//   the step's input                 paths and names that it spells
//                                    (spelled_paths.h), what it compares with
//   OpenAPI schemas, where given     fields of the object's kind
//   Kubernetes and Crossplane        deletionTimestamp, external-name...
//
// Thread-compatible.
#ifndef FNCACHE_RUNNER_PROBE_ADDITIONS_H_
#define FNCACHE_RUNNER_PROBE_ADDITIONS_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"

namespace fncache::runner::probe {

// Below an object: a key, or (nullopt) the elements of a list.
using RelativePath = std::vector<absl::optional<std::string>>;

struct Addition {
  std::string object;  // as masks spell it
  RelativePath path;
  std::vector<google::protobuf::Value> values;  // texts, numbers, booleans
  bool guessed = false;  // a name that may be anything, in a likely object
};

// Values of a field that are tried at most.
inline constexpr size_t kMostLikely = 4;

// Values that requests have had. Bounded: later ones are not kept.
class SeenValues {
 public:
  void Add(apiextensions::fn::proto::v1::RunFunctionRequest request);
  std::vector<Addition> Additions() const;
  // Names of the composed resources that were observed.
  const std::set<std::string>& Resources() const { return resources_; }

 private:
  void AddBelow(const google::protobuf::Value& value, const std::string& object,
                RelativePath* path);

  std::map<std::pair<std::string, RelativePath>,
           std::vector<google::protobuf::Value>>
      values_;
  std::set<std::string> resources_;
};

// Knowledge from elsewhere than the probed requests.
struct Knowledge {
  SeenValues seen;
  // Schemas of objects (`properties`...), of which each is for the kind that it
  // names in x-kubernetes-group-version-kind, or for all.
  std::vector<google::protobuf::Struct> schemas;
};

// For these requests, in order of how much speaks for them. A value that all
// requests have is among them, too: it costs nothing to set it once more.
std::vector<Addition> AdditionsFor(
    const std::vector<apiextensions::fn::proto::v1::RunFunctionRequest>&
        requests,
    const Knowledge& knowledge);

// The request as it would be if all its objects were ready: with conditions
// Ready, Synced and Available that are True and of the newest generation, and
// with the numbers and phases of Kubernetes' own kinds. A function that finds
// something not ready often looks no further.
apiextensions::fn::proto::v1::RunFunctionRequest MadeReady(
    apiextensions::fn::proto::v1::RunFunctionRequest request);

}  // namespace fncache::runner::probe

#endif  // FNCACHE_RUNNER_PROBE_ADDITIONS_H_
