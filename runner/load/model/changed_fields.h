// SPDX-License-Identifier: Apache-2.0
// The fields that two pipelines of one composite want differently: for
// compositions that never settle, because each answer differs from the one
// before it.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_CHANGED_FIELDS_H_
#define FNCACHE_RUNNER_LOAD_MODEL_CHANGED_FIELDS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "proto/function_v1.pb.h"

namespace fncache::runner::load::model {

// The outcome of a pipeline that is written.
struct Wanted {
  apiextensions::fn::proto::v1::State desired;
  std::vector<apiextensions::fn::proto::v1::Condition> conditions;
};

// Names of fields and never their values, which may be secret: `resource
// bucket-0: spec.forProvider.region`, `composite: status.token`, `condition
// Healthy`, `the names of the desired resources`. In the order of names, `most`
// at most.
std::vector<std::string> ChangedFields(const Wanted& before,
                                       const Wanted& after, size_t most);

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_CHANGED_FIELDS_H_
