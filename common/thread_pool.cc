// SPDX-License-Identifier: Apache-2.0
#include "common/thread_pool.h"

#include <sched.h>

#include <utility>

namespace fncache {

ThreadPool::ThreadPool(int threads, size_t max_waiting)
    : max_waiting_(max_waiting) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

bool ThreadPool::Submit(Work* work, bool is_long) {
  MutexLock lock(&mutex_);
  if (waiting_.size() >= max_waiting_ || stop_) return false;
  waiting_.push_back({std::move(*work), is_long});
  if (is_long) long_.fetch_add(1, std::memory_order_relaxed);
  changed_.Signal();
  return true;
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
    while (waiting_.empty() && !stop_) changed_.Wait(&mutex_);
    if (waiting_.empty()) break;
    Piece piece = std::move(waiting_.front());
    waiting_.pop_front();
    const bool run = !stop_;
    mutex_.Unlock();
    piece.work(run);
    piece.work = nullptr;
    if (piece.is_long) long_.fetch_sub(1, std::memory_order_relaxed);
    mutex_.Lock();
  }
  mutex_.Unlock();
}

}  // namespace fncache
