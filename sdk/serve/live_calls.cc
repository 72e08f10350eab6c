// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/live_calls.h"

#include <malloc.h>

#include "absl/time/clock.h"
#include "common/log.h"
#include "sdk/serve/connections.h"

namespace fncache::sdk::serve {

LiveCalls::LiveCalls(const Options& options)
    : options_(options), thread_([this] { Look(); }) {}

LiveCalls::~LiveCalls() {
  {
    MutexLock lock(&mutex_);
    ends_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void LiveCalls::Add(LiveCall* call, const std::string& peer) {
  bool too_many;
  {
    MutexLock lock(&mutex_);
    call->position_ = all_.insert(all_.end(), call);
    call->peer_ = peers_.try_emplace(peer, 0).first;
    too_many = ++call->peer_->second == options_.most_calls + 1;
    ++added_;
    if (stopping_) call->OnStop();
    if (asleep_) changed_.SignalAll();
  }
  if (too_many && CloseConnection(peer)) {
    Log(LogLevel::kWarning, "connection closed: it has too many calls",
        {{"peer", peer}, {"limit", options_.most_calls}});
  }
}

void LiveCalls::Remove(LiveCall* call) {
  MutexLock lock(&mutex_);
  all_.erase(call->position_);
  if (--call->peer_->second == 0) peers_.erase(call->peer_);
}

void LiveCalls::Stop() {
  MutexLock lock(&mutex_);
  stopping_ = true;
  for (LiveCall* const call : all_) call->OnStop();
}

void LiveCalls::CancelStuck() {
  const int64_t before = absl::ToUnixNanos(absl::Now() - options_.stuck);
  for (LiveCall* const call : all_) {
    const int64_t since = call->since_;
    if (since != 0 && since < before) call->Cancel();
  }
}

void LiveCalls::Look() {
  mutex_.Lock();
  while (!ends_) {
    const uint64_t seen = added_;
    changed_.WaitWithTimeout(&mutex_, options_.quiet);
    if (ends_) break;
    CancelStuck();
    if (!all_.empty() || seen != added_) continue;
    mutex_.Unlock();
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    mutex_.Lock();
    asleep_ = true;
    while (!ends_ && seen == added_) changed_.Wait(&mutex_);
    asleep_ = false;
  }
  mutex_.Unlock();
}

}  // namespace fncache::sdk::serve
