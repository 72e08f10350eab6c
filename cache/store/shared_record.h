// SPDX-License-Identifier: Apache-2.0
// SharedRecord: this process's view of the record of bans on the shared server,
// and of the server's clock. From both follows whether the tier may be used.
//
// A round (Sync) asks for the record's beginning and the server's time. It
// reads the record if that beginning is another one, and adds its bans to those
// of this process. It writes the union by compare-and-set if the record lacks
// any of it. A server that lost the record, or has an older copy, so gets it
// again.
//
// A record that does not open counts as a purge of everything.
//
// Thread-safe.
#ifndef FNCACHE_CACHE_STORE_SHARED_RECORD_H_
#define FNCACHE_CACHE_STORE_SHARED_RECORD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "cache/store/bans.h"
#include "cache/store/seal.h"
#include "cache/store/stored_bans.h"
#include "common/clock.h"
#include "common/log_limiter.h"
#include "common/mutex.h"
#include "resp/server.h"

namespace fncache::cache::store {

class SharedRecord {
 public:
  // How long the tier is used after the record was last read, and how much the
  // clocks may differ.
  static constexpr absl::Duration kRecordLimit = absl::Seconds(10);
  static constexpr absl::Duration kClockLimit = absl::Seconds(1);
  // How long the ban of a key stays in the record.
  static constexpr absl::Duration kKeyLasts = absl::Hours(1);
  // Rounds follow each other every second.
  static constexpr absl::Duration kSilence = absl::Seconds(2);
  // A purge reaches this far past the server's time.
  static constexpr absl::Duration kPurgeAhead = absl::Seconds(1);
  static constexpr size_t kMostBytes = 16 << 20;

  // The objects that it refers to outlive the record.
  struct Options {
    resp::Server* server = nullptr;
    const Seal* seal = nullptr;
    Bans* bans = nullptr;
    Clock* clock = nullptr;
    // As SharedStoreOptions has them (shared_store.h). `boottime` is not null.
    std::function<void(const Bans::Learned&)> learned;
    std::function<absl::Duration()> boottime;
  };
  explicit SharedRecord(Options options);

  // One round. OK if the record has every ban of this process. Unavailable with
  // the reason otherwise. One round at a time.
  absl::Status Sync();
  // From now on, no command is sent.
  void Stop() { stopped_ = true; }

  // Whether the tier may be used: the record was read within kRecordLimit, and
  // the clocks differ by at most kClockLimit.
  bool usable() const;
  // The same, its node was up when last seen, and the last round could read the
  // record. (After one that could not, others may have purged meanwhile.)
  bool up() const { return up_ && looked_ && usable(); }
  // False: no round has ended within kSilence, not even in vain. So the process
  // was stopped, and may have missed a purge.
  bool heard(absl::Time now) const {
    return absl::ToUnixNanos(now) - heard_.load(std::memory_order_acquire) <=
           absl::ToInt64Nanoseconds(kSilence);
  }
  // The later one of `now` and the server's time, which counts as at most 10
  // minutes ahead.
  absl::Time ServerTime(absl::Time now) const;

  struct State {
    bool up = false;
    absl::Time since;     // it has been up, or not, since then
    std::string why;      // if not up: the reason
    std::string version;  // of the node that has the record
    absl::Duration round_trip;
    // How far this process's clock is ahead of that node's.
    absl::Duration clock_difference;
    // Since the record was read or found unchanged; infinite if it never was.
    absl::Duration bans_age = absl::InfiniteDuration();
    // The record has every ban of this process.
    bool bans_written = false;
  };
  // Also logs a change of `up`.
  State Describe();

 private:
  // The reply to kLookScript.
  struct Look {
    std::string beginning;
    absl::Time server_time;
    absl::Duration sent;  // on the clock that counts suspension
    bool apart = false;
    // Bans were made up to this time when the look was sent.
    absl::Time latest;
  };
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::min();
  static constexpr uint64_t kUnsettled = std::numeric_limits<uint64_t>::max();

  absl::Status Round(std::vector<Bans::Learned>* news)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sync_mutex_);
  absl::Status LookAtRecord(Look* look);
  // A round that began then has learned what there is, or cannot. It counts
  // unless the process was stopped meanwhile.
  void Heard(absl::Duration began);
  // Reads and learns a record that begins in another way than the known one.
  absl::Status ReadRecord(const Look& look, absl::Time now,
                          std::vector<Bans::Learned>* news)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sync_mutex_);
  // Bans of a later time are limited to this one. Others may be made, and the
  // process may be suspended, after the look.
  absl::Time LatestBan(const Look& look) const {
    return look.latest + (options_.boottime() - look.sent);
  }
  std::string WhyApart() const;

  const Options options_;
  const std::string name_;
  const absl::Duration created_;  // on the clock that counts suspension
  std::atomic<bool> stopped_{false};

  Mutex sync_mutex_;
  // How the record began when it was last read or written; absent at first.
  absl::optional<std::string> known_ ABSL_GUARDED_BY(sync_mutex_);
  // The record's bans then.
  StoredBans record_ ABSL_GUARDED_BY(sync_mutex_);
  // False: the record is to be replaced, whatever its bans are.
  bool sound_ ABSL_GUARDED_BY(sync_mutex_) = true;

  // The number of changes of the bans (Bans::changes) that the record had when
  // it was last compared or written.
  uint64_t own_ ABSL_GUARDED_BY(sync_mutex_) = 0;
  // The same; kUnsettled once another record was read.
  std::atomic<uint64_t> settled_{kUnsettled};
  // When the last successful look was sent, in nanoseconds of the clock that
  // counts suspension.
  std::atomic<int64_t> read_{kNever};
  // The last round could read the record.
  std::atomic<bool> looked_{false};
  // When a round last ended, Unix nanoseconds of the clock.
  std::atomic<int64_t> heard_;
  std::atomic<bool> apart_{false};
  std::atomic<int64_t> difference_{0};  // nanoseconds
  std::atomic<int64_t> round_trip_{0};  // nanoseconds

  LogLimiter unopened_lines_{absl::Minutes(1)};

  Mutex state_mutex_;
  std::atomic<bool> up_{false};  // written under the mutex
  absl::Time since_ ABSL_GUARDED_BY(state_mutex_);
  bool logged_ ABSL_GUARDED_BY(state_mutex_) = false;  // that it is down
  // The reason of the last round, if that failed although the node was up.
  std::string failure_ ABSL_GUARDED_BY(state_mutex_);
};

}  // namespace fncache::cache::store

#endif  // FNCACHE_CACHE_STORE_SHARED_RECORD_H_
