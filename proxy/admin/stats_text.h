// SPDX-License-Identifier: Apache-2.0
// Shows a daemon's counts, as a table that fits a terminal, and as JSON.
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
  size_t rows = 0;  // 0 = no limit
};

// Shows `now`, and the counts since the reading before. Lines that begin with
// "! " need an operator's attention. With few rows the least busy functions are
// left out, and a line says so. Below 80 columns the lines are too long.
std::string StatsTable(const v1::StatsResponse& now, const Change& change,
                       const Extent& extent);

// The same facts and all others, as a JSON object on one line.
std::string StatsJson(const v1::StatsResponse& now, const Change& change);

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_STATS_TEXT_H_
