// SPDX-License-Identifier: Apache-2.0
#include "runner/load/daemons.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "runner/scrape/scrape.h"

namespace fncache::runner::load {
namespace {

constexpr absl::Duration kScrapePatience = absl::Seconds(5);

}  // namespace

absl::Status Daemons::Before() {
  auto counts = Read();
  if (!counts.ok()) return counts.status();
  before_ = *std::move(counts);
  return absl::OkStatus();
}

absl::Status Daemons::After(uint64_t tolerated, LoadResults* results) const {
  if (addresses_.empty()) return absl::OkStatus();
  const auto after = Read();
  if (!after.ok()) return after.status();
  DaemonCounts counts;
  for (const auto& [outcome, count] : *after) {
    const auto was = before_.find(outcome);
    counts.outcomes[outcome] = count - (was == before_.end() ? 0 : was->second);
  }
  std::map<std::string, uint64_t> here;
  for (const CallResults& calls : results->calls) {
    here[calls.outcome] += calls.count;
  }
  // The daemon's stale is one that was forwarded past its time, and its
  // stale_hit what is stale here; its request one that the caller's
  // directives sent on.
  std::map<std::string, uint64_t> there = {
      {"hit", counts.outcomes["hit"]},
      {"stale", counts.outcomes["stale_hit"]},
      {"miss", counts.outcomes["miss"] + counts.outcomes["stale"]},
      {"collapsed", counts.outcomes["collapsed"]},
      {"bypass", counts.outcomes["bypass"] + counts.outcomes["request"]}};
  counts.agrees = true;
  for (const auto& [outcome, count] : there) {
    const uint64_t ours = here[outcome];
    const uint64_t apart = ours > count ? ours - count : count - ours;
    if (apart <= tolerated) continue;
    counts.agrees = false;
    absl::StrAppend(&counts.disagreement,
                    counts.disagreement.empty() ? "" : "; ", outcome, ": ",
                    ours, " measured here, ", count, " counted there");
  }
  results->daemon = std::move(counts);
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, uint64_t>> Daemons::Read() const {
  std::map<std::string, uint64_t> counts;
  for (const std::string& address : addresses_) {
    const auto text = scrape::Get(address, "/metrics", kScrapePatience);
    if (!text.ok()) return text.status();
    for (const char* outcome : {"hit", "stale_hit", "miss", "stale",
                                "collapsed", "bypass", "request"}) {
      counts[outcome] += static_cast<uint64_t>(
          std::llround(scrape::Sum(*text, "fncache_requests_total",
                                   absl::StrCat("outcome=\"", outcome, "\""))));
    }
  }
  return counts;
}

}  // namespace fncache::runner::load
