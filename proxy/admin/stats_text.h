// SPDX-License-Identifier: Apache-2.0
// What a daemon counted, as a table that fits a terminal, and as JSON.
//
// Names that users chose are escaped. Pure functions, thread-safe.
#ifndef FNCACHE_PROXY_ADMIN_STATS_TEXT_H_
#define FNCACHE_PROXY_ADMIN_STATS_TEXT_H_

#include <cstddef>
#include <string>

#include "proxy/admin/change.h"

namespace fncache::proxy::admin {

struct Extent {
  size_t columns = 100;
  size_t rows = 0;  // 0 = as many as it takes
};

// `now` and what was counted since the look before. Lines that begin with "! "
// are what somebody should look at. With few rows functions are left out, the
// least busy ones, and said to be; narrower than 80 columns lines are too long.
std::string StatsTable(const v1::StatsResponse& now, const Change& change,
                       const Extent& extent);

// The same, and all the rest, as an object on one line.
std::string StatsJson(const v1::StatsResponse& now, const Change& change);

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_STATS_TEXT_H_
