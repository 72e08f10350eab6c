// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/refresh.h"

#include <utility>

#include "absl/time/time.h"
#include "http2/recycler.h"
#include "proxy/limits/budget.h"
#include "proxy/serving/pending_lookup.h"
#include "proxy/serving/question.h"
#include "proxy/transport/deadline.h"

namespace fncache::proxy::serving {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(2);

// It leads its flight until that ends, so it gets no signal.
class RefreshSeat final : public FlightCaller {
 public:
  explicit RefreshSeat(const FlightKey& key)
      : FlightCaller(key, absl::InfiniteFuture(), /*stale=*/true) {}
  void OnSignal(FlightSignal /*signal*/) override {}
};

}  // namespace

absl::optional<Refresh> Refresh::Open(ServingContext* context,
                                      FunctionStatePtr state,
                                      const FlightKey& key, absl::Time than,
                                      std::shared_ptr<TunedCall> tuned,
                                      const VariedCall* varied,
                                      const transport::IncomingCall& call) {
  const absl::Time now = context->clock.Now();
  if (!context->refreshes.Allows(key, now)) return absl::nullopt;
  // The refresh must not delay other calls, because its caller has an answer.
  limits::Budget::Unattended memory;
  if (limits::Budget* const budget = context->upstream.options().inflight) {
    const size_t bytes = call.request().size();
    if (budget->MayRun(bytes)) memory = budget->TakeUnattended(bytes);
    if (!memory.taken()) {
      context->instruments.RefreshRefused();
      return absl::nullopt;
    }
  }
  const auto seat = std::make_shared<RefreshSeat>(key);
  switch (context->flights.EnterToRefresh(seat, now)) {
    case FlightTable::Refresh::kLead:
      break;
    case FlightTable::Refresh::kNotNeeded:
      return absl::nullopt;
    case FlightTable::Refresh::kFull:
      context->instruments.RefreshRefused();
      return absl::nullopt;
  }
  // A refresh that has just ended may have filled the key after the look-up.
  const cache::key::Key entry_key =
      varied != nullptr && varied->by_hint() ? varied->entry_key() : key.key;
  const cache::store::Found found = state->store.GetMemory(entry_key, now);
  if (state->IsFreshForItself(entry_key, found.entry, now)) {
    context->flights.FinishFound(seat.get(), found.entry, now);
    return absl::nullopt;
  }
  if (tuned != nullptr) {
    PrepareToLearn(context, state, key.key, call, /*found=*/true, tuned.get());
  }
  auto run =
      http2::MakeRecycled<UpstreamRun>(context, state, Use::kReplace, key.key);
  run->SetTuned(std::move(tuned));
  run->SetRefresh(std::move(memory));
  transport::Message request = call.request();
  if (varied != nullptr) run->SetVaried(*varied, &request);
  return Refresh(context, std::move(state), std::move(run), seat, entry_key,
                 than, std::move(request), call);
}

void Refresh::Launch() {
  cache::store::TieredStore& store = state_->store;
  if (!store.MayBeYoungerBelow() || !store.MayFindBelow()) return Run();
  auto pending = std::make_unique<PendingLookup>(worker_, &store.bans());
  transport::Worker* const worker = worker_;
  const auto self = std::make_shared<Refresh>(std::move(*this));
  store.GetLower(self->entry_key_, self->context_->id, self->than_,
                 self->context_->clock.Now(),
                 [self, worker, pending = std::move(pending)](
                     cache::store::Found found) mutable {
                   worker->Post([self, pending = std::move(pending),
                                 found = std::move(found)] {
                     self->OnLower(found.entry);
                   });
                 });
}

void Refresh::OnLower(const cache::store::EntryRef& entry) {
  const absl::Time now = context_->clock.Now();
  if (state_->IsFreshForItself(entry_key_, entry, now)) {
    context_->flights.FinishFound(seat_.get(), entry, now);
    return;
  }
  Run();
}

void Refresh::Run() {
  context_->instruments.RefreshBegun();
  using transport::Deadline;
  run_->Start(
      {worker_, fields_, request_, Deadline::Own(kPatience, Deadline::Now())},
      /*owner=*/nullptr);
  run_->SetFlight(context_->flights.Launched(seat_.get(), run_));
}

}  // namespace fncache::proxy::serving
