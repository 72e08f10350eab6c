// SPDX-License-Identifier: Apache-2.0
// Durations as Go writes them: settings, flags and the report of settings use
// them, so that an operator can copy a value from any Go tool.
//
// The names say Go because argument-dependent look-up finds abseil's own.
// Pure functions, thread-safe.
#ifndef FNCACHE_COMMON_DURATION_H_
#define FNCACHE_COMMON_DURATION_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fncache {

// The forms that ParseGoDuration accepts, for messages: "a duration such as
// ...".
extern const char kDurationForm[];

// Parses the texts that Go's time.ParseDuration does: an optional sign, then
// one or more decimal numbers with a unit (h, m, s, ms, us or µs, ns) each, or
// a bare 0. Digits below a nanosecond are cut off. InvalidArgument says what is
// wrong and what is accepted, also where the sum leaves Go's range (about 292
// years).
absl::StatusOr<absl::Duration> ParseGoDuration(absl::string_view text);
// The same for a flag whose value is above 0. The error says what is expected.
absl::StatusOr<absl::Duration> ParsePositiveGoDuration(absl::string_view text);

// As Go's Duration.String: 0s, 1.5ms, 1h30m0s. Cut off to nanoseconds; beyond
// Go's range the nearest that Go has. ParseGoDuration reads it back exactly.
std::string FormatGoDuration(absl::Duration duration);

}  // namespace fncache

#endif  // FNCACHE_COMMON_DURATION_H_
