// Histogram: durations counted into buckets, two plain additions each (see
// cells.h), and what a reader makes of them: sums, means, quantiles.
//
// A handle like Counter: a small value, made by a Registry and usable while it
// lives.
//
// Thread-safe.
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
  // Precondition: not empty, positive, strictly rising.
  explicit Buckets(const std::vector<absl::Duration>& bounds);

  // Calls from 10 us (a hit takes 20 to 200) to two minutes (all that a
  // reconcile has), finer where hits are.
  static const Buckets& Calls();
  // Look-ups and writes of a tier: 1 us to 10 s.
  static const Buckets& Tiers();

  // Upper bounds in nanoseconds.
  absl::Span<const uint64_t> bounds() const { return bounds_; }

  // The bucket of a duration: 0 to bounds().size().
  size_t Find(uint64_t nanoseconds) const {
    // At most a few steps: where to start is known by the highest bit.
    size_t i = start_[absl::bit_width(nanoseconds)];
    while (i < bounds_.size() && nanoseconds > bounds_[i]) ++i;
    return i;
  }

 private:
  std::vector<uint64_t> bounds_;
  // By bit width: the first bucket that a number of so many bits may fall into.
  std::array<uint16_t, 65> start_;
};

// What a histogram held when it was read.
struct Distribution {
  const Buckets* buckets = nullptr;
  std::vector<uint64_t> counts;  // one a bucket, not cumulative
  uint64_t count = 0;            // their sum
  absl::Duration sum;

  void operator+=(const Distribution& other);

  // The duration that the fraction `q` of what was observed does not exceed,
  // interpolated within its bucket; the highest bound for what is above it.
  // Zero if nothing was observed. Precondition: 0 <= q <= 1.
  absl::Duration Quantile(double q) const;
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
    internal::AddToCell(first_, n);
    internal::AddToCell(first_ + 1 + buckets_->Find(n), 1);
  }

  // Additions that happen meanwhile may be in the sum and not yet in a bucket,
  // or the other way round.
  Distribution Read() const;

 private:
  friend class Registry;
  Histogram(uint32_t first, const Buckets* buckets)
      : first_(first), buckets_(buckets) {}

  uint32_t first_ = 0;  // the sum; the buckets follow
  const Buckets* buckets_ = nullptr;
};

}  // namespace fncache::metrics

#endif  // FNCACHE_METRICS_HISTOGRAM_H_
