// SPDX-License-Identifier: Apache-2.0
// CompositeState: one composite resource in its simulated cluster, and the
// memory that its reconciles share. The state of its queue is in
// reconcile_queue.h.
//
// Its mutex guards all of it.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_COMPOSITE_STATE_H_
#define FNCACHE_RUNNER_LOAD_MODEL_COMPOSITE_STATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "common/mutex.h"
#include "proto/function_v1.pb.h"
#include "runner/engine/pipeline.h"
#include "runner/load/model/changed_fields.h"
#include "runner/load/model/cluster.h"

namespace fncache::runner::load::model {

// A requirement of a step in the composite's last reconcile.
struct Seed {
  int step = 0;
  std::string name;
  apiextensions::fn::proto::v1::ResourceSelector selector;
};

struct CompositeState {
  Mutex mutex;
  std::unique_ptr<SimulatedCluster> cluster ABSL_GUARDED_BY(mutex);
  std::vector<Seed> seeds ABSL_GUARDED_BY(mutex);
  // Counts the writes to the XR by others than its reconciler.
  uint64_t foreign_writes ABSL_GUARDED_BY(mutex) = 0;
  int pending_provider ABSL_GUARDED_BY(mutex) = 0;  // resources
  // The last outcome that changed nothing, and the version at that time.
  absl::optional<uint64_t> noop_digest ABSL_GUARDED_BY(mutex);
  uint64_t noop_version ABSL_GUARDED_BY(mutex) = 0;
  // The digest of the desired state of the pipeline before.
  absl::optional<uint64_t> wanted_digest ABSL_GUARDED_BY(mutex);
  // The outcome of the pipeline before. It is kept for the last rounds of a
  // composite that does not settle.
  std::unique_ptr<Wanted> wanted ABSL_GUARDED_BY(mutex);

  // The state that RunSettled observes, at a version; null if it is not kept.
  std::shared_ptr<const engine::SharedObserved> unpacked ABSL_GUARDED_BY(mutex);
  uint64_t unpacked_version ABSL_GUARDED_BY(mutex) = 0;
};

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_COMPOSITE_STATE_H_
