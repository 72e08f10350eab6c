// SPDX-License-Identifier: Apache-2.0
// Reads whatever bytes as saved results of `fncache load` and makes every
// report of them: nothing crashes, and what was read is written and read again
// as the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "runner/load/compare.h"
#include "runner/load/report_html.h"
#include "runner/load/results.h"
#include "runner/load/summary.h"

namespace load = fncache::runner::load;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMaxInput = 1 << 16;
  if (size > kMaxInput) return 0;
  const auto results = load::ResultsFromJson(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!results.ok()) return 0;
  load::SummaryText(*results);
  load::PercentileText(*results);
  load::CompareText(load::Compare(*results, *results));
  load::Regressions(load::Compare(*results, *results), 0.1);
  load::ReportHtml(*results, nullptr);
  load::ReportHtml(*results, &*results);
  const std::string json = load::ResultsToJson(*results);
  const auto again = load::ResultsFromJson(json);
  if (!again.ok() || load::ResultsToJson(*again) != json) std::abort();
  return 0;
}
