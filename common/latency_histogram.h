// SPDX-License-Identifier: Apache-2.0
// LatencyHistogram: how often which latency was seen, to within 0.8 %, or to
// three digits where that is asked for.
//
// Log-linear buckets: each power of two of nanoseconds is cut into 128 (three
// digits: 1,024) equal parts, from 1 ns to about 18 minutes (beyond which the
// last bucket counts). Not thread-safe; a fixed 35 KB (three digits: 254 KB).
#ifndef FNCACHE_COMMON_LATENCY_HISTOGRAM_H_
#define FNCACHE_COMMON_LATENCY_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fncache {

class LatencyHistogram {
 public:
  // Parts of a power of two, as bits: an error of 2^-bits.
  static constexpr int kPlain = 7;
  static constexpr int kThreeDigits = 10;

  explicit LatencyHistogram(int part_bits = kPlain);

  // Counts one latency; a negative one counts as zero.
  void Add(int64_t nanoseconds);

  // Counts all that `other` counted, which has as many parts.
  void Merge(const LatencyHistogram& other);
  // Forgets all latencies.
  void Clear();

  uint64_t count() const { return count_; }
  // Exact, in nanoseconds; 0 of nothing.
  double mean() const;
  int64_t max() const { return max_; }
  int64_t min() const { return count_ == 0 ? 0 : min_; }

  // The smallest latency that at least `fraction` (0 to 1) of all do not
  // exceed, in nanoseconds: the upper end of its bucket, but at most max();
  // 0 of nothing.
  int64_t Quantile(double fraction) const;

  // The buckets that counted something, in order: upper end in nanoseconds
  // (inclusive) and count.
  std::vector<std::pair<int64_t, uint64_t>> Buckets() const;

 private:
  static constexpr int kMaxBits = 40;
  size_t BucketOf(uint64_t value) const;
  uint64_t UpperEnd(size_t bucket) const;

  int part_bits_;
  std::vector<uint64_t> buckets_;
  uint64_t count_ = 0;
  double sum_ = 0;
  int64_t max_ = 0;
  int64_t min_ = INT64_MAX;
};

}  // namespace fncache

#endif  // FNCACHE_COMMON_LATENCY_HISTOGRAM_H_
