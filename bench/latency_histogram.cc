// SPDX-License-Identifier: Apache-2.0
#include "bench/latency_histogram.h"

#include <algorithm>
#include <cmath>

namespace fncache::bench {

// Values below 2^kPartBits have a bucket each; those of b bits have 2^kPartBits
// parts for each b above.
LatencyHistogram::LatencyHistogram()
    : buckets_(static_cast<size_t>(kMaxBits - kPartBits + 1) << kPartBits) {}

size_t LatencyHistogram::BucketOf(uint64_t value) {
  if (value < (1u << kPartBits)) return value;
  if (value >> kMaxBits != 0) value = (uint64_t{1} << kMaxBits) - 1;
  const int shift = 63 - __builtin_clzll(value) - kPartBits;
  return (static_cast<size_t>(shift) << kPartBits) + (value >> shift);
}

uint64_t LatencyHistogram::UpperEnd(size_t bucket) {
  const size_t parts = size_t{1} << kPartBits;
  if (bucket < parts) return bucket;
  const size_t shift = bucket / parts - 1;
  return ((parts + bucket % parts + 1) << shift) - 1;
}

void LatencyHistogram::Add(int64_t nanoseconds) {
  const int64_t value = std::max<int64_t>(nanoseconds, 0);
  ++buckets_[BucketOf(static_cast<uint64_t>(value))];
  ++count_;
  sum_ += static_cast<double>(value);
  max_ = std::max(max_, value);
}

double LatencyHistogram::mean() const {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

int64_t LatencyHistogram::Quantile(double fraction) const {
  const auto wanted = static_cast<uint64_t>(
      std::max(1.0, std::ceil(fraction * static_cast<double>(count_))));
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= wanted) {
      return std::min(static_cast<int64_t>(UpperEnd(i)), max_);
    }
  }
  return max_;
}

std::vector<std::pair<int64_t, uint64_t>> LatencyHistogram::Buckets() const {
  std::vector<std::pair<int64_t, uint64_t>> buckets;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i] > 0) {
      buckets.emplace_back(static_cast<int64_t>(UpperEnd(i)), buckets_[i]);
    }
  }
  return buckets;
}

}  // namespace fncache::bench
