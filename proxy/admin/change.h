// SPDX-License-Identifier: Apache-2.0
// What a daemon counted between two looks at it.
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
  // How long it took; positive.
  absl::Duration length;
  // There was no look before, or the daemon has been started anew: it is all
  // that was counted.
  bool since_start = false;
  // Counters are what was counted meanwhile; everything else is as it is now.
  v1::StatsResponse counted;
};

Change ChangeBetween(const absl::optional<v1::StatsResponse>& before,
                     const v1::StatsResponse& now);

using Counts = google::protobuf::RepeatedPtrField<v1::Count>;
uint64_t Sum(const Counts& counts);
// Of one name; 0 where there is none.
uint64_t CountOf(const Counts& counts, absl::string_view name);

// Hits among look-ups; nothing where there was none.
absl::optional<double> HitRate(const v1::FunctionStats& function);

uint64_t CountIn(const v1::Latency& latency);
// Zero where nothing was observed.
absl::Duration Mean(const v1::Latency& latency);
// The mean of the part in which the quantile lies; zero where nothing was
// observed.
absl::Duration Quantile(const v1::Latency& latency, double q);
// RunFunction's latency of one outcome; null where there is none.
const v1::Latency* LatencyOf(const v1::FunctionStats& function,
                             absl::string_view outcome);

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_CHANGE_H_
