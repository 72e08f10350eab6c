// SPDX-License-Identifier: Apache-2.0
// InterimStore: the store of a daemon whose disk tier could not be opened for
// lack of space or on a read-only file system.
//
// It is memory alone, under a random seed. A thread of its own tries to open
// the store with the disk tier every `disk_retry`; when that works, the other
// store becomes this one's successor, and this one's memory is emptied and
// keeps nothing any more. Calls under way hold keys of the random seed and
// finish here: what they fill never reaches the successor. One error in the log
// says why the tier is missing (again whenever the reason changes), and one
// line says that it is there.
//
// Thread-safe. Destruction waits for an attempt that is under way.
#ifndef FNCACHE_CACHE_STORE_INTERIM_STORE_H_
#define FNCACHE_CACHE_STORE_INTERIM_STORE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cache/observer.h"
#include "cache/store/memory_only.h"
#include "cache/store/tiered_store.h"
#include "common/mutex.h"

namespace fncache::cache::store {

class InterimStore final : public MemoryOnly {
 public:
  // Opens memory and disk as the options say. Called on the store's own thread.
  using Opener = std::function<absl::StatusOr<std::unique_ptr<TieredStore>>(
      const TieredOptions& options)>;

  // `reason`: why the disk tier could not be opened before. `observer` (null =
  // none) outlives the store.
  InterimStore(const TieredOptions& options, const absl::Status& reason,
               Opener open, Observer* observer);
  ~InterimStore() override;

  // A fill that belongs on disk, too, is counted as dropped there.
  PutResult Fill(const key::Key& key, EntryRef entry, bool lower,
                 absl::Time now) override;

  StoreStats Stats() const override;
  StoreStats LowerStats() const override;
  size_t QueueDepth() const override;
  size_t LookupQueueDepth() const override;
  // What is changed before the disk can be opened holds for it, too.
  absl::Status Change(const TieredChange& change, absl::Time now) override;
  void EraseSecrets(FunctionId function) override;
  void Flush() override;

 private:
  void Run();
  // Opens the other store; OK once it has this one's place.
  absl::Status TryToOpen();
  void LogFailure(const absl::Status& status);

  const absl::Duration retry_;
  const Opener open_;
  Observer* const observer_;  // may be null

  mutable Mutex mutex_;
  CondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  // As the other store is to be opened.
  TieredOptions options_ ABSL_GUARDED_BY(mutex_);

  // The thread's own: what was logged last, and the successor.
  std::string logged_;
  std::unique_ptr<TieredStore> opened_;

  std::thread thread_;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_INTERIM_STORE_H_
