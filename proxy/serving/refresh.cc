// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/refresh.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/time/clock.h"
#include "http2/recycler.h"

namespace fncache::proxy::serving {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(2);

// It leads its flight until that ends, so it is told nothing.
class RefreshSeat final : public FlightCaller {
 public:
  explicit RefreshSeat(const cache::key::Key& key)
      : FlightCaller(key, absl::InfiniteFuture(), /*stale=*/true) {}
  void OnSignal(FlightSignal /*signal*/) override {}
};

}  // namespace

Refresh::Refresh(ServingContext* context, FunctionStatePtr state,
                 cache::store::TieredStore* store,
                 const std::shared_ptr<FlightCaller>& seat,
                 const transport::IncomingCall& call,
                 transport::Inflight::Unattended unattended)
    : context_(*context),
      state_(std::move(state)),
      store_(*store),
      seat_(seat),
      worker_(call.worker()),
      fields_(call.fields()),
      arrived_(call.arrived()),
      request_(call.request()),
      unattended_(std::move(unattended)) {}

std::shared_ptr<Refresh> Refresh::Open(ServingContext* context,
                                       FunctionStatePtr state,
                                       cache::store::TieredStore* store,
                                       const cache::key::Key& key,
                                       const transport::IncomingCall& call) {
  const absl::Time now = context->clock.Now();
  if (!context->refreshes.Allows(key, now)) return nullptr;
  // Its caller has been answered, so it must not stand in the way of others.
  transport::Inflight::Unattended unattended;
  if (auto* const inflight = context->upstream.options().inflight) {
    const size_t bytes = call.request().size();
    if (inflight->MayRun(bytes)) {
      unattended = inflight->TakeUnattended(bytes);
    }
    if (!unattended.taken()) {
      context->instruments.RefreshRefused();
      return nullptr;
    }
  }
  const auto seat = std::make_shared<RefreshSeat>(key);
  switch (context->flights.EnterToRefresh(seat, now)) {
    case FlightTable::Refresh::kLead:
      break;
    case FlightTable::Refresh::kNotNeeded:
      return nullptr;
    case FlightTable::Refresh::kFull:
      context->instruments.RefreshRefused();
      return nullptr;
  }
  // A refresh that has just ended may have filled the key since it was looked
  // up.
  const cache::store::Found found = store->GetMemory(key, now);
  if (found.entry && context->FreshnessOf(*state, key, *found.entry, now) ==
                         cache::Freshness::kFresh) {
    context->flights.FinishFound(seat.get(), found.entry, now);
    return nullptr;
  }
  context->instruments.RefreshBegun();
  return absl::WrapUnique(new Refresh(context, std::move(state), store, seat,
                                      call, std::move(unattended)));
}

void Refresh::Launch() {
  run_ = http2::MakeRecycled<UpstreamRun>(&context_, state_, Use::kStore,
                                          &store_, seat_->key());
  run_->SetReplaces();
  run_->Start({worker_, fields_, arrived_, request_, absl::Now() + kPatience,
               /*own_deadline=*/true},
              shared_from_this());
  request_.Clear();
  run_->LetGo();
  run_->SetFlight(context_.flights.Launched(seat_.get(), run_));
}

void Refresh::OnAnswer(transport::UnaryCall& call,
                       const transport::Message& /*message*/, bool stored) {
  context_.instruments.RefreshEnded();
  const std::shared_ptr<UpstreamRun> run = std::move(run_);
  // The function did its part: the next may ask it again at once.
  if (run->purged()) return context_.refreshes.Succeeded(seat_->key());
  const absl::Time now = context_.clock.Now();
  // A call that started later may have filled the key before this one ended.
  const cache::store::Found found =
      stored ? cache::store::Found() : store_.GetMemory(seat_->key(), now);
  if (stored ||
      (found.entry && context_.FreshnessOf(*state_, seat_->key(), *found.entry,
                                           now) == cache::Freshness::kFresh)) {
    return context_.refreshes.Succeeded(seat_->key());
  }
  context_.refreshes.Failed(seat_->key(), now);
  context_.instruments.RefreshFailed();
  context_.log.RefreshFailed(call.status());
}

}  // namespace fncache::proxy::serving
