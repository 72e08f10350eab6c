// SPDX-License-Identifier: Apache-2.0
#include "common/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <utility>

namespace fncache {

ThreadPool::ThreadPool(int threads, size_t max_waiting, int at_once)
    : max_waiting_(max_waiting),
      spare_(static_cast<size_t>(std::max(0, threads - at_once))) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
  if (spare_ > 0) watch_ = std::thread([this] { Watch(); });
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    Call(idle_.size());
    watched_.Signal();
  }
  if (watch_.joinable()) watch_.join();
  for (std::thread& thread : threads_) thread.join();
}

bool ThreadPool::Submit(Work* work, bool is_long) {
  MutexLock lock(&mutex_);
  if (waiting_.size() >= max_waiting_ || stop_) return false;
  waiting_.push_back({std::move(*work), is_long});
  if (is_long) long_.fetch_add(1, std::memory_order_relaxed);
  if (idle_.size() > spare_) {
    Call(1);
  } else if (!watching_) {
    watching_ = true;
    watched_.Signal();
  }
  return true;
}

void ThreadPool::Call(size_t count) {
  for (; count > 0 && !idle_.empty(); --count) {
    idle_.back()->called = true;
    idle_.back()->changed.Signal();
    idle_.pop_back();
  }
}

size_t ThreadPool::waiting() const {
  MutexLock lock(&mutex_);
  return waiting_.size();
}

void ThreadPool::Run() {
  // Work that waits for a disk can wait longer. A thread that serves from
  // memory must not wait for a thread that was just woken. If the system
  // refuses, the pool works without it.
  const sched_param parameters{};
  sched_setscheduler(0, SCHED_BATCH, &parameters);
  mutex_.Lock();
  while (true) {
    while (waiting_.empty() && !stop_) {
      Idle idle;
      idle_.push_back(&idle);
      while (!idle.called) idle.changed.Wait(&mutex_);
    }
    if (waiting_.empty()) break;
    Piece piece = std::move(waiting_.front());
    waiting_.pop_front();
    ++begun_;
    const bool run = !stop_;
    mutex_.Unlock();
    piece.work(run);
    piece.work = nullptr;
    if (piece.is_long) long_.fetch_sub(1, std::memory_order_relaxed);
    mutex_.Lock();
  }
  mutex_.Unlock();
}

void ThreadPool::Watch() {
  mutex_.Lock();
  while (!stop_) {
    watching_ = !waiting_.empty();
    if (!watching_) {
      watched_.Wait(&mutex_);
      continue;
    }
    const uint64_t before = begun_;
    const uint64_t due = before + waiting_.size();
    watched_.WaitWithTimeout(&mutex_, kPatience);
    if (begun_ < due) Call(begun_ == before ? waiting_.size() : 1);
  }
  mutex_.Unlock();
}

}  // namespace fncache
