#include "metrics/histogram.h"

#include <cstdlib>

#include "common/log.h"

namespace fncache::metrics {

Buckets::Buckets(const std::vector<absl::Duration>& bounds) {
  for (const absl::Duration bound : bounds) {
    const int64_t n = absl::ToInt64Nanoseconds(bound);
    const uint64_t last = bounds_.empty() ? 0 : bounds_.back();
    if (n <= 0 || static_cast<uint64_t>(n) <= last) {
      Log(LogLevel::kError, "a histogram's bounds must be positive and rise");
      std::abort();
    }
    bounds_.push_back(n);
  }
  for (size_t width = 0; width < start_.size(); ++width) {
    const uint64_t least = width == 0 ? 0 : uint64_t{1} << (width - 1);
    uint16_t i = 0;
    while (i < bounds_.size() && bounds_[i] < least) ++i;
    start_[width] = i;
  }
}

const Buckets& Buckets::Calls() {
  using absl::Microseconds;
  using absl::Milliseconds;
  using absl::Seconds;
  static const Buckets* const buckets =
      new Buckets({Microseconds(10),  Microseconds(20),  Microseconds(30),
                   Microseconds(50),  Microseconds(75),  Microseconds(100),
                   Microseconds(150), Microseconds(200), Microseconds(300),
                   Microseconds(500), Milliseconds(1),   Milliseconds(2),
                   Milliseconds(5),   Milliseconds(10),  Milliseconds(20),
                   Milliseconds(50),  Milliseconds(100), Milliseconds(200),
                   Milliseconds(500), Seconds(1),        Seconds(2),
                   Seconds(5),        Seconds(10),       Seconds(20),
                   Seconds(30),       Seconds(60),       Seconds(120)});
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
       Seconds(1), Seconds(10)});
  return *buckets;
}

void Distribution::operator+=(const Distribution& other) {
  if (buckets == nullptr) {
    *this = other;
    return;
  }
  if (other.buckets != buckets) return;
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  count += other.count;
  sum += other.sum;
}

absl::Duration Distribution::Quantile(double q) const {
  if (count == 0) return absl::ZeroDuration();
  const double rank = q * static_cast<double>(count);
  const absl::Span<const uint64_t> bounds = buckets->bounds();
  double below = 0;
  for (size_t i = 0; i < bounds.size(); ++i) {
    const double here = static_cast<double>(counts[i]);
    if (here > 0 && below + here >= rank) {
      const double low = i == 0 ? 0 : static_cast<double>(bounds[i - 1]);
      const double high = static_cast<double>(bounds[i]);
      return absl::Nanoseconds(low + (high - low) * (rank - below) / here);
    }
    below += here;
  }
  return absl::Nanoseconds(bounds.back());
}

Distribution Histogram::Read() const {
  Distribution result;
  if (buckets_ == nullptr) return result;
  const size_t buckets = buckets_->bounds().size() + 1;
  std::vector<uint64_t> cells(1 + buckets);
  internal::CellSums(first_, cells.size(), cells.data());
  result.buckets = buckets_;
  result.counts.assign(cells.begin() + 1, cells.end());
  for (const uint64_t count : result.counts) result.count += count;
  result.sum = absl::Nanoseconds(cells[0]);
  return result;
}

}  // namespace fncache::metrics
