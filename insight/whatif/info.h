// SPDX-License-Identifier: Apache-2.0
// A summary of a trace: it shows which questions the trace can answer.
//
// Pure functions of the Recording; thread-safe.
#ifndef FNCACHE_INSIGHT_WHATIF_INFO_H_
#define FNCACHE_INSIGHT_WHATIF_INFO_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "insight/whatif/recording.h"

namespace fncache::insight::whatif {

// The distribution of some values.
struct Spread {
  uint64_t count = 0;
  double least = 0, median = 0, p99 = 0, most = 0;
};

struct StepInfo {
  std::string function, step;  // the step is "" where it is unknown
  uint64_t calls = 0;
  std::map<std::string, uint64_t> outcomes;
  Spread request_bytes, response_bytes;
  // In seconds: as the function says, and as callers got it.
  Spread function_ttl, told_ttl;
  Spread cost;
};

struct Info {
  std::string writer, writer_version, level;
  double sample = 1;
  std::map<std::string, std::string> settings;
  int64_t from = 0, until = 0;  // nanoseconds since the epoch
  uint64_t calls = 0, composites = 0, dropped = 0, damaged = 0;
  // "" where the trace marks no phases.
  std::map<std::string, std::map<std::string, uint64_t>> outcomes_by_phase;
  uint64_t pipelines = 0, by_timer = 0, by_event = 0;
  std::vector<StepInfo> steps;
};

Info InfoOf(const Recording& recording);

std::string InfoText(const Info& info);
std::string InfoJson(const Info& info);

}  // namespace fncache::insight::whatif

#endif  // FNCACHE_INSIGHT_WHATIF_INFO_H_
