// SPDX-License-Identifier: Apache-2.0
#include "insight/explain/byte_budget.h"

#include <algorithm>

namespace fncache::insight::explain {
namespace {

constexpr double kSavedSeconds = 4;
// A small request costs as much as one of this size: the tables, not the bytes.
constexpr uint64_t kLeastCost = 4 << 10;
// How often more or fewer composites are looked at, and how many always are.
constexpr absl::Duration kBalanced = absl::Milliseconds(100);
constexpr uint64_t kLeastAffordable = kAll / 64;
// After this, a composite that was left out has come again, if it exists:
// runners ask for each every few minutes.
constexpr absl::Duration kLeftOut = absl::Hours(1);

}  // namespace

ByteBudget::ByteBudget(const ByteBudgetOptions& options, absl::Time now)
    : filled_(now) {
  const auto bucket = [](uint64_t bytes) {
    const auto per_second = static_cast<double>(bytes);
    const double most = per_second * kSavedSeconds;
    return Bucket{per_second, most, most};
  };
  paths_ = bucket(options.paths_bytes_per_second);
  all_ = bucket(options.bytes_per_second);
}

void ByteBudget::Refill(absl::Time now) {
  // The clock may be set back.
  const double seconds = std::max(absl::ToDoubleSeconds(now - filled_), 0.0);
  filled_ = now;
  for (Bucket* const bucket : {&paths_, &all_}) {
    bucket->tokens = std::clamp(bucket->tokens + seconds * bucket->per_second,
                                -bucket->most, bucket->most);
  }
}

bool ByteBudget::PathsAffordable(absl::Time now) {
  Refill(now);
  return paths_.tokens > 0;
}

void ByteBudget::Spend(uint64_t bytes, bool with_paths) {
  const auto cost = static_cast<double>(std::max(bytes, kLeastCost));
  if (with_paths) paths_.tokens -= cost;
  all_.tokens -= cost;
}

void ByteBudget::Balance(absl::Time now) {
  if (now >= balanced_ && now - balanced_ < kBalanced) return;
  balanced_ = now;
  Refill(now);
  if (all_.tokens <= 0) {
    affordable_ = std::max(affordable_ / 2, kLeastAffordable);
  } else if (all_.tokens > all_.most / 2) {
    affordable_ = Twice(affordable_);
  }
  if (now - left_out_ > kLeftOut) always_seen_ = kAll;
  if (affordable_ == kAll) return;
  left_out_ = now;
  always_seen_ = std::min(always_seen_, affordable_);
}

}  // namespace fncache::insight::explain
