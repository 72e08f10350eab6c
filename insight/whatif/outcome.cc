// SPDX-License-Identifier: Apache-2.0
#include "insight/whatif/outcome.h"

namespace fncache::insight::whatif {
namespace {

absl::optional<double> Fraction(uint64_t part, uint64_t rest) {
  if (part + rest == 0) return absl::nullopt;
  return static_cast<double>(part) / static_cast<double>(part + rest);
}

}  // namespace

absl::optional<double> Tally::HitRate() const {
  return Fraction(hits + stale + collapsed, misses);
}

absl::optional<double> Tally::ByteHitRate() const {
  return Fraction(hit_bytes, miss_bytes);
}

void Tally::Add(const Tally& other) {
  hits += other.hits;
  stale += other.stale;
  collapsed += other.collapsed;
  misses += other.misses;
  bypasses += other.bypasses;
  hit_bytes += other.hit_bytes;
  miss_bytes += other.miss_bytes;
  function_runs += other.function_runs;
  function_seconds += other.function_seconds;
}

Outcome Measured(const Recording& recording, bool by_composite) {
  Counting counting(recording, by_composite);
  bool ages_known = false;
  for (const Call& call : recording.calls) ages_known |= call.age > 0;
  for (const Call& call : recording.calls) {
    if (!call.measured) continue;
    ++counting.outcome()->calls;
    switch (call.outcome) {
      case trace::Outcome::kHit:
      case trace::Outcome::kStaleHit:
      case trace::Outcome::kCollapsed:
        counting.Hit(call, call.outcome == trace::Outcome::kHit ? &Tally::hits
                           : call.outcome == trace::Outcome::kStaleHit
                               ? &Tally::stale
                               : &Tally::collapsed);
        if (ages_known) counting.Age(call.age);
        break;
      case trace::Outcome::kMiss:
      case trace::Outcome::kStale:
        counting.Run(call, &Tally::misses, call.cost);
        break;
      case trace::Outcome::kBypass:
      case trace::Outcome::kRequest:
      case trace::Outcome::kNone:
      case trace::Outcome::kUnknown:
        counting.Run(call, &Tally::bypasses, call.cost);
        break;
    }
  }
  for (const Pipeline& pipeline : recording.pipelines) {
    if (pipeline.measured) ++counting.outcome()->pipelines;
  }
  return counting.Take();
}

}  // namespace fncache::insight::whatif
