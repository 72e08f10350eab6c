// SPDX-License-Identifier: Apache-2.0
// The pages for people: /statusz says what the daemon is, how it does and what
// it was told; / says which pages there are. Nothing that is in them can break
// out of the text it stands in; they follow the reader's light or dark theme,
// and fit a telephone. They need no script and nothing from elsewhere; where
// scripts run, the live page keeps itself up to date (status_page_script.h).
//
// Pure functions of their input; thread-safe.
#ifndef FNCACHE_PROXY_TELEMETRY_STATUS_PAGE_H_
#define FNCACHE_PROXY_TELEMETRY_STATUS_PAGE_H_

#include <string>

#include "proxy/telemetry/status.h"

namespace fncache::proxy::telemetry {

std::string RenderStatusPage(const Status& status);
// The same with that script.
std::string RenderLivePage(const Status& status);

// The Content-Security-Policy of these pages: this style sheet, this script,
// which may fetch what the daemon serves, and nothing else.
const std::string& PagePolicy();

std::string RenderIndexPage(const std::string& version);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_STATUS_PAGE_H_
