// SPDX-License-Identifier: Apache-2.0
// The pages for people: /statusz says what the daemon is, how it does and what
// it was told; / says which pages there are. No script; nothing that is in them
// can break out of the text it stands in; they follow the reader's light or
// dark theme, and fit a telephone.
//
// Pure functions of their input; thread-safe.
#ifndef FNCACHE_PROXY_TELEMETRY_STATUS_PAGE_H_
#define FNCACHE_PROXY_TELEMETRY_STATUS_PAGE_H_

#include <string>

#include "proxy/telemetry/status.h"

namespace fncache::proxy::telemetry {

std::string RenderStatusPage(const Status& status);

std::string RenderIndexPage(const std::string& version);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_STATUS_PAGE_H_
