// SPDX-License-Identifier: Apache-2.0
// Formats numbers and texts for people who read the status page.
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

// Stands for an absent value.
inline constexpr char kDash[] = "–";

// 1234567 -> 1,234,567.
std::string Count(int64_t n);
// The number with its noun: "1 call", "2 calls".
std::string Counted(int64_t n, const char* one, const char* many);
// 1.5 MiB
std::string Bytes(uint64_t n);
// 61 µs, 2.5 ms, 2.00 s
std::string Latency(absl::Duration duration);
// 66.7 %; a dash if absent. 99.96 % is not 100 %, so it gives 99.9 %.
std::string Percent(absl::optional<double> share);
// OutcomeName without underscores: "stale hit".
std::string OutcomeWords(Outcome outcome);
// Seconds saved; small durations keep fractions, because they add up.
std::string Saved(absl::Duration duration);
// Has enough digits to distinguish a call a minute from none.
std::string PerSecond(double count, absl::Duration length);

// A text as HTML, for an element's content or a quoted attribute. Changed
// paths, writers and functions' messages may have any characters. Invisible and
// reordering characters are spelled out as in Printable.
std::string Shown(absl::string_view text);
// These texts, one a line.
std::string ShownLines(const std::vector<std::string>& texts);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_PAGE_TEXT_H_
