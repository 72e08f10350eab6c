// SPDX-License-Identifier: Apache-2.0
#include "metrics/histogram.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "common/log.h"

namespace fncache::metrics {

Buckets::Buckets(const std::vector<absl::Duration>& bounds,
                 const std::vector<absl::Duration>& exposed) {
  for (const absl::Duration bound : bounds) {
    const int64_t n = absl::ToInt64Nanoseconds(bound);
    const uint64_t last = bounds_.empty() ? 0 : bounds_.back();
    if (n <= 0 || static_cast<uint64_t>(n) <= last) {
      Log(LogLevel::kError, "a histogram's bounds must be positive and rise");
      std::abort();
    }
    bounds_.push_back(n);
    const uint64_t width = bounds_.back() - last;
    std::array<uint64_t, kSubBuckets - 1> inner;
    for (size_t i = 0; i < inner.size(); ++i) {
      inner[i] = last + width * (i + 1) / kSubBuckets;
    }
    inner_.push_back(inner);
  }
  for (size_t i = 0; i < bounds.size(); ++i) {
    const size_t next = exposed_.size();
    if (exposed.empty() ||
        (next < exposed.size() && exposed[next] == bounds[i])) {
      exposed_.push_back(i);
    }
  }
  if (!exposed.empty() && exposed_.size() != exposed.size()) {
    Log(LogLevel::kError, "a histogram exposes a bound that it does not have");
    std::abort();
  }
  inner_.emplace_back().fill(std::numeric_limits<uint64_t>::max());
  for (size_t width = 0; width < start_.size(); ++width) {
    const uint64_t least = width == 0 ? 0 : uint64_t{1} << (width - 1);
    uint16_t i = 0;
    while (i < bounds_.size() && bounds_[i] < least) ++i;
    start_[width] = i;
  }
}

uint64_t Buckets::Greatest(size_t sub_bucket) const {
  const size_t bucket = sub_bucket / kSubBuckets;
  const size_t within = sub_bucket % kSubBuckets;
  if (bucket == bounds_.size()) return std::numeric_limits<uint64_t>::max();
  return within == kSubBuckets - 1 ? bounds_[bucket] : inner_[bucket][within];
}

uint64_t Buckets::Least(size_t sub_bucket) const {
  return sub_bucket == 0 ? 0 : Greatest(sub_bucket - 1) + 1;
}

const Buckets& Buckets::Calls() {
  using absl::Microseconds;
  using absl::Milliseconds;
  using absl::Seconds;
  static const Buckets* const buckets = new Buckets(
      {Microseconds(10),  Microseconds(20),  Microseconds(30),
       Microseconds(50),  Microseconds(75),  Microseconds(100),
       Microseconds(150), Microseconds(200), Microseconds(300),
       Microseconds(500), Milliseconds(1),   Milliseconds(2),
       Milliseconds(5),   Milliseconds(10),  Milliseconds(20),
       Milliseconds(50),  Milliseconds(100), Milliseconds(200),
       Milliseconds(500), Seconds(1),        Seconds(2),
       Seconds(5),        Seconds(10),       Seconds(20),
       Seconds(30),       Seconds(60),       Seconds(120)},
      {Microseconds(50), Microseconds(200), Milliseconds(1), Milliseconds(5),
       Milliseconds(20), Milliseconds(100), Milliseconds(500), Seconds(2),
       Seconds(10), Seconds(30), Seconds(120)});
  return *buckets;
}

const Buckets& Buckets::Tiers() {
  using absl::Microseconds;
  using absl::Milliseconds;
  using absl::Seconds;
  static const Buckets* const buckets = new Buckets(
      {Microseconds(1), Microseconds(2), Microseconds(5), Microseconds(10),
       Microseconds(20), Microseconds(50), Microseconds(100), Microseconds(200),
       Microseconds(500), Milliseconds(1), Milliseconds(2), Milliseconds(5),
       Milliseconds(10), Milliseconds(50), Milliseconds(100), Milliseconds(500),
       Seconds(1), Seconds(10)},
      {Microseconds(5), Microseconds(20), Microseconds(50), Microseconds(200),
       Milliseconds(1), Milliseconds(5), Milliseconds(10), Milliseconds(50),
       Milliseconds(100), Seconds(1), Seconds(10)});
  return *buckets;
}

uint64_t Distribution::Count() const {
  uint64_t count = 0;
  for (const SubBucket& sub_bucket : sub_buckets) count += sub_bucket.count;
  return count;
}

absl::Duration Distribution::Sum() const {
  uint64_t sum = 0;
  for (const SubBucket& sub_bucket : sub_buckets) sum += sub_bucket.nanoseconds;
  return absl::Nanoseconds(sum);
}

absl::Duration Distribution::Mean() const {
  const uint64_t count = Count();
  return count == 0 ? absl::ZeroDuration()
                    : Sum() / static_cast<int64_t>(count);
}

absl::Duration Distribution::Quantile(double q) const {
  const uint64_t count = Count();
  if (count == 0) return absl::ZeroDuration();
  const double rank = std::max(1.0, std::ceil(q * static_cast<double>(count)));
  double seen = 0;
  const SubBucket* holder = &sub_buckets.back();
  for (const SubBucket& sub_bucket : sub_buckets) {
    seen += static_cast<double>(sub_bucket.count);
    if (seen >= rank) {
      holder = &sub_bucket;
      break;
    }
  }
  // The bounds matter where the count was read and its sum not yet.
  return absl::Nanoseconds(std::clamp(holder->nanoseconds / holder->count,
                                      buckets->Least(holder->number),
                                      buckets->Greatest(holder->number)));
}

std::vector<uint64_t> Distribution::BucketCounts() const {
  if (buckets == nullptr) return {};
  std::vector<uint64_t> counts(buckets->bounds().size() + 1);
  for (const SubBucket& sub_bucket : sub_buckets) {
    counts[sub_bucket.number / Buckets::kSubBuckets] += sub_bucket.count;
  }
  return counts;
}

void Distribution::operator+=(const Distribution& other) {
  if (buckets == nullptr) buckets = other.buckets;
  std::vector<SubBucket> both;
  auto mine = sub_buckets.begin();
  for (const SubBucket& theirs : other.sub_buckets) {
    while (mine != sub_buckets.end() && mine->number < theirs.number) {
      both.push_back(*mine++);
    }
    both.push_back(theirs);
    if (mine != sub_buckets.end() && mine->number == theirs.number) {
      both.back().count += mine->count;
      both.back().nanoseconds += mine->nanoseconds;
      ++mine;
    }
  }
  both.insert(both.end(), mine, sub_buckets.end());
  sub_buckets = std::move(both);
}

Distribution Distribution::Since(const Distribution& earlier) const {
  Distribution result;
  result.buckets = buckets;
  auto before = earlier.sub_buckets.begin();
  for (SubBucket sub_bucket : sub_buckets) {
    while (before != earlier.sub_buckets.end() &&
           before->number < sub_bucket.number) {
      ++before;
    }
    if (before != earlier.sub_buckets.end() &&
        before->number == sub_bucket.number) {
      sub_bucket.count -= before->count;
      sub_bucket.nanoseconds -= before->nanoseconds;
    }
    if (sub_bucket.count != 0) result.sub_buckets.push_back(sub_bucket);
  }
  return result;
}

Distribution Histogram::Read() const {
  Distribution result;
  if (buckets_ == nullptr) return result;
  result.buckets = buckets_;
  std::vector<uint64_t> cells(CellsFor(*buckets_));
  internal::CellSums(first_, cells.size(), cells.data());
  for (size_t sub_bucket = 0; sub_bucket < buckets_->sub_buckets();
       ++sub_bucket) {
    const uint64_t count = cells[2 * sub_bucket];
    if (count != 0) {
      result.sub_buckets.push_back(
          {sub_bucket, count, cells[2 * sub_bucket + 1]});
    }
  }
  return result;
}

}  // namespace fncache::metrics
