#include "common/worker_pool.h"

#include <utility>

namespace fncache {

WorkerPool::WorkerPool(int threads) {
  threads_.reserve(threads);
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { Work(); });
  }
}

WorkerPool::~WorkerPool() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::Add(std::function<void()> task) {
  MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
  changed_.Signal();
}

void WorkerPool::Work() {
  while (true) {
    std::function<void()> task;
    {
      MutexLock lock(&mutex_);
      while (tasks_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace fncache
