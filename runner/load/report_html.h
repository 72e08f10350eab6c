// SPDX-License-Identifier: Apache-2.0
// A load's results as one page that needs no network and no scripts: light or
// dark as the browser is, for phones and desktops.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_LOAD_REPORT_HTML_H_
#define FNCACHE_RUNNER_LOAD_REPORT_HTML_H_

#include <string>

#include "runner/load/results.h"

namespace fncache::runner::load {

// `other` (may be null) is a later run, which is drawn over the first.
std::string ReportHtml(const LoadResults& results, const LoadResults* other);

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_REPORT_HTML_H_
