// SPDX-License-Identifier: Apache-2.0
// The counts of a daemon between two readings.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_PROXY_ADMIN_CHANGE_H_
#define FNCACHE_PROXY_ADMIN_CHANGE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proto/admin.pb.h"
#include "proxy/admin/actions.h"

namespace fncache::proxy::admin {

struct Change {
  // The time between the readings; positive.
  absl::Duration length;
  // There was no reading before, or the daemon was restarted: the counts are
  // those since its start.
  bool since_start = false;
  // Counters have their increase between the readings; all other fields are as
  // they are now.
  v1::StatsResponse counted;
};

Change ChangeBetween(const absl::optional<v1::StatsResponse>& before,
                     const v1::StatsResponse& now);

using Counts = google::protobuf::RepeatedPtrField<v1::Count>;
uint64_t Sum(const Counts& counts);
// The count with this name; 0 if there is none.
uint64_t CountOf(const Counts& counts, absl::string_view name);

// Hits divided by look-ups; absent without a look-up.
absl::optional<double> HitRate(const v1::FunctionStats& function);

uint64_t CountIn(const v1::Latency& latency);
// Zero if nothing was observed.
absl::Duration Mean(const v1::Latency& latency);
// The mean of the bucket in which the quantile lies; zero if nothing was
// observed.
absl::Duration Quantile(const v1::Latency& latency, double q);
// RunFunction's latency of one outcome; null if there is none.
const v1::Latency* LatencyOf(const v1::FunctionStats& function,
                             absl::string_view outcome);

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_CHANGE_H_
