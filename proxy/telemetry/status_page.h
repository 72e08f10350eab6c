// SPDX-License-Identifier: Apache-2.0
// The pages for people. /statusz shows the daemon's version, state and
// settings; / lists the pages. All values are escaped. The pages follow the
// reader's light or dark theme, and fit a telephone. They need no script and no
// other source. If scripts run, the live page updates itself
// (status_page_script.h).
//
// Pure functions of their input; thread-safe.
#ifndef FNCACHE_PROXY_TELEMETRY_STATUS_PAGE_H_
#define FNCACHE_PROXY_TELEMETRY_STATUS_PAGE_H_

#include <string>

#include "proxy/telemetry/status.h"

namespace fncache::proxy::telemetry {

std::string RenderStatusPage(const Status& status);
// The same page with the script.
std::string RenderLivePage(const Status& status);

// The Content-Security-Policy of these pages. It allows only this style sheet
// and this script, which may fetch the daemon's pages.
const std::string& PagePolicy();

std::string RenderIndexPage(const std::string& version);

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_STATUS_PAGE_H_
