// SPDX-License-Identifier: Apache-2.0
// What a trace holds: for whoever wants to know what can be asked of it.
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

// Of a number of values.
struct Spread {
  uint64_t count = 0;
  double least = 0, median = 0, p99 = 0, most = 0;
};

struct StepInfo {
  std::string function, step;  // the step is "" where nobody knows it
  uint64_t calls = 0;
  std::map<std::string, uint64_t> outcomes;
  Spread request_bytes, response_bytes;
  // In seconds: as the function says, and as callers were told.
  Spread function_ttl, told_ttl;
  Spread cost;
};

struct Info {
  std::string writer, writer_version, level;
  double sample = 1;
  std::map<std::string, std::string> settings;
  int64_t from = 0, until = 0;  // nanoseconds since the epoch
  uint64_t calls = 0, composites = 0, dropped = 0, damaged = 0;
  // "" where nobody marked phases.
  std::map<std::string, std::map<std::string, uint64_t>> outcomes_by_phase;
  uint64_t pipelines = 0, by_timer = 0, by_event = 0;
  std::vector<StepInfo> steps;
};

Info InfoOf(const Recording& recording);

std::string InfoText(const Info& info);
std::string InfoJson(const Info& info);

}  // namespace fncache::insight::whatif

#endif  // FNCACHE_INSIGHT_WHATIF_INFO_H_
