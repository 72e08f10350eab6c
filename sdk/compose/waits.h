// SPDX-License-Identifier: Apache-2.0
// Reports about resources that are held: for what they wait and why, the graph
// of dependencies, and circles in it.
#ifndef FNCACHE_SDK_COMPOSE_WAITS_H_
#define FNCACHE_SDK_COMPOSE_WAITS_H_

#include <string>

#include "sdk/compose/call.h"

namespace fncache::sdk {

// Texts of results, each at most kMaxTextBytes. Empty: no such result.
struct WaitReport {
  std::string dependencies;    // NORMAL, with the graph
  std::string never_resolves;  // WARNING
  std::string not_desired;     // WARNING
  std::string cycle;           // FATAL
};

// Reads the conditions of what held resources wait for. `held` and `waits` of
// the call's resources must be set.
WaitReport ReportWaits(Call* call);

// Whether nothing that the resource depends on explicitly is missing.
bool DependenciesMet(const ComposedResource& resource);

// The field of a desired document as results name it: `bucket.spec.region`.
std::string FieldName(const Node* field);

}  // namespace fncache::sdk

#endif  // FNCACHE_SDK_COMPOSE_WAITS_H_
