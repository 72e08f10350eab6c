// SPDX-License-Identifier: Apache-2.0
// Numbers and texts as the status page shows them to people.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_PROXY_TELEMETRY_PAGE_TEXT_H_
#define FNCACHE_PROXY_TELEMETRY_PAGE_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proxy/telemetry/labels.h"

namespace fncache::proxy::telemetry {

// Where there is nothing to show.
inline constexpr char kDash[] = "–";

// 1234567 -> 1,234,567.
std::string Count(int64_t n);
// The number and what it counts: "1 call", "2 calls".
std::string Counted(int64_t n, const char* one, const char* many);
// 1.5 MiB
std::string Bytes(uint64_t n);
// 61 µs, 2.5 ms, 2.00 s
std::string Latency(absl::Duration duration);
// 66.7 %; a dash for nothing. 99.96 % is not all: 99.9 %.
std::string Percent(absl::optional<double> share);
// OutcomeName without underscores: "stale hit".
std::string OutcomeWords(Outcome outcome);
// Seconds saved, which add up from fractions of one.
std::string Saved(absl::Duration duration);
// With enough digits to tell a call a minute from none.
std::string PerSecond(double count, absl::Duration length);

// A text as HTML, for an element's content or a quoted attribute. Paths that
// changed, writers and what functions said are of others' choosing: what does
// not show, or reorders what does, is spelled out as Printable has it.
std::string Shown(absl::string_view text);
// Such texts, one a line.
std::string ShownLines(const std::vector<std::string>& texts);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_PAGE_TEXT_H_
