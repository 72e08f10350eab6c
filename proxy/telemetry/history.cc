// SPDX-License-Identifier: Apache-2.0
#include "proxy/telemetry/history.h"

#include <algorithm>
#include <utility>

namespace fncache::proxy::telemetry {

History::History(const Instruments* instruments, Clock* clock)
    : instruments_(instruments),
      clock_(clock),
      hour_(clock->Now(), instruments->Read()) {
  Tick();
}

void History::Tick() {
  const absl::Time now = clock_->Now();
  DaemonCounts counts = instruments_->Read();
  const std::vector<Instruments::TierReading> tiers = instruments_->ReadTiers();
  MutexLock lock(&mutex_);
  hour_.Add(now, counts);
  past_.push_back({now, std::move(counts)});
  while (past_.size() > 1 && past_[1].when <= now - kSpan) past_.pop_front();
  for (const Instruments::TierReading& tier : tiers) {
    absl::optional<absl::Time>& since =
        down_since_[static_cast<size_t>(tier.tier)];
    if (tier.stats.up) {
      since = absl::nullopt;
    } else if (!since.has_value()) {
      since = now;
    }
  }
}

History::Reading History::Read() const {
  Reading reading;
  reading.now = clock_->Now();
  reading.total = instruments_->Read();
  reading.tiers = instruments_->ReadTiers();
  MutexLock lock(&mutex_);
  // The youngest reading that is at least a minute old, else the oldest one.
  auto from = std::partition_point(
      past_.begin(), past_.end(),
      [&](const Past& past) { return past.when <= reading.now - kSpan; });
  if (from != past_.begin()) --from;
  reading.recent = reading.total.Since(from->counts);
  reading.recent_length = reading.now - from->when;
  reading.hour = hour_.Read(reading.now, reading.total);
  for (const Instruments::TierReading& tier : reading.tiers) {
    const auto& since = down_since_[static_cast<size_t>(tier.tier)];
    reading.down_since.push_back(
        tier.stats.up ? absl::nullopt
                      : absl::make_optional(since.value_or(reading.now)));
  }
  return reading;
}

}  // namespace fncache::proxy::telemetry
