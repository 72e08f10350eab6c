// SPDX-License-Identifier: Apache-2.0
// ShadowReport: the findings of `mode: shadow` about one function.
// shadow_verdict.h judges them, and shadow_text.h shows them.
//
// Plain values.
#ifndef FNCACHE_PROXY_TELEMETRY_SHADOW_REPORT_H_
#define FNCACHE_PROXY_TELEMETRY_SHADOW_REPORT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proxy/telemetry/labels.h"

namespace fncache::proxy::telemetry {

struct ShadowReport {
  // With fewer hits and no difference there is no verdict yet.
  static constexpr uint64_t kEnough = 300;

  struct Count {
    uint64_t hits = 0;         // compared hits
    uint64_t differences = 0;  // hits among them that differed
    double rate() const {
      return hits == 0
                 ? 0
                 : static_cast<double>(differences) / static_cast<double>(hits);
    }
  };
  struct Mask {
    std::string path;
    uint64_t values = 0;  // distinct values in requests, an estimate
    Count changed;        // hits by masks in which its value had changed
    Count alone;          // hits in which no other mask's value had changed
  };
  struct Path {
    std::string path;  // of the answer, `*` for list elements
    // Hits that differed at this path; perhaps too high, never too low.
    std::array<uint64_t, kShadowBys> differences{};
    absl::Time first;
    absl::Time last;
    // How many of `differences` may be another path's.
    std::array<uint64_t, kShadowBys> inherited{};
    // How many differences by masks had only one changed mask, by its index in
    // `masks`; perhaps too low, never too high. Empty: none.
    std::vector<uint32_t> alone;

    uint64_t of(ShadowBy by) const {
      return differences[static_cast<size_t>(by)];
    }
    uint64_t certain(ShadowBy by) const {
      return of(by) - inherited[static_cast<size_t>(by)];
    }
    uint64_t sum() const {
      uint64_t all = 0;
      for (const uint64_t by : differences) all += by;
      return all;
    }
  };

  std::string function;
  absl::Time since = absl::InfiniteFuture();  // the first call; or none yet
  uint64_t lookups = 0;
  std::array<Count, kShadowBys> by{};  // by ShadowBy
  uint64_t uncompared = 0;  // would have been hits; no answer to compare
  // Estimated numbers, in look-ups and in hits by masks.
  uint64_t composites = 0;
  uint64_t mask_composites = 0;
  uint64_t masked_values = 0;  // combinations of all masked values
  uint64_t mask_masked_values = 0;
  // Requests that were too large to find the masks whose values changed.
  uint64_t unread = 0;
  std::vector<Mask> masks;  // in the order of MaskSet::canonical
  // The paths that differed, the most frequent one first. `unexamined` counts
  // the differences of answers whose paths were not sought.
  std::vector<Path> paths;
  std::array<uint64_t, kShadowBys> unexamined{};
  // Differences by masks of composites without an exact repeat. Only such a
  // repeat shows whether the function varies for them.
  uint64_t unrepeated = 0;

  const Count& of(ShadowBy what) const { return by[static_cast<size_t>(what)]; }
  uint64_t unexamined_of(ShadowBy what) const {
    return unexamined[static_cast<size_t>(what)];
  }
};

}  // namespace fncache::proxy::telemetry

#endif  // FNCACHE_PROXY_TELEMETRY_SHADOW_REPORT_H_
