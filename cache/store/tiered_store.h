// TieredStore: memory before disk. What the proxy's hit path calls.
//
// Look-ups: GetMemory on the serving thread; on a miss there, GetLower, whose
// answer comes on an I/O thread and whose entry is promoted to memory. Fills:
// memory at once, disk behind the answer through a bounded queue.
//
// An older entry never comes back: look-ups below see what still waits to be
// written, promotion never replaces a later start, and a fill that does not
// reach the disk hides what the disk has under its key.
//
// Thread-safe. Flush and destruction wait for the write-behind queue.
#ifndef FNCACHE_CACHE_STORE_TIERED_STORE_H_
#define FNCACHE_CACHE_STORE_TIERED_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/key/digest.h"
#include "cache/observer.h"
#include "cache/store/store.h"
#include "common/clock.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace fncache::cache::store {

// A function as lower tiers know it: by name and generation, because its index
// in the configuration may be another one after a restart.
struct StoredFunction {
  std::string name;
  std::string generation;
};

struct TieredOptions {
  // Bound of the memory tier, every overhead counted.
  uint64_t memory_bytes = 256ull << 20;
  // The largest `max_entry_bytes` of all functions.
  uint64_t max_entry_bytes = 16ull << 20;
  // Where the disk tier lives; absent = memory only.
  absl::optional<std::string> disk_dir;
  // Bound of what the disk tier's files occupy.
  uint64_t disk_bytes = 4ull << 30;
  // In the order of FunctionId.
  std::vector<StoredFunction> functions;
  // How long Open waits for another process to let go of `disk_dir`.
  absl::Duration lock_wait = absl::ZeroDuration();
  // Polled during that wait; true ends it (Open returns Cancelled).
  std::function<bool()> cancelled;
  // The write-behind queue: a fill that finds either bound reached is dropped.
  size_t write_queue_entries = 8192;
  uint64_t write_queue_bytes = 32ull << 20;
  // Look-ups on disk: threads, and how many may wait for one.
  int read_threads = 2;
  size_t read_queue_entries = 4096;
  // For how long the destructor goes on writing what is queued.
  absl::Duration drain = absl::Seconds(10);
  // RocksDB's environment; null is the default one. Not owned.
  rocksdb::Env* env = nullptr;
};

class TieredStore : public Store {
 public:
  // Opens the tiers. `clock` and `observer` (null = none) outlive the store.
  // Fails with DeadlineExceeded where the directory stays locked, Cancelled
  // where `cancelled` said so, another status where it cannot be used at all;
  // each names the directory. A damaged database is no failure: it is set aside
  // with an error in the log.
  static absl::StatusOr<std::unique_ptr<TieredStore>> Open(
      TieredOptions options, Clock* clock, Observer* observer);

  // The secret under which keys are made: kept in the disk tier's directory, or
  // drawn anew where there is none. Never log it.
  virtual const key::Seed& seed() const = 0;

  // Memory, then lower tiers, on the calling thread. For tests and tools.
  Found Get(const key::Key& key, absl::Time now) override = 0;

  // Never blocks.
  virtual Found GetMemory(const key::Key& key, absl::Time now) = 0;

  virtual bool has_lower() const = 0;
  // Looks in the lower tiers on an I/O thread and calls `done` there, exactly
  // once; at once, with a miss, where the queue of look-ups is full. Failures
  // are reported as those of `function`, whose look-up it is.
  // Precondition: has_lower().
  virtual void GetLower(const key::Key& key, FunctionId function,
                        absl::Time now,
                        absl::AnyInvocable<void(Found)> done) = 0;

  // Fills memory now, and with `lower` the lower tiers behind. The result is
  // the memory tier's.
  virtual PutResult Fill(const key::Key& key, EntryRef entry, bool lower,
                         absl::Time now) = 0;
  PutResult Put(const key::Key& key, EntryRef entry, absl::Time now) override {
    return Fill(key, std::move(entry), /*lower=*/true, now);
  }

  // The memory tier's figures; LowerStats are the disk tier's.
  StoreStats Stats() const override = 0;
  virtual StoreStats LowerStats() const = 0;
  // Fills waiting for the disk.
  virtual size_t QueueDepth() const = 0;
  // Look-ups waiting for an I/O thread.
  virtual size_t LookupQueueDepth() const = 0;

  // Returns once everything filled before the call is on disk or dropped.
  virtual void Flush() = 0;
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_TIERED_STORE_H_
