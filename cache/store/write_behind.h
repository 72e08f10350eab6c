// SPDX-License-Identifier: Apache-2.0
// WriteBehind: the bounded queue between fills and the disk, and its thread.
//
// There is one operation a key: a later fill replaces one that still waits. An
// operation that waits or is in progress can be looked up, so that every fill
// is visible until it is on disk.
//
// Thread-safe. `write`, `tick` and `dropped_at_shutdown` are called on the
// queue's own thread.
#ifndef FNCACHE_CACHE_STORE_WRITE_BEHIND_H_
#define FNCACHE_CACHE_STORE_WRITE_BEHIND_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/key/key.h"
#include "cache/store/entry.h"
#include "common/mutex.h"

namespace fncache::cache::store {

class WriteBehind {
 public:
  struct Operation {
    key::Key key;
    // The entry that was filled.
    EntryRef entry;
    // True: it is to be written. False: it stays in memory alone, and the
    // disk's older entry under the key is to be erased.
    bool write = true;
  };
  struct Options {
    size_t max_entries = 8192;
    uint64_t max_bytes = 32 << 20;
    // How long the destructor continues to write. Fills that remain are
    // dropped.
    absl::Duration drain = absl::Seconds(10);
    // How often `tick` is called while there is nothing to write.
    absl::Duration tick = absl::Seconds(2);
  };

  WriteBehind(const Options& options,
              std::function<void(const Operation&)> write,
              std::function<void()> tick,
              std::function<void(const Operation&)> dropped_at_shutdown);
  // Calls Stop, if that was not done.
  ~WriteBehind();

  // Drains the queue, for at most `drain`, and ends its thread. After it only
  // Pending and the destructor may be called.
  void Stop();

  // False if the queue is full; an earlier operation on this key does not wait
  // any more then.
  bool Enqueue(Operation operation);
  // The latest operation on the key that has not been carried out.
  absl::optional<Operation> Pending(const key::Key& key) const;
  // Forgets the operation that waits for the key, and returns once none on it
  // is being carried out. True if an entry was to be written.
  bool Remove(const key::Key& key) {
    return Remove(key, absl::InfiniteFuture(), absl::InfiniteFuture());
  }
  // The same unless its entry started after `until`, and is not of a time to
  // come.
  bool Remove(const key::Key& key, absl::Time until, absl::Time now);
  // Forgets what waits of a function (kNoFunction: of all) that started at or
  // before `until`; returns how many entries were to be written.
  uint64_t Sweep(FunctionId function, absl::Time until);
  // Returns once the operations enqueued before have been carried out.
  void Flush();
  size_t depth() const;

 private:
  void Run();

  const Options options_;
  const std::function<void(const Operation&)> write_;
  const std::function<void()> tick_;
  const std::function<void(const Operation&)> dropped_at_shutdown_;

  mutable Mutex mutex_;
  CondVar work_;
  CondVar progress_;
  // Keys in the order of their coming; those not in `waiting_` are skipped.
  std::deque<std::pair<uint64_t, key::Key>> order_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<key::Key, Operation> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::optional<Operation> current_ ABSL_GUARDED_BY(mutex_);
  uint64_t enqueued_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time stop_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();

  std::thread thread_;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_WRITE_BEHIND_H_
