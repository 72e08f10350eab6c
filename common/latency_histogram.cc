// SPDX-License-Identifier: Apache-2.0
#include "common/latency_histogram.h"

#include <algorithm>
#include <cmath>

namespace fncache {

// Values below 2^part_bits have a bucket each; those of b bits have 2^part_bits
// parts for each b above.
LatencyHistogram::LatencyHistogram(int part_bits)
    : part_bits_(part_bits),
      buckets_(static_cast<size_t>(kMaxBits - part_bits + 1) << part_bits) {}

size_t LatencyHistogram::BucketOf(uint64_t value) const {
  if (value < (uint64_t{1} << part_bits_)) return value;
  if (value >> kMaxBits != 0) value = (uint64_t{1} << kMaxBits) - 1;
  const int shift = std::max(63 - __builtin_clzll(value) - part_bits_, 0);
  return (static_cast<size_t>(shift) << part_bits_) + (value >> shift);
}

uint64_t LatencyHistogram::UpperEnd(size_t bucket) const {
  const size_t parts = size_t{1} << part_bits_;
  if (bucket < parts) return bucket;
  const size_t shift = std::max<size_t>(bucket >> part_bits_, 1) - 1;
  return ((parts + (bucket & (parts - 1)) + 1) << shift) - 1;
}

void LatencyHistogram::Add(int64_t nanoseconds) {
  const int64_t value = std::max<int64_t>(nanoseconds, 0);
  ++buckets_[BucketOf(static_cast<uint64_t>(value))];
  ++count_;
  sum_ += static_cast<double>(value);
  max_ = std::max(max_, value);
  min_ = std::min(min_, value);
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  if (other.count_ == 0) return;
  for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
  min_ = std::min(min_, other.min_);
}

void LatencyHistogram::Clear() {
  if (count_ > 0) std::fill(buckets_.begin(), buckets_.end(), 0);
  count_ = 0;
  sum_ = 0;
  max_ = 0;
  min_ = INT64_MAX;
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

}  // namespace fncache
