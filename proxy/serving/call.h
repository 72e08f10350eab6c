// RunFunction calls of one function: digest -> look-up -> hit, or flight ->
// upstream -> policy -> fill -> answer. The rooms a request passes, in order,
// are in call.cc; who calls the function when many miss at once is flight.h's.
//
// Every call of methods v1 and v1beta1 comes here, those that are not looked up
// (bypass) too; each is answered once, with `cache-status` in its headers,
// unless its caller left before.
//
// Thread-safe: a call runs on its worker's thread; workers share the flights.
// What is given to the constructor outlives the handler, and the handler
// outlives the listener that it answers for.
#ifndef FNCACHE_PROXY_SERVING_CALL_H_
#define FNCACHE_PROXY_SERVING_CALL_H_

#include <memory>
#include <vector>

#include "cache/key/digest.h"
#include "cache/policy.h"
#include "cache/store/tiered_store.h"
#include "common/clock.h"
#include "proxy/serving/flight.h"
#include "proxy/settings/options.h"
#include "proxy/transport/incoming_call.h"

namespace fncache::proxy::telemetry {
class FunctionInstruments;
}  // namespace fncache::proxy::telemetry

namespace fncache::proxy::transport {
class Upstream;
}  // namespace fncache::proxy::transport

namespace fncache::proxy::serving {

class RunFunctionHandler final : public transport::CallHandler {
 public:
  RunFunctionHandler(cache::store::FunctionId id,
                     const settings::FunctionOptions& options,
                     cache::store::TieredStore* store, Clock* clock,
                     transport::Upstream* upstream,
                     const telemetry::FunctionInstruments* instruments);
  ~RunFunctionHandler() override;

  void StartRunFunction(transport::IncomingCallPtr call) override;

  // The flights as they are now; empty once no call is left.
  FlightTable::Stats GetFlights() const { return flights_.GetStats(); }

 private:
  friend class RunFunctionCall;
  friend class UpstreamRun;

  const cache::store::FunctionId id_;
  const settings::FunctionOptions options_;
  const cache::Policy policy_;
  const cache::key::Digester v1_;
  const cache::key::Digester v1beta1_;
  cache::store::TieredStore* const store_;
  Clock* const clock_;
  transport::Upstream* const upstream_;
  const telemetry::FunctionInstruments* const instruments_;
  FlightTable flights_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_CALL_H_
