// SPDX-License-Identifier: Apache-2.0
// WorkerShared: an object that is replaced now and then while all workers use
// it. Each worker has its own reference to the newest object. No other worker
// touches the reference count, so hits on several cores do not contend for it.
//
// The object before is destroyed when it has no user any more and each worker
// has called Of.
//
// Thread-safe, except Of.
#ifndef FNCACHE_PROXY_SERVING_WORKER_SHARED_H_
#define FNCACHE_PROXY_SERVING_WORKER_SHARED_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/mutex.h"

namespace fncache::proxy::serving {

template <typename T>
class WorkerShared {
 public:
  // Workers have indices below this (the setting `workers`).
  static constexpr size_t kMostWorkers = 64;

  explicit WorkerShared(std::shared_ptr<T> first = nullptr)
      : newest_(std::move(first)), slots_(kMostWorkers) {
    address_.store(newest_.get(), std::memory_order_release);
  }
  WorkerShared(const WorkerShared&) = delete;
  WorkerShared& operator=(const WorkerShared&) = delete;

  // The newest object, as the reference of the worker with this index. Call it
  // on that worker's thread only; it is valid until the next call there.
  const std::shared_ptr<T>& Of(int worker) {
    Slot& slot = slots_[static_cast<size_t>(worker)];
    if (slot.version != version_.load(std::memory_order_acquire)) {
      Renew(&slot);
    }
    return slot.share;
  }
  // The newest object. On any thread.
  std::shared_ptr<T> Newest() const {
    MutexLock lock(&mutex_);
    return newest_;
  }
  // Whether this is the newest object. It takes no reference. Null is the
  // newest if there is none. On any thread.
  bool IsNewest(const T* one) const {
    return address_.load(std::memory_order_acquire) == one;
  }

  // From now on `next` is the newest object; it may be null. Returns the one
  // before.
  std::shared_ptr<T> Replace(std::shared_ptr<T> next) {
    MutexLock lock(&mutex_);
    newest_.swap(next);
    address_.store(newest_.get(), std::memory_order_release);
    version_.fetch_add(1, std::memory_order_release);
    return next;
  }

 private:
  struct alignas(64) Slot {
    uint64_t version = 0;
    std::shared_ptr<T> share;
  };
  void Renew(Slot* slot) const {
    std::shared_ptr<T> before;  // destroyed after the mutex is unlocked
    MutexLock lock(&mutex_);
    slot->version = version_.load(std::memory_order_relaxed);
    before = std::move(slot->share);
    slot->share = nullptr;
    if (newest_ == nullptr) return;
    // With its own reference count.
    slot->share =
        std::shared_ptr<T>(newest_.get(), [held = newest_](T* /*one*/) {});
  }

  std::atomic<uint64_t> version_{1};
  std::atomic<const T*> address_{nullptr};
  mutable Mutex mutex_;
  std::shared_ptr<T> newest_ ABSL_GUARDED_BY(mutex_);
  std::vector<Slot> slots_;
};

}  // namespace fncache::proxy::serving

#endif  // FNCACHE_PROXY_SERVING_WORKER_SHARED_H_
