// SPDX-License-Identifier: Apache-2.0
// Builds the status page's tables.
//
// Pure functions that append to a page; thread-safe.
#ifndef FNCACHE_PROXY_TELEMETRY_PAGE_TABLE_H_
#define FNCACHE_PROXY_TELEMETRY_PAGE_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fncache::proxy::telemetry {

// A column: its name and what it means.
struct Column {
  const char* name;
  const char* meaning;
  const char* classes = "";
};

void Head(const std::vector<Column>& columns, std::string* out);

// A cell of two lines: the last minute, and below it the time since the start.
void TwoLines(absl::string_view column, const std::string& recent,
              const std::string& total, absl::string_view classes,
              std::string* out);
void TwoCounts(absl::string_view column, uint64_t recent, uint64_t total,
               std::string* out);
// Writes these lines for a figure that should be zero. If it is not, they have
// the colour of a fault.
void TwoFaults(const char* column, uint64_t recent, uint64_t total,
               std::string* out);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_PAGE_TABLE_H_
