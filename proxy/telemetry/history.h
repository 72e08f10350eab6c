// SPDX-License-Identifier: Apache-2.0
// History: what the instruments read during the last minute, so that the status
// page can tell the last minute beside all that was since the start, and what
// became of calls in each minute of the last hour.
//
// A ring of readings, one every kInterval, taken on whatever thread calls Tick:
// those who count pay nothing for it. What the "last minute" covers is what was
// counted since the youngest reading that is at least a minute old; so it is up
// to kInterval longer than a minute, and shorter only right after the start.
// Rates are made with its real length, so late ticks do not falsify them.
//
// Thread-safe. The instruments and the clock outlive it.
#ifndef FNCACHE_PROXY_TELEMETRY_HISTORY_H_
#define FNCACHE_PROXY_TELEMETRY_HISTORY_H_

#include <deque>
#include <vector>

#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "proxy/telemetry/instruments.h"
#include "proxy/telemetry/outcome_hour.h"

namespace fncache::proxy::telemetry {

class History {
 public:
  static constexpr absl::Duration kInterval = absl::Seconds(10);
  static constexpr absl::Duration kSpan = absl::Minutes(1);

  // Takes the first reading.
  History(const Instruments* instruments, Clock* clock);

  // Takes a reading. To be called every kInterval.
  void Tick();

  // A reading of now, and its difference to the one of a minute ago.
  struct Reading {
    absl::Time now;
    DaemonCounts total;
    DaemonCounts recent;
    absl::Duration recent_length;
    OutcomeHour::Hour hour;
    std::vector<Instruments::TierReading> tiers;
    // For each of `tiers`: since when it has been down, as far as ticks saw;
    // nothing while it is up.
    std::vector<absl::optional<absl::Time>> down_since;
  };
  Reading Read() const;

 private:
  struct Past {
    absl::Time when;
    DaemonCounts counts;
  };

  const Instruments* const instruments_;
  Clock* const clock_;
  mutable Mutex mutex_;
  // Oldest first; only the first may be more than kSpan old.
  std::deque<Past> past_ ABSL_GUARDED_BY(mutex_);
  absl::optional<absl::Time> down_since_[kTiers] ABSL_GUARDED_BY(mutex_);
  OutcomeHour hour_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_HISTORY_H_
