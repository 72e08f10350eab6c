// SPDX-License-Identifier: Apache-2.0
// The paths that the input of a step spells: what a template, a program or a
// list of patches seems to read. Of these a probe tries those that no request
// has.
//
//   {{ .observed.resources.vpc.resource.status.atProvider.vpcId }}   templates
//   {{ dig "status" "atProvider" "vpcId" "" $vpc }}
//   vpc["status"].get("atProvider", {}).get("vpcId")                 Python
//   ocds.vpc.Resource.status?.atProvider?.vpcId == "x"               KCL
//   fromFieldPath: metadata.annotations[example.org/zone]            patches
//
// Texts are scanned, not parsed: what is taken for a path and is none costs a
// probe a name to try, no more.
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
  // What it seems to be compared with: texts and numbers that stand behind it.
  std::vector<google::protobuf::Value> values;
};

// Beyond that the rest of the input is not looked at.
inline constexpr size_t kMostSpelledPaths = 2000;

// Of all texts in the input, and of its keys; each path once, in their order.
std::vector<SpelledPath> SpelledPaths(const google::protobuf::Struct& input);

}  // namespace fncache::runner::probe

#endif  // FNCACHE_RUNNER_PROBE_SPELLED_PATHS_H_
