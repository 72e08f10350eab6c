// SPDX-License-Identifier: Apache-2.0
// The paths that the input of a step spells: a template, a program or a list of
// patches seems to read them. A probe tries those that no request has.
//
//   {{ .observed.resources.vpc.resource.status.atProvider.vpcId }}   templates
//   {{ dig "status" "atProvider" "vpcId" "" $vpc }}
//   vpc["status"].get("atProvider", {}).get("vpcId")                 Python
//   ocds.vpc.Resource.status?.atProvider?.vpcId == "x"               KCL
//   fromFieldPath: metadata.annotations[example.org/zone]            patches
//
// Texts are scanned, not parsed. A wrong path costs the probe only one name to
// try.
//
// Pure functions; thread-safe.
#ifndef FNCACHE_RUNNER_PROBE_SPELLED_PATHS_H_
#define FNCACHE_RUNNER_PROBE_SPELLED_PATHS_H_

#include <string>
#include <vector>

#include "google/protobuf/struct.pb.h"

namespace fncache::runner::probe {

struct SpelledPath {
  std::vector<std::string> names;
  // Texts and numbers behind it: it seems to be compared with them.
  std::vector<google::protobuf::Value> values;
};

// The most paths. The rest of the input is not scanned.
inline constexpr size_t kMostSpelledPaths = 2000;

// Searches all texts in the input, and its keys; each path once, in their
// order.
std::vector<SpelledPath> SpelledPaths(const google::protobuf::Struct& input);

}  // namespace fncache::runner::probe

#endif  // FNCACHE_RUNNER_PROBE_SPELLED_PATHS_H_
