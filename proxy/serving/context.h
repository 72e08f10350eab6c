// SPDX-License-Identifier: Apache-2.0
// ServingContext: what the calls of one function share. The function's handler
// makes it and hands it to each call, upstream run and stream.
//
// Thread-safe: each member is constant or thread-safe itself. It lives until no
// call of the function is left. The objects that it refers to live longer.
#ifndef FNCACHE_PROXY_SERVING_CONTEXT_H_
#define FNCACHE_PROXY_SERVING_CONTEXT_H_

#include <string>

#include "cache/observer.h"
#include "common/clock.h"
#include "insight/explain/miss_memory.h"
#include "insight/trace/writer.h"
#include "proxy/serving/failure.h"
#include "proxy/serving/flight.h"
#include "proxy/serving/function_state.h"
#include "proxy/serving/hint_table.h"
#include "proxy/serving/refresh_backoff.h"
#include "proxy/serving/tuning.h"
#include "proxy/serving/tuning_log.h"
#include "proxy/serving/worker_shared.h"
#include "proxy/settings/options.h"
#include "proxy/telemetry/access_log.h"
#include "proxy/telemetry/instruments.h"

namespace fncache::proxy::transport {
class Upstream;
}  // namespace fncache::proxy::transport

namespace fncache::proxy::serving {

using TraceShared = WorkerShared<insight::trace::TraceWriter>;

struct ServingContext {
  ServingContext(cache::FunctionId id, const settings::FunctionOptions& options,
                 cache::store::TieredStore* store, Clock* clock,
                 transport::Upstream* upstream,
                 const telemetry::FunctionInstruments& instruments,
                 TraceShared* traces, insight::explain::MissMemory* misses,
                 telemetry::AccessLog* access_log = nullptr,
                 Tuning* tuning = nullptr);

  const cache::FunctionId id;
  const std::string name;
  FunctionStates states;
  Clock& clock;
  transport::Upstream& upstream;
  const telemetry::FunctionInstruments& instruments;
  FlightTable flights;
  HintTable hints;
  RefreshBackoff refreshes;
  FailureLog log;
  TuningLog tuning_log;
  // The writer, which exists while calls are traced. Null: tracing is off for
  // good.
  TraceShared* const traces;
  // Null: misses are not explained.
  insight::explain::MissMemory* const misses;
  // Null: calls have no lines.
  telemetry::AccessLog* const access_log;
  // Null: nothing is tuned.
  Tuning* const tuning;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_CONTEXT_H_
