// SPDX-License-Identifier: Apache-2.0
// Refresh: asks the function behind an answer that is served past its time
// (stale_while_revalidate), with the request that met it: a flight that has no
// client. There is one for each key; who misses the key meanwhile joins it.
//
// It has 2 minutes, and a key whose refresh failed is left alone for 1 to 30 s.
// A graceful stop does not wait for it.
//
// It lives on the worker of the call that it is made for, and for as long as
// its upstream call.
#ifndef FNCACHE_PROXY_SERVING_REFRESH_H_
#define FNCACHE_PROXY_SERVING_REFRESH_H_

#include <memory>

#include "absl/time/time.h"
#include "cache/key/key.h"
#include "cache/store/tiered_store.h"
#include "http2/fields.h"
#include "proxy/serving/context.h"
#include "proxy/serving/flight.h"
#include "proxy/serving/function_state.h"
#include "proxy/serving/upstream_run.h"
#include "proxy/transport/incoming_call.h"
#include "proxy/transport/inflight.h"
#include "proxy/transport/message.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::serving {

class Refresh final : public RunOwner,
                      public std::enable_shared_from_this<Refresh> {
 public:
  // Refreshes the key of `call`, which was found past its time, unless that is
  // not needed or not possible: then null. From now on misses of the key wait
  // for it, so Launch must follow; until then `call` may end.
  static std::shared_ptr<Refresh> Open(ServingContext* context,
                                       FunctionStatePtr state,
                                       cache::store::TieredStore* store,
                                       const cache::key::Key& key,
                                       const transport::IncomingCall& call);

  // Calls the function. Once.
  void Launch();

  void OnAnswer(transport::UnaryCall& call, const transport::Message& message,
                bool stored) override;

 private:
  Refresh(ServingContext* context, FunctionStatePtr state,
          cache::store::TieredStore* store,
          const std::shared_ptr<FlightCaller>& seat,
          const transport::IncomingCall& call,
          transport::Inflight::Unattended unattended);

  ServingContext& context_;
  const FunctionStatePtr state_;  // the call's
  cache::store::TieredStore& store_;
  const std::shared_ptr<FlightCaller> seat_;
  transport::Worker* const worker_;
  const http2::Fields fields_;
  const absl::Time arrived_;
  transport::Message request_;        // until Launch
  std::shared_ptr<UpstreamRun> run_;  // from Launch until OnAnswer
  transport::Inflight::Unattended unattended_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_REFRESH_H_
