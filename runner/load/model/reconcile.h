// SPDX-License-Identifier: Apache-2.0
// Reconcile: the data of one reconcile, from the worker that takes it to its
// end. The reconciler fills it in, the queue counts it.
//
// Plain data.
#ifndef FNCACHE_RUNNER_LOAD_MODEL_RECONCILE_H_
#define FNCACHE_RUNNER_LOAD_MODEL_RECONCILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "google/protobuf/struct.pb.h"
#include "runner/load/model/composite_state.h"
#include "runner/load/model/reports.h"

namespace fncache::runner::load::model {

struct Reconcile {
  PipelineStart start;

  // Before the functions are called.
  google::protobuf::Struct composite;  // as the steps observe it
  bool first = false;                  // it writes the finalizer
  bool responsive = true;
  bool compared = false;  // with the pipeline before
  uint64_t foreign_writes = 0;
  uint64_t version = 0;

  // Results of the functions.
  std::vector<Seed> seeds;
  bool differs = false;  // from the last pipeline's desired state
  bool as_before = false;
  std::vector<std::string> changing;  // the fields that differ
  bool ready = false;
  bool unmarked = false;
  absl::Duration annotated = absl::ZeroDuration();  // poll interval

  // Results of its writes.
  int writes = 0;
  uint64_t deleted = 0;              // composed resources
  std::vector<int> costs;            // of the events of its writes
  std::vector<std::string> created;  // names of resources with a provider
  bool unchanged = false;            // it observed the current state
  bool pending = false;              // providers write later
  size_t composed = 0;

  void AddWrite(int cost) {
    ++writes;
    costs.push_back(cost);
  }
};

}  // namespace fncache::runner::load::model

#endif  // FNCACHE_RUNNER_LOAD_MODEL_RECONCILE_H_
