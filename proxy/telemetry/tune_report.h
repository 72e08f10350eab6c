// SPDX-License-Identifier: Apache-2.0
// TuneReport: what tuning has done for one function since the start, and which
// of its steps read drift or vary.
//
// Plain values. Names are as requests have them, not escaped.
#ifndef FNCACHE_PROXY_TELEMETRY_TUNE_REPORT_H_
#define FNCACHE_PROXY_TELEMETRY_TUNE_REPORT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proxy/telemetry/labels.h"

namespace fncache::proxy::telemetry {

struct TuneFigures {
  uint64_t hits = 0;  // across drift
  uint64_t revoked_hits = 0;
  std::array<uint64_t, kTuneAnswers> questions{};
  std::array<uint64_t, kTuneResults> proofs{};
  // Now. A key repeats if its answer was given often enough and is not proven.
  size_t keys_repeating = 0;
  size_t keys_proven = 0;
  size_t steps_read = 0;
  size_t steps_vary = 0;
  double budget = 0;  // in questions

  uint64_t asked() const {
    uint64_t sum = 0;
    for (const uint64_t of_answer : questions) sum += of_answer;
    return sum;
  }
};

struct TuneReport {
  // A step that reads drift or varies.
  struct Step {
    std::string input_kind;    // empty: it has no input
    std::string input_digest;  // the first digits
    std::string api_version;   // of the composite
    std::string kind;          // of the composite
    std::string reads;         // "times", "versions", "drift"; or nothing
    absl::Time read_since = absl::InfiniteFuture();    // infinite: reads none
    absl::Time varies_since = absl::InfiniteFuture();  // infinite: does not
    absl::Time no_questions_until = absl::InfinitePast();
    std::string seen;  // the composite: "Bucket team-a/logs"
  };

  std::string function;
  std::string state;  // "on", "off", or "idle": on, and `mode` is not
  TuneFigures figures;
  absl::Duration saved;          // function time of hits across drift
  absl::Duration question_time;  // that questions took
  std::vector<Step> steps;
};

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_TUNE_REPORT_H_
