// SPDX-License-Identifier: Apache-2.0
// OtherWriters: all writers to the clusters beside the runner: providers that
// make resources ready, people and controllers (churn), and a provider whose
// condition flaps. Resyncs, which write nothing, are here, too, since the same
// agenda runs them.
//
// Thread-safe. Each composite's times follow from the seed and its index.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_OTHER_WRITERS_H_
#define FNCACHE_RUNNER_LOAD_MODEL_OTHER_WRITERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "runner/load/model/agenda.h"
#include "runner/load/model/composite_state.h"
#include "runner/load/model/model_options.h"
#include "runner/load/model/random.h"
#include "runner/load/model/reconcile_queue.h"

namespace fncache::runner::load::model {

class OtherWriters {
 public:
  // All must outlive it.
  OtherWriters(const ModelOptions& options,
               std::vector<CompositeState>* composites, ReconcileQueue* queue,
               Agenda* agenda)
      : options_(options),
        composites_(*composites),
        queue_(*queue),
        agenda_(*agenda) {}

  // Begins the resyncs and the churn of a composite.
  void Begin(int i, absl::Time now);
  // A resource was created: its provider writes until it is ready.
  void BeginProvider(int i, const std::string& resource, absl::Time created) {
    ScheduleProvider(i, resource, created, 1);
  }
  // Begins a flapping of the composites that the event chooses.
  void BeginFlapping(const ScenarioEvent& event, absl::Time now);

 private:
  void ScheduleProvider(int i, const std::string& resource, absl::Time created,
                        int write);
  void ProviderWrites(int i, const std::string& resource, absl::Time created,
                      int write);
  void ScheduleResync(int i, absl::Duration after, SplitMix64 random);
  void ScheduleChurn(int i, int kind, double per_hour, absl::Time after,
                     SplitMix64 random);
  void ChurnWrite(int i, int kind, uint64_t which);
  void Flap(int i, absl::Time next, absl::Time end, absl::Duration gap,
            bool up);

  const ModelOptions& options_;
  std::vector<CompositeState>& composites_;
  ReconcileQueue& queue_;
  Agenda& agenda_;
};

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_OTHER_WRITERS_H_
