// SPDX-License-Identifier: Apache-2.0
// Numbers of a load as people read them.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_LOAD_FORMAT_H_
#define FNCACHE_RUNNER_LOAD_FORMAT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace fncache::runner::load {

// Three digits with a unit: 812us, 1.23ms, 2.50s, 3m20s.
std::string FormatSeconds(double seconds);
// 12.3/s, 1234/s.
std::string FormatRate(double a_second);
// 81.2%; "-" of none.
std::string FormatPercent(absl::optional<double> share);
// A threshold's value: its expression says whether it is a time.
std::string FormatValue(absl::string_view expression,
                        absl::optional<double> value);

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_FORMAT_H_
