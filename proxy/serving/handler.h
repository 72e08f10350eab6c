// SPDX-License-Identifier: Apache-2.0
// FunctionHandler: serves all calls of one function. RunFunction, of either
// version, is answered through the cache (call.h), everything else is forwarded
// as a stream (stream.h).
//
// Thread-safe: a call runs on its worker's thread; workers share the flights.
// The objects that are given to the constructor outlive the handler, and the
// handler outlives its listener's calls.
#ifndef FNCACHE_PROXY_SERVING_HANDLER_H_
#define FNCACHE_PROXY_SERVING_HANDLER_H_

#include <vector>

#include "proxy/serving/context.h"
#include "proxy/serving/flight.h"
#include "proxy/serving/mask_use.h"
#include "proxy/telemetry/function_facts.h"
#include "proxy/transport/incoming_call.h"

namespace fncache::proxy::serving {

class FunctionHandler final : public transport::CallHandler {
 public:
  FunctionHandler(cache::FunctionId id,
                  const settings::FunctionOptions& options,
                  cache::store::TieredStore* store, Clock* clock,
                  transport::Upstream* upstream,
                  const telemetry::FunctionInstruments& instruments,
                  insight::trace::TraceWriter* trace = nullptr,
                  insight::explain::MissMemory* misses = nullptr,
                  telemetry::AccessLog* access_log = nullptr)
      : context_(id, options, store, clock, upstream, instruments, trace,
                 misses, access_log) {}

  void StartCall(transport::IncomingCallPtr call) override;

  // The flights as they are now; empty once no call is left.
  FlightTable::Stats GetFlights() const { return context_.flights.GetStats(); }
  // The masks in force, and their use so far.
  std::vector<telemetry::MaskUse> Masks() const {
    return UseOfMasks(context_.states.Newest()->options.masks);
  }

 private:
  ServingContext context_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_HANDLER_H_
