// SPDX-License-Identifier: Apache-2.0
// The results of a replay, as text, JSON, CSV and a page. docs/what-if.md
// describes the JSON.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_RUNNER_REPLAY_REPORT_H_
#define FNCACHE_RUNNER_REPLAY_REPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "insight/explain/analysis.h"
#include "insight/whatif/engine.h"
#include "insight/whatif/recording.h"
#include "runner/load/results.h"
#include "runner/replay/options.h"

namespace fncache::runner::replay {

struct Group {
  std::string name;
  insight::whatif::Tally measured, predicted;
};

struct Row {
  Question question;
  insight::whatif::Outcome outcome;
  std::vector<Group> groups;  // by what was asked for
  std::vector<load::ThresholdResults> thresholds;
};

struct Report {
  std::string trace;
  std::string arrivals;
  std::string by;
  insight::whatif::Outcome measured;
  std::vector<Row> rows;
  std::vector<std::string> notes;
  // Of --suggest-masks, each with those above it, in `rows` behind the others.
  std::vector<insight::explain::MaskGain> masks;
};

std::string ReportText(const Report& report);
std::string ReportJson(const Report& report);
std::string ReportCsv(const Report& report);
std::string ReportPage(const Report& report);

// A miss ratio curve: bytes of memory, and what they gave.
std::string MrcCsv(
    const std::vector<std::pair<uint64_t, insight::whatif::Outcome>>& points);

}  // namespace fncache::runner::replay

#endif  // FNCACHE_RUNNER_REPLAY_REPORT_H_
