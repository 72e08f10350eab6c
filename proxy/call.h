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
#ifndef FNCACHE_PROXY_CALL_H_
#define FNCACHE_PROXY_CALL_H_

#include <memory>
#include <vector>

#include "cache/clock.h"
#include "cache/digest.h"
#include "cache/policy.h"
#include "cache/tiered_store.h"
#include "proxy/flight.h"
#include "proxy/incoming_call.h"
#include "proxy/options.h"

namespace fncache::proxy {

class FunctionInstruments;
class Upstream;

class RunFunctionHandler final : public CallHandler {
 public:
  RunFunctionHandler(cache::FunctionId id, const FunctionOptions& options,
                     cache::TieredStore* store, cache::Clock* clock,
                     Upstream* upstream,
                     const FunctionInstruments* instruments);
  ~RunFunctionHandler() override;

  void StartRunFunction(IncomingCallPtr call) override;

  // The flights as they are now; empty once no call is left.
  FlightTable::Stats GetFlights() const { return flights_.GetStats(); }

 private:
  friend class RunFunctionCall;
  friend class UpstreamRun;

  const cache::FunctionId id_;
  const FunctionOptions options_;
  const cache::Policy policy_;
  const cache::Digester v1_;
  const cache::Digester v1beta1_;
  cache::TieredStore* const store_;
  cache::Clock* const clock_;
  Upstream* const upstream_;
  const FunctionInstruments* const instruments_;
  FlightTable flights_;
};

}  // namespace fncache::proxy

#endif  // FNCACHE_PROXY_CALL_H_
