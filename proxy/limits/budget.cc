// SPDX-License-Identifier: Apache-2.0
#include "proxy/limits/budget.h"

#include <algorithm>

#include "common/clock.h"

namespace fncache::proxy::limits {

// A queue position. It may outlive the waiter.
struct Budget::Waiter::Ticket {
  Waiter* waiter;  // null: it waits no more. mutex_ guards all fields
  http2::Loop* loop;
  int lane;
  size_t bytes;
  bool over;  // the queue had 1/8 of the budget already
  bool admitted = false;
  std::list<std::shared_ptr<Ticket>>::iterator position = {};  // until admitted
};

Budget::Budget(size_t bound, int lanes)
    : bound_(bound), lanes_(static_cast<size_t>(lanes)) {}

void Budget::Add(Quota quota, int lane, size_t bytes) {
  std::atomic<size_t>& count =
      lanes_[static_cast<size_t>(lane)].bytes[static_cast<size_t>(quota)];
  // Another thread may add here: AdmitWaiting runs on any worker.
  count.fetch_add(bytes, std::memory_order_relaxed);
}

void Budget::Remove(Quota quota, int lane, size_t bytes) {
  std::atomic<size_t>& count =
      lanes_[static_cast<size_t>(lane)].bytes[static_cast<size_t>(quota)];
  // seq_cst: if a miss queues up at the same time, this thread or that one sees
  // the other's change.
  count.fetch_sub(bytes, std::memory_order_seq_cst);
  const bool lets_run = quota == Quota::kRunning || quota == Quota::kRelayed;
  if (lets_run && queued_.load(std::memory_order_seq_cst) > 0) AdmitWaiting();
}

void Budget::SetBound(size_t bound) {
  bound_.store(bound, std::memory_order_relaxed);
  AdmitWaiting();
}

size_t Budget::Sum(Quota quota) const {
  size_t sum = 0;
  for (const Lane& lane : lanes_) {
    sum +=
        lane.bytes[static_cast<size_t>(quota)].load(std::memory_order_seq_cst);
  }
  // Lanes are read one after the other. Bytes that were added to one and taken
  // off another may make the sum negative.
  return sum > SIZE_MAX / 2 ? 0 : sum;
}

size_t Budget::limit(Quota quota) const {
  if (quota != Quota::kRunning) return bound() / 8;
  return bound() - bound() / 4 - std::min(Sum(Quota::kRelayed), bound() / 4);
}

bool Budget::Fits(Quota quota, size_t more) const {
  return Sum(quota) + more <= limit(quota);
}

size_t Budget::free() const {
  const size_t used = Sum(Quota::kKept) + Sum(Quota::kReading);
  return bound() - std::min(used, bound());
}

size_t Budget::reading() const {
  const size_t all =
      Sum(Quota::kKept) + Sum(Quota::kReading) + Sum(Quota::kBeyond);
  return all - std::min(all, waiting());
}

size_t Budget::free_to_grant() const {
  const size_t limit = this->limit(Quota::kReading);
  return std::min(limit - std::min(Sum(Quota::kReading), limit), free());
}

bool Budget::OthersWait(Quota quota) const {
  if (quota == Quota::kRelayed) return !Fits(quota, limit(quota) / 8);
  return waiting_to_arrive_.load(std::memory_order_relaxed) > 0 ||
         misses_wait() || LittleIsLeft();
}

bool Budget::RefuseRelayed(size_t bytes) {
  if (Fits(Quota::kRelayed, bytes) || relayed() == 0) return false;
  CountRefused();
  return true;
}

bool Budget::EndRelayed(const void* who) {
  if (relayed() <= 2 * limit(Quota::kRelayed) ||
      GoBeyond(Quota::kRelayed, who)) {
    return false;
  }
  CountRefused();
  return true;
}

bool Budget::GoBeyond(Quota quota, const void* who) {
  if (quota == Quota::kBeyond && Sum(quota) > 0) return false;
  const void* nobody = nullptr;
  return beyond_[static_cast<size_t>(quota)].compare_exchange_strong(
             nobody, who, std::memory_order_relaxed) ||
         nobody == who;
}

void Budget::Yield(Quota quota, const void* who) {
  const void* expected = who;
  beyond_[static_cast<size_t>(quota)].compare_exchange_strong(
      expected, nullptr, std::memory_order_relaxed);
}

Budget::Unattended Budget::TakeUnattended(size_t bytes) {
  bytes = std::max<size_t>(bytes, 1);
  size_t taken = unattended_.load(std::memory_order_relaxed);
  do {
    if (misses_wait() || (taken > 0 && taken + bytes > bound() / 8)) return {};
  } while (!unattended_.compare_exchange_weak(taken, taken + bytes,
                                              std::memory_order_relaxed));
  return {this, bytes};
}

bool Budget::MayRun(size_t bytes) const {
  const size_t running = this->running();
  return running == 0 || running + bytes <= limit(Quota::kRunning);
}

bool Budget::IsStuck() const {
  return !queue_.empty() && ReadClock(CLOCK_MONOTONIC) - moved_ >=
                                absl::ToInt64Nanoseconds(kStuck);
}

Budget::Admission Budget::Admit(Waiter* waiter, http2::Loop* loop, int lane,
                                size_t bytes) {
  // First come, first served: a new miss does not overtake the queue.
  if (!misses_wait() && MayRun(bytes)) {
    Add(Quota::kRunning, lane, bytes);
    return Admission::kAdmitted;
  }
  MutexLock lock(&mutex_);
  if (queue_.empty()) moved_ = ReadClock(CLOCK_MONOTONIC);
  const bool over = QueueIsFull(bytes);
  if (over && IsStuck()) {
    CountRefused();
    return Admission::kRefused;
  }
  waiter->ticket_ = std::make_shared<Waiter::Ticket>(
      Waiter::Ticket{waiter, loop, lane, bytes, over});
  waiter->ticket_->position = queue_.insert(queue_.end(), waiter->ticket_);
  queued_.fetch_add(1, std::memory_order_seq_cst);
  waiting_.fetch_add(bytes, std::memory_order_relaxed);
  if (queue_.size() == 1 && MayRun(bytes)) {
    // Memory was freed meanwhile by a thread that saw an empty queue.
    TakeOut(waiter->ticket_);
    waiter->ticket_ = nullptr;
    Add(Quota::kRunning, lane, bytes);
    return Admission::kAdmitted;
  }
  return Admission::kWaits;
}

void Budget::TakeOut(const std::shared_ptr<Waiter::Ticket>& ticket) {
  queue_.erase(ticket->position);
  queued_.fetch_sub(1, std::memory_order_relaxed);
  waiting_.fetch_sub(ticket->bytes, std::memory_order_relaxed);
}

bool Budget::GivesUp(Waiter* waiter) {
  {
    MutexLock lock(&mutex_);
    const std::shared_ptr<Waiter::Ticket> ticket = waiter->ticket_;
    if (ticket == nullptr || ticket->admitted || !ticket->over || !IsStuck()) {
      return false;
    }
    ticket->waiter = nullptr;
    TakeOut(ticket);
    waiter->ticket_ = nullptr;
  }
  CountRefused();
  AdmitWaiting();
  return true;
}

void Budget::AdmitWaiting() {
  MutexLock lock(&mutex_);
  while (!queue_.empty()) {
    const std::shared_ptr<Waiter::Ticket> ticket = queue_.front();
    if (!MayRun(ticket->bytes)) return;
    TakeOut(ticket);
    moved_ = ReadClock(CLOCK_MONOTONIC);
    Add(Quota::kRunning, ticket->lane, ticket->bytes);
    ticket->admitted = true;
    ticket->loop->Post([this, ticket] {
      Waiter* waiter = nullptr;
      {
        MutexLock lock_of_ticket(&mutex_);
        waiter = ticket->waiter;
        ticket->waiter = nullptr;
      }
      if (waiter != nullptr) waiter->OnAdmitted();
    });
  }
}

bool Budget::Forget(Waiter* waiter) {
  {
    MutexLock lock(&mutex_);
    const std::shared_ptr<Waiter::Ticket> ticket = std::move(waiter->ticket_);
    if (ticket == nullptr || ticket->waiter == nullptr) return false;
    ticket->waiter = nullptr;
    if (ticket->admitted) return true;
    TakeOut(ticket);
  }
  // The next one may fit.
  if (misses_wait()) AdmitWaiting();
  return false;
}

}  // namespace fncache::proxy::limits
