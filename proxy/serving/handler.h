// SPDX-License-Identifier: Apache-2.0
// FunctionHandler: serves all calls of one function. The cache answers
// RunFunction, of either version (call.h). Calls of other methods are forwarded
// as streams (stream.h).
//
// Thread-safe: a call runs on its worker's thread; workers share the flights.
// The constructor's arguments outlive the handler, and the handler outlives its
// listener's calls.
#ifndef FNCACHE_PROXY_SERVING_HANDLER_H_
#define FNCACHE_PROXY_SERVING_HANDLER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "proxy/serving/context.h"
#include "proxy/serving/mask_use.h"
#include "proxy/telemetry/function_facts.h"
#include "proxy/telemetry/shadow_report.h"
#include "proxy/telemetry/tune_report.h"
#include "proxy/transport/incoming_call.h"

namespace fncache::proxy::serving {

class FunctionHandler final : public transport::CallHandler {
 public:
  FunctionHandler(cache::FunctionId id,
                  const settings::FunctionOptions& options,
                  cache::store::TieredStore* store, Clock* clock,
                  transport::Upstream* upstream,
                  const telemetry::FunctionInstruments& instruments,
                  TraceShared* traces = nullptr,
                  insight::explain::MissMemory* misses = nullptr,
                  telemetry::AccessLog* access_log = nullptr,
                  Tuning* tuning = nullptr)
      : context_(id, options, store, clock, upstream, instruments, traces,
                 misses, access_log, tuning) {}

  void StartCall(transport::IncomingCallPtr call) override;
  void OnRefused(transport::Refusal why, const grpc::Status& status) override;
  void OnAnswered(const grpc::Status& status) override;
  void OnPaused() override;

  // Calls whose requests are complete from now on have these settings. Name,
  // listen and upstream must not change. Any thread.
  void Replace(const settings::FunctionOptions& options);

  // The flights as they are now; empty once no call is left.
  FlightTable::Stats GetFlights() const { return context_.flights.GetStats(); }
  // The masks in force, and their use so far.
  std::vector<telemetry::MaskUse> Masks() const {
    return UseOfMasks(context_.states.Newest()->options.masks);
  }

  const std::string& name() const { return context_.name; }
  // The settings of calls that arrive now.
  FunctionStatePtr State() const { return context_.states.Newest(); }
  // The use that a call with the request of the entry may make of it at `now`.
  cache::Freshness FreshnessOf(const cache::key::Key& key,
                               const cache::store::Entry& entry,
                               absl::Time now) const {
    return State()->FreshnessForItself(key, entry, now);
  }
  // The key of the entry, in any tier, that answers this decompressed request,
  // whose plain key is `plain`: that key, or with `vary: on` one by hint.
  cache::key::Key KeyOfHit(Method method, absl::string_view request,
                           const cache::key::Key& plain);

  // A key, or everything, was purged: closes its open flights to later callers,
  // and forgets its evidence. Returns the number of those flights.
  size_t DetachFlight(const cache::key::Key& key) {
    if (context_.tuning != nullptr) context_.tuning->evidence.Forget(key);
    const size_t closed = context_.flights.Detach(key);
    // Flights have plain keys. Which requests have this key is not known.
    return closed > 0 || !State()->options.varies()
               ? closed
               : context_.flights.DetachAll();
  }
  size_t DetachFlights() {
    if (context_.tuning != nullptr) {
      context_.tuning->evidence.ForgetFunction(context_.id);
    }
    return context_.flights.DetachAll();
  }

  // How many keys are not refreshed for now, because their refresh failed.
  size_t BackingOff() {
    return context_.refreshes.Waiting(context_.clock.Now());
  }

  // The findings of `mode: shadow` so far; absent in another mode. It takes
  // some microseconds, and is for people and scrapes.
  absl::optional<telemetry::ShadowReport> Shadow() const;

  // The tuning so far. The numbers of keys and steps are at most 100 ms old.
  // The figures alone cost less.
  telemetry::TuneReport Tune() const;
  telemetry::TuneFigures TuneFigures() const;
  // The hints of its responses, and the hits by them.
  telemetry::VaryFigures VaryFigures() const { return context_.hints.Read(); }

 private:
  ServingContext context_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_HANDLER_H_
