// SPDX-License-Identifier: Apache-2.0
// Refresh: calls the function after an answer past its time
// (stale_while_revalidate), with the same request. It opens a flight without a
// caller, one for each key; misses of the key join it. Where other replicas
// fill the lower tier, too, it looks there first. Its run is unattended
// (upstream_run.h): it has 2 minutes, and a graceful stop does not wait for it.
// A key whose refresh failed is not refreshed for 1 to 30 s.
//
// A value on the worker's thread, between the lookup and Launch.
#ifndef FNCACHE_PROXY_SERVING_REFRESH_H_
#define FNCACHE_PROXY_SERVING_REFRESH_H_

#include <memory>
#include <utility>

#include "absl/types/optional.h"
#include "cache/key/key.h"
#include "http2/fields.h"
#include "proxy/serving/context.h"
#include "proxy/serving/flight.h"
#include "proxy/serving/function_state.h"
#include "proxy/serving/upstream_run.h"
#include "proxy/transport/incoming_call.h"
#include "proxy/transport/message.h"
#include "proxy/transport/worker.h"

namespace fncache::proxy::serving {

class Refresh final {
 public:
  // Opens a refresh with the request of `call`, whose entry started at `than`
  // and is past its time.
  // `tuned` is null without tuning, `varied` without `vary: on`. Absent: the
  // refresh is not needed or not possible. From now on misses of the key and
  // drift wait for it, so Launch must follow. Until then `call` may end.
  static absl::optional<Refresh> Open(ServingContext* context,
                                      FunctionStatePtr state,
                                      const FlightKey& key, absl::Time than,
                                      std::shared_ptr<TunedCall> tuned,
                                      const VariedCall* varied,
                                      const transport::IncomingCall& call);

  // Calls the function, unless a younger entry is below. Call it once.
  void Launch();

 private:
  Refresh(ServingContext* context, FunctionStatePtr state,
          std::shared_ptr<UpstreamRun> run, std::shared_ptr<FlightCaller> seat,
          const cache::key::Key& entry_key, absl::Time than,
          transport::Message request, const transport::IncomingCall& call)
      : context_(context),
        state_(std::move(state)),
        run_(std::move(run)),
        seat_(std::move(seat)),
        entry_key_(entry_key),
        than_(than),
        worker_(call.worker()),
        fields_(call.fields()),
        request_(std::move(request)) {}

  void OnLower(const cache::store::EntryRef& entry);
  void Run();

  ServingContext* context_;
  FunctionStatePtr state_;
  std::shared_ptr<UpstreamRun> run_;
  std::shared_ptr<FlightCaller> seat_;
  cache::key::Key entry_key_;  // of the entry that is past its time
  absl::Time than_;
  transport::Worker* worker_;
  http2::Fields fields_;
  transport::Message request_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_REFRESH_H_
