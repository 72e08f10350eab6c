#include "proxy/upstream_run.h"

#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "absl/time/clock.h"
#include "proxy/answer.h"
#include "proxy/call.h"
#include "proxy/call_worker.h"
#include "proxy/instruments.h"

namespace fncache::proxy {
namespace {

// gRPC measures deadlines in milliseconds of a monotonic clock, and ours went
// through the wall clock: a call that its deadline ended may look this much
// early. A function that says DEADLINE_EXCEEDED itself, so shortly before the
// deadline, is taken for the deadline: it had the same one.
constexpr std::chrono::milliseconds kDeadlineSlack{20};

}  // namespace

void UpstreamRun::Start(const IncomingCall& caller,
                        const grpc::ByteBuffer& request,
                        std::shared_ptr<RunOwner> owner) {
  owner_ = std::move(owner);
  worker_ = caller.worker()->index();
  started_ = handler_->clock_->Now();
  const absl::Time deadline = caller.deadline();
  has_deadline_ = deadline != absl::InfiniteFuture();
  if (has_deadline_) {
    deadline_ = std::chrono::steady_clock::now() +
                absl::ToChronoNanoseconds(deadline - absl::Now());
  }
  call_ = handler_->upstream_->StartUnary(
      caller, request, deadline,
      [self = shared_from_this()](UnaryCall& call) { self->OnDone(call); });
}

void UpstreamRun::OnDone(UnaryCall& call) {
  const absl::Time now = handler_->clock_->Now();
  handler_->instruments_->RecordUpstream(call.status().error_code(),
                                         call.latency());
  Result result = Examine(call, now);
  if (flight_ != nullptr) {
    const FlightEnd end = result.entry            ? FlightEnd::kShared
                          : EndedByDeadline(call) ? FlightEnd::kDeadline
                                                  : FlightEnd::kAlone;
    handler_->flights_.Finish(flight_, end, std::move(result.entry), now,
                              /*found=*/!result.stored);
  }
  if (place_ != nullptr) handler_->flights_.Leave(place_.get());
  if (owner_ == nullptr) return;
  const std::shared_ptr<RunOwner> owner = std::move(owner_);
  owner->OnAnswer(call, result.message, result.stored);
}

UpstreamRun::Result UpstreamRun::Examine(UnaryCall& call, absl::Time now) {
  Result result;
  if (!call.status().ok()) return result;
  result.message.Swap(&call.response());
  if (use_ == Use::kPass) return result;
  JoinedMessage& joined = handler_->workers_[worker_]->response;
  if (const auto bytes = joined.Join(result.message)) {
    Apply(*bytes, call, now, &result);
  }
  joined.Clear();
  return result;
}

void UpstreamRun::Apply(absl::string_view bytes, UnaryCall& call,
                        absl::Time now, Result* result) {
  const auto view = cache::ReadResponse(bytes);
  if (!view.ok()) return;  // it passes untouched
  cache::Policy::Storing storing;
  if (use_ == Use::kStore) {
    storing = handler_->policy_.Decide(
        view->facts, bytes.size(),
        absl::Uniform(handler_->workers_[worker_]->random, 0.0, 1.0));
  }
  if (storing.store) Fill(*view, storing, call, now, result);
  // What memory did not take has no lifetime to tell of.
  if (!result->stored) storing = {};
  const auto ttl = handler_->policy_.MissTtl(view->facts, storing);
  if (ttl.has_value()) result->message = MessageWithTtl(*view, *ttl);
}

void UpstreamRun::Fill(const cache::ResponseView& view,
                       const cache::Policy::Storing& storing, UnaryCall& call,
                       absl::Time now, Result* result) {
  cache::EntryInfo info;
  info.function = handler_->id_;
  info.started = started_;
  info.arrived = now;
  info.lifetime = storing.lifetime;
  info.ttl = view.facts.ttl;
  info.cost = call.latency();
  info.secrets = view.facts.secrets;
  cache::EntryRef entry = cache::Entry::Create(info, view.meta_rest, view.body);
  if (!entry) return;  // no memory for it: it passes
  switch (handler_->store_->Fill(key_, entry, storing.lower_tiers, now)) {
    case cache::PutResult::kStored:
      handler_->instruments_->RecordFill(entry->body().size() +
                                         entry->meta_rest().size());
      result->stored = true;
      result->entry = std::move(entry);
      return;
    case cache::PutResult::kOlder: {
      // A call that started later has filled the key: whoever waits gets that.
      cache::Found newer = handler_->store_->GetMemory(key_, now);
      if (newer.entry && handler_->policy_.ServedFor(newer.entry->info(), now) >
                             absl::ZeroDuration()) {
        result->entry = std::move(newer.entry);
      }
      return;
    }
    default:
      return;
  }
}

bool UpstreamRun::EndedByDeadline(const UnaryCall& call) const {
  return has_deadline_ &&
         call.status().error_code() == grpc::StatusCode::DEADLINE_EXCEEDED &&
         std::chrono::steady_clock::now() >= deadline_ - kDeadlineSlack;
}

}  // namespace fncache::proxy
