// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/context.h"

namespace fncache::proxy::serving {
namespace {

FlightTable::Options FlightOptions(const cache::PolicyOptions& policy) {
  FlightTable::Options options;
  options.max_released = policy.max_released;
  return options;
}

}  // namespace

ServingContext::ServingContext(
    cache::FunctionId id, const settings::FunctionOptions& options,
    cache::store::TieredStore* store, Clock* clock,
    transport::Upstream* upstream,
    const telemetry::FunctionInstruments& instruments, TraceShared* traces,
    insight::explain::MissMemory* misses, telemetry::AccessLog* access_log,
    Tuning* tuning)
    : id(id),
      name(options.name),
      states(options, store, tuning == nullptr ? nullptr : &tuning->evidence),
      clock(*clock),
      upstream(*upstream),
      instruments(instruments),
      flights(FlightOptions(options.policy), instruments),
      log(options.name),
      tuning_log(options.name),
      traces(traces),
      misses(misses),
      access_log(access_log),
      tuning(tuning) {}

}  // namespace fncache::proxy::serving
