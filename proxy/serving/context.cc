#include "proxy/serving/context.h"

#include "common/method.h"

namespace fncache::proxy::serving {
namespace {

cache::key::KeyScope Scope(const settings::FunctionOptions& options,
                           const char* path) {
  return {options.name, path, options.generation, options.key,
          options.key_hash};
}

FlightTable::Options FlightOptions(const cache::PolicyOptions& policy) {
  FlightTable::Options options;
  options.max_released = policy.max_released;
  return options;
}

}  // namespace

ServingContext::ServingContext(
    cache::store::FunctionId id, const settings::FunctionOptions& options,
    cache::store::TieredStore* store, Clock* clock,
    transport::Upstream* upstream,
    const telemetry::FunctionInstruments& instruments)
    : id(id),
      options(options),
      policy(options.policy),
      v1(store->seed(), Scope(options, kRunFunctionV1), options.masks),
      v1beta1(store->seed(), Scope(options, kRunFunctionV1beta1),
              options.masks),
      store(*store),
      clock(*clock),
      upstream(*upstream),
      instruments(instruments),
      flights(FlightOptions(options.policy), instruments) {}

}  // namespace fncache::proxy::serving
