// SPDX-License-Identifier: Apache-2.0
// Times as Kubernetes objects write them: RFC 3339, read and written as Go's
// standard library does it, since every reader and writer of such objects that
// has to be matched is written in Go.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_TEXT_RFC3339_H_
#define FNCACHE_TEXT_RFC3339_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace fncache::text {

// The time that `text` is; nullopt where Go's time.Parse(time.RFC3339, text)
// fails. Go takes more than the RFC allows: an hour of one digit, a comma
// before the fraction, a fraction of any length and offsets up to 24:60. A
// fraction is dropped, because times of Kubernetes objects have whole seconds.
absl::optional<absl::Time> ParseRfc3339(absl::string_view text);

// Why ParseRfc3339 gives nothing for `text`, as Go says it: `parsing time "x"
// as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"`.
std::string Rfc3339Problem(absl::string_view text);

// In UTC with whole seconds: `2024-05-06T07:08:09Z`. A fraction is dropped.
std::string FormatRfc3339(absl::Time time);

}  // namespace fncache::text

#endif  // FNCACHE_TEXT_RFC3339_H_
