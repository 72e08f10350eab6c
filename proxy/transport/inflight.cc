// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/inflight.h"

#include <algorithm>

#include "common/clock.h"

namespace fncache::proxy::transport {
namespace {

// Bytes that arrive on one connection may be at most 4 times the capacity that
// is still free: four fifths of what others leave.
constexpr size_t kTimesWhatIsLeft = 4;

// A connection whose requests use at most 1/256 of the budget may use 1/8 of
// the budget in addition. Connections that use more cannot take that.
constexpr size_t kLittleDivisor = 256;
constexpr size_t kSparedDivisor = 8;

// A request of ordinary size has at most 1/64 of the budget.
constexpr size_t kOrdinaryDivisor = 64;

const int64_t kStuckNanos = absl::ToInt64Nanoseconds(Inflight::kStuck);

}  // namespace

// A queue position. It may outlive the waiter.
struct Inflight::Waiter::Ticket {
  Waiter* waiter;  // null: it waits no more. mutex_ guards all fields
  Worker* worker;
  size_t bytes;
  bool counted;  // as waiting
  bool admitted = false;
  std::list<std::shared_ptr<Ticket>>::iterator position = {};  // until admitted
};

Inflight::Inflight(size_t bound, int workers)
    : bound_(bound), lines_(static_cast<size_t>(workers)) {}

void Inflight::Add(Quota quota, Worker* worker, size_t bytes) {
  std::atomic<size_t>& count = lines_[static_cast<size_t>(worker->index())]
                                   .bytes[static_cast<size_t>(quota)];
  // Another thread may add here: AdmitWaiting runs on any worker.
  count.fetch_add(bytes, std::memory_order_relaxed);
}

void Inflight::Remove(Quota quota, Worker* worker, size_t bytes) {
  std::atomic<size_t>& count = lines_[static_cast<size_t>(worker->index())]
                                   .bytes[static_cast<size_t>(quota)];
  // seq_cst: if a miss queues up at the same time, this thread or that one sees
  // the other's change.
  count.fetch_sub(bytes, std::memory_order_seq_cst);
  const bool lets_run = quota == Quota::kRunning || quota == Quota::kRelayed;
  if (lets_run && queued_.load(std::memory_order_seq_cst) > 0) AdmitWaiting();
}

void Inflight::SetBound(size_t bound) {
  bound_.store(bound, std::memory_order_relaxed);
  AdmitWaiting();
}

size_t Inflight::Sum(Quota quota) const {
  size_t sum = 0;
  for (const Line& line : lines_) {
    sum +=
        line.bytes[static_cast<size_t>(quota)].load(std::memory_order_seq_cst);
  }
  // Lines are read one after the other. Bytes that were added to one and taken
  // off another may make the sum negative.
  return sum > SIZE_MAX / 2 ? 0 : sum;
}

size_t Inflight::limit(Quota quota) const {
  if (quota == Quota::kArriving) return bound_;
  if (quota == Quota::kBeyond) return bound_ / 2;
  if (quota != Quota::kRunning) return bound_ / 8;
  return bound_ - bound_ / 4 - std::min(Sum(Quota::kRelayed), bound_ / 4);
}

bool Inflight::Fits(Quota quota, size_t more) const {
  return Sum(quota) + more <= limit(quota);
}

size_t Inflight::CapacityToRead() const {
  const size_t limit = this->limit(Quota::kReading);
  return limit - std::min(Sum(Quota::kReading), limit);
}

bool Inflight::LeavesCapacity(size_t held) const {
  size_t limit = this->limit(Quota::kArriving);
  if (held <= limit / kLittleDivisor) limit += limit / kSparedDivisor;
  const size_t left = limit - std::min(Coming() + calls(), limit);
  return held <= kTimesWhatIsLeft * left;
}

bool Inflight::readers_wait() const {
  return readers_waiting_.load(std::memory_order_relaxed) > 0 ||
         waiting() >= bound() / 8 ||
         !Fits(Quota::kReading, Sum(Quota::kArriving));
}

bool Inflight::RefuseRelayed(size_t bytes) {
  if (Fits(Quota::kRelayed, bytes) || Sum(Quota::kRelayed) == 0) {
    return false;
  }
  CountRefused();
  return true;
}

bool Inflight::EndRelayed(const void* who) {
  if (Sum(Quota::kRelayed) <= 2 * limit(Quota::kRelayed) ||
      GoBeyond(Quota::kRelayed, who)) {
    return false;
  }
  CountRefused();
  return true;
}

bool Inflight::GoBeyond(Quota quota, const void* who) {
  const void* nobody = nullptr;
  return beyond_[static_cast<size_t>(quota)].compare_exchange_strong(
             nobody, who, std::memory_order_relaxed) ||
         nobody == who;
}

bool Inflight::ReadBeyond(const void* who, size_t bytes) {
  if (!GoBeyond(Quota::kBeyond, who)) return false;
  const size_t held = Sum(Quota::kBeyond);
  if (held == 0 || held + bytes <= limit(Quota::kBeyond)) return true;
  const int64_t now = ReadClock(CLOCK_MONOTONIC);
  if (bytes <= bound() / kOrdinaryDivisor &&
      now - beyond_half_.load(std::memory_order_relaxed) >= kStuckNanos) {
    // No race: GoBeyond lets in one at a time.
    beyond_half_.store(now, std::memory_order_relaxed);
    return true;
  }
  Yield(Quota::kBeyond, who);
  return false;
}

void Inflight::Yield(Quota quota, const void* who) {
  const void* expected = who;
  beyond_[static_cast<size_t>(quota)].compare_exchange_strong(
      expected, nullptr, std::memory_order_relaxed);
}

Inflight::Unattended Inflight::TakeUnattended(size_t bytes) {
  bytes = std::max<size_t>(bytes, 1);
  size_t held = unattended_.load(std::memory_order_relaxed);
  do {
    if (queued_.load(std::memory_order_relaxed) > 0 ||
        (held > 0 && held + bytes > bound() / 8))
      return {};
  } while (!unattended_.compare_exchange_weak(held, held + bytes,
                                              std::memory_order_relaxed));
  return {this, bytes};
}

bool Inflight::IsFull(size_t bytes) const {
  return waiting() > 0 && waiting() + bytes > bound() / 8;
}

bool Inflight::MayRun(size_t bytes) const {
  const size_t running = Sum(Quota::kRunning);
  return running == 0 || running + bytes <= limit(Quota::kRunning);
}

Inflight::Admission Inflight::Admit(Waiter* waiter, Worker* worker,
                                    size_t bytes) {
  // First come, first served: a new miss does not overtake the queue.
  if (queued_.load(std::memory_order_relaxed) == 0 && MayRun(bytes)) {
    Add(Quota::kRunning, worker, bytes);
    return Admission::kAdmitted;
  }
  MutexLock lock(&mutex_);
  const int64_t now = ReadClock(CLOCK_MONOTONIC);
  if (queue_.empty()) moved_ = now;
  if (waiting() + bytes > bound() / 8 && now - moved_ >= kStuckNanos) {
    CountRefused();
    return Admission::kRefused;
  }
  const bool counted = !IsFull(bytes);
  waiter->ticket_ = std::make_shared<Waiter::Ticket>(
      Waiter::Ticket{waiter, worker, bytes, counted});
  waiter->ticket_->position = queue_.insert(queue_.end(), waiter->ticket_);
  queued_.fetch_add(1, std::memory_order_seq_cst);
  if (queue_.size() == 1 && MayRun(bytes)) {
    // Memory was freed meanwhile by a thread that saw an empty queue.
    queue_.pop_front();
    queued_.fetch_sub(1, std::memory_order_relaxed);
    waiter->ticket_ = nullptr;
    Add(Quota::kRunning, worker, bytes);
    return Admission::kAdmitted;
  }
  if (!counted) return Admission::kWaitsInPlace;
  waiting_.fetch_add(bytes, std::memory_order_relaxed);
  return Admission::kWaits;
}

void Inflight::Dequeue(const Waiter::Ticket& ticket) {
  queued_.fetch_sub(1, std::memory_order_relaxed);
  if (ticket.counted) {
    waiting_.fetch_sub(ticket.bytes, std::memory_order_relaxed);
  }
}

void Inflight::TakeOut(const std::shared_ptr<Waiter::Ticket>& ticket) {
  ticket->waiter = nullptr;
  queue_.erase(ticket->position);
  Dequeue(*ticket);
}

bool Inflight::GivesUp(Waiter* waiter) {
  {
    MutexLock lock(&mutex_);
    const std::shared_ptr<Waiter::Ticket> ticket = waiter->ticket_;
    if (ticket == nullptr || ticket->admitted || ticket->counted ||
        !IsFull(ticket->bytes) ||
        ReadClock(CLOCK_MONOTONIC) - moved_ < kStuckNanos) {
      return false;
    }
    TakeOut(ticket);
    waiter->ticket_ = nullptr;
  }
  CountRefused();
  AdmitWaiting();
  return true;
}

void Inflight::Count(Waiter* waiter) {
  MutexLock lock(&mutex_);
  const auto& ticket = waiter->ticket_;
  if (ticket == nullptr || ticket->admitted || ticket->counted) return;
  ticket->counted = true;
  waiting_.fetch_add(ticket->bytes, std::memory_order_relaxed);
}

void Inflight::AdmitWaiting() {
  MutexLock lock(&mutex_);
  while (!queue_.empty()) {
    const std::shared_ptr<Waiter::Ticket> ticket = queue_.front();
    if (!MayRun(ticket->bytes)) return;
    queue_.pop_front();
    moved_ = ReadClock(CLOCK_MONOTONIC);
    Dequeue(*ticket);
    Add(Quota::kRunning, ticket->worker, ticket->bytes);
    ticket->admitted = true;
    ticket->worker->Post([this, ticket] {
      Waiter* waiter = nullptr;
      {
        MutexLock told(&mutex_);
        waiter = ticket->waiter;
        ticket->waiter = nullptr;
      }
      if (waiter != nullptr) waiter->OnAdmitted();
    });
  }
}

bool Inflight::Forget(Waiter* waiter) {
  {
    MutexLock lock(&mutex_);
    const std::shared_ptr<Waiter::Ticket> ticket = std::move(waiter->ticket_);
    if (ticket == nullptr || ticket->waiter == nullptr) return false;
    if (ticket->admitted) {
      ticket->waiter = nullptr;
      return true;
    }
    TakeOut(ticket);
  }
  // The next one may fit.
  if (queued_.load(std::memory_order_relaxed) > 0) AdmitWaiting();
  return false;
}

}  // namespace fncache::proxy::transport
