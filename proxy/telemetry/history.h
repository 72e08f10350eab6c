// SPDX-License-Identifier: Apache-2.0
// History: the readings of the instruments during the last minute, and the
// outcomes of calls in each minute of the last hour. With it the status page
// shows the last minute beside the time since the start.
//
// A ring of readings, one every kInterval, taken on the thread that calls Tick:
// calls pay nothing for it. The "last minute" begins with the youngest reading
// that is at least a minute old. So it is up to kInterval longer than a minute,
// and shorter only right after the start. Rates use its real length, so late
// ticks do not falsify them.
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

  // Takes a reading. Call it every kInterval.
  void Tick();

  // A reading at this moment, and its difference to that of a minute ago.
  struct Reading {
    absl::Time now;
    DaemonCounts total;
    DaemonCounts recent;
    absl::Duration recent_length;
    OutcomeHour::Hour hour;
    std::vector<Instruments::TierReading> tiers;
    // For each of `tiers`: the time of the tick that first saw it down; absent
    // while it is up.
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
