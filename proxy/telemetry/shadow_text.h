// SPDX-License-Identifier: Apache-2.0
// Shows the findings of `mode: shadow` and the verdict, for people and for
// programs.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_PROXY_TELEMETRY_SHADOW_TEXT_H_
#define FNCACHE_PROXY_TELEMETRY_SHADOW_TEXT_H_

#include <string>

#include "absl/types/span.h"
#include "proxy/telemetry/shadow_report.h"

namespace fncache::proxy::telemetry {

// One paragraph and tables for each function; its first line is its name and
// the verdict.
std::string ShadowText(absl::Span<const ShadowReport> reports);
// {"functions": [...]}, on one line.
std::string ShadowJson(absl::Span<const ShadowReport> reports);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_SHADOW_TEXT_H_
