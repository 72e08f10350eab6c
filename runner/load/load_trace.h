// SPDX-License-Identifier: Apache-2.0
// LoadTrace: writes the calls of a load to a trace, as the daemon writes those
// that it serves.
//
// Thread-safe.
#ifndef FNCACHE_RUNNER_LOAD_LOAD_TRACE_H_
#define FNCACHE_RUNNER_LOAD_LOAD_TRACE_H_

#include <map>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "cache/key/digest.h"
#include "common/mutex.h"
#include "insight/trace/writer.h"
#include "runner/engine/pipeline.h"
#include "runner/load/measure.h"
#include "runner/load/model/reports.h"

namespace fncache::runner::load {

enum class Phase { kSettle, kWarmup, kMeasure };

const char* PhaseName(Phase phase);

// The time until the answer arrived, not until a thread continued with it.
absl::Duration LatencyOf(const engine::CallReport& report);

class LoadTrace {
 public:
  // `writer` must outlive it.
  explicit LoadTrace(insight::trace::TraceWriter* writer) : writer_(*writer) {}

  // `phase`: that of the run.
  void Add(const model::PipelineStart& start, const engine::CallReport& report,
           Outcome outcome, Phase phase);

 private:
  // A function's digester, made with its first call.
  const cache::key::Digester* DigesterOf(const std::string& function);

  insight::trace::TraceWriter& writer_;
  Mutex mutex_;
  std::map<std::string, std::unique_ptr<const cache::key::Digester>> digesters_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_LOAD_TRACE_H_
