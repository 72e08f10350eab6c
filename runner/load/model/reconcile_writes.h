// SPDX-License-Identifier: Apache-2.0
// ReconcileWrites: the runner's writes to the cluster in one reconcile: first
// references, composed resources, references, status and conditions, in the
// runner's order.
//
// Used by one thread at a time, while the composite's mutex is locked.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_RECONCILE_WRITES_H_
#define FNCACHE_RUNNER_LOAD_MODEL_RECONCILE_WRITES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/protobuf/struct.pb.h"
#include "runner/engine/conditions.h"
#include "runner/engine/pipeline.h"
#include "runner/load/model/cluster.h"
#include "runner/load/model/random.h"
#include "runner/load/model/reconcile.h"
#include "runner/load/model/templates.h"

namespace fncache::runner::load::model {

class ReconcileWrites {
 public:
  // All must outlive it.
  ReconcileWrites(const Template& of, SimulatedCluster* cluster,
                  Reconcile* reconcile, absl::Time now)
      : template_(of), cluster_(*cluster), reconcile_(*reconcile), now_(now) {}

  // The writes before the first call of the functions.
  void FirstReferences();
  // The writes after an outcome that is OK, and after one that is not. Returns
  // the error of the reconcile. `foreign`: others wrote to the composite
  // meanwhile, so an update of it fails. `names` makes the names of new
  // resources.
  absl::Status Success(engine::PipelineOutcome outcome, bool foreign,
                       SplitMix64 names);
  absl::Status Failure(const engine::PipelineOutcome& outcome, bool foreign);

 private:
  void Update(google::protobuf::Struct updated, const Writer& writer);
  void Refer(const char* field, const std::string& name);
  void ApplyReferences(google::protobuf::Value references, bool any);
  void ApplyResource(const std::string& name,
                     google::protobuf::Struct* resource);
  void ApplyStatus(google::protobuf::Struct* desired);

  const Template& template_;
  SimulatedCluster& cluster_;
  Reconcile& reconcile_;
  const absl::Time now_;
};

// Whether the runner has reconciled it before.
bool HasFinalizer(const google::protobuf::Struct& composite);
bool IsReady(const google::protobuf::Struct& composite);
// The condition that says whether the breaker is closed.
engine::Condition Responsive(bool closed, int64_t generation, absl::Time now);

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_RECONCILE_WRITES_H_
