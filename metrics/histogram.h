// SPDX-License-Identifier: Apache-2.0
// Histogram: counts durations into buckets at the cost of two plain additions
// each (see cells.h). Distribution is the result for a reader: sums, means, and
// quantiles that are never outside of the observed range.
//
// How quantiles are estimated. Each bucket is counted in four sub-buckets of
// equal width (SubBucket in the code). Each sub-bucket keeps two numbers: how
// many durations fell into it, and their sum. The quantile q of n durations is
// the ceil(q * n)-th of them in order, at least the first. Its estimate is the
// mean of the sub-bucket that contains it.
//
// A mean lies between the least and the greatest of its values, so the estimate
// does, too. If all durations of a sub-bucket are equal, the estimate is exact.
// It is wrong by at most the width of the sub-bucket. Two readings can be
// subtracted, and the difference, which is the durations observed between them,
// has the same properties. A tracked minimum and maximum would not, as they
// cannot be subtracted.
//
// A Histogram is a handle like Counter: a small value, made by a Registry and
// usable while that lives.
//
// Thread-safe. A Distribution is a plain value.
#ifndef FNCACHE_METRICS_HISTOGRAM_H_
#define FNCACHE_METRICS_HISTOGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/numeric/bits.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "metrics/cells.h"

namespace fncache::metrics {

// The buckets' upper bounds, each inclusive; one more bucket takes what is
// above them all. Immutable; must outlive the histograms that use it.
class Buckets {
 public:
  // The number of sub-buckets of equal width in a bucket. The durations above
  // all bounds are one sub-bucket.
  static constexpr size_t kSubBuckets = 4;

  // `exposed`: the bounds that a scrape gets; empty = all. Each is a series of
  // each histogram, so there are fewer of them than bounds that count.
  // Precondition for `bounds`: not empty, positive, strictly rising. Those of
  // `exposed` are among them, in the same order.
  explicit Buckets(const std::vector<absl::Duration>& bounds,
                   const std::vector<absl::Duration>& exposed = {});

  // Calls from 10 us (a hit takes 20 to 200) to two minutes (all that a
  // reconcile has), finer where hits are. A scrape gets 11 bounds, among them
  // the 5 ms of the alert FncacheHitsSlow.
  static const Buckets& Calls();
  // Look-ups and writes of a tier: 1 us to 10 s. A scrape gets 11 bounds.
  static const Buckets& Tiers();

  // Upper bounds in nanoseconds.
  absl::Span<const uint64_t> bounds() const { return bounds_; }
  // Those that a scrape gets, by their index.
  absl::Span<const size_t> exposed() const { return exposed_; }

  // Sub-buckets are numbered from 0; those of bucket i begin at i *
  // kSubBuckets.
  size_t sub_buckets() const { return bounds_.size() * kSubBuckets + 1; }

  // Returns the number of the sub-bucket that a duration falls in.
  size_t FindSubBucket(uint64_t nanoseconds) const {
    // At most a few steps: where to start is known by the highest bit.
    size_t bucket = start_[absl::bit_width(nanoseconds)];
    while (bucket < bounds_.size() && nanoseconds > bounds_[bucket]) ++bucket;
    size_t sub_bucket = bucket * kSubBuckets;
    for (const uint64_t bound : inner_[bucket]) {
      sub_bucket += nanoseconds > bound;
    }
    return sub_bucket;
  }

  // The least and the greatest duration, in nanoseconds, of a sub-bucket.
  uint64_t Least(size_t sub_bucket) const;
  uint64_t Greatest(size_t sub_bucket) const;

 private:
  std::vector<uint64_t> bounds_;
  std::vector<size_t> exposed_;
  // The inclusive upper bounds of each bucket's sub-buckets but the last; those
  // of the bucket above all bounds are out of reach.
  std::vector<std::array<uint64_t, kSubBuckets - 1>> inner_;
  // By bit width: the first bucket that a number of this width may fall into.
  std::array<uint16_t, 65> start_;
};

// A Distribution is a reading of a histogram, or the difference of two
// readings.
struct Distribution {
  struct SubBucket {
    size_t number = 0;
    uint64_t count = 0;
    uint64_t nanoseconds = 0;  // the sum
  };

  // Null if the handle was unbound; it has no sub-buckets then.
  const Buckets* buckets = nullptr;
  // Those that contain anything, by rising number.
  std::vector<SubBucket> sub_buckets;

  uint64_t Count() const;
  absl::Duration Sum() const;
  // Zero if nothing was observed.
  absl::Duration Mean() const;
  // As the head of this file says. Zero if nothing was observed. Precondition:
  // 0 <= q <= 1.
  absl::Duration Quantile(double q) const;

  // How many there are in each bucket, not cumulative.
  std::vector<uint64_t> BucketCounts() const;

  // Precondition for both: the other has the same buckets, or is empty.
  void operator+=(const Distribution& other);
  // The difference to `earlier`, an earlier reading of the same histogram.
  Distribution Since(const Distribution& earlier) const;
};

class Histogram {
 public:
  Histogram() = default;

  // A negative duration counts as zero.
  void Observe(absl::Duration duration) const {
    ObserveNanoseconds(absl::ToInt64Nanoseconds(duration));
  }
  void ObserveNanoseconds(int64_t nanoseconds) const {
    if (buckets_ == nullptr) return;
    const uint64_t n = nanoseconds < 0 ? 0 : nanoseconds;
    // A sub-bucket's two cells are neighbours.
    const uint32_t cell =
        first_ + static_cast<uint32_t>(2 * buckets_->FindSubBucket(n));
    internal::CountInCells(cell, n);
  }

  // An observation that happens meanwhile may be in the count of its sub-bucket
  // and not yet in the sum.
  Distribution Read() const;

 private:
  friend class Registry;
  Histogram(uint32_t first, const Buckets* buckets)
      : first_(first), buckets_(buckets) {}

  // How many cells a histogram takes.
  static uint32_t CellsFor(const Buckets& buckets) {
    return static_cast<uint32_t>(2 * buckets.sub_buckets());
  }

  uint32_t first_ = 0;  // for each sub-bucket its count and its sum
  const Buckets* buckets_ = nullptr;
};

}  // namespace fncache::metrics

#endif  // FNCACHE_METRICS_HISTOGRAM_H_
