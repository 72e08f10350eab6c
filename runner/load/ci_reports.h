// SPDX-License-Identifier: Apache-2.0
// The results of a load run in the forms that CI systems show: JUnit's XML, a
// summary in Markdown, and the time line as CSV.
//
// Pure functions, thread-safe. Texts of others are escaped.
#ifndef FNCACHE_RUNNER_LOAD_CI_REPORTS_H_
#define FNCACHE_RUNNER_LOAD_CI_REPORTS_H_

#include <string>
#include <vector>

#include "runner/load/results.h"
#include "runner/load/verdict.h"

namespace fncache::runner::load {

// A test case for each check.
std::string JunitText(const LoadResults& results,
                      const std::vector<Check>& checks);

// Checks that fail, warnings, verdict, latencies, errors.
std::string MarkdownText(const LoadResults& results,
                         const std::vector<Check>& checks);

// A row for each interval of the time line, about a second each, under the
// names that these values have in the JSON.
std::string CsvText(const LoadResults& results);

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_CI_REPORTS_H_
