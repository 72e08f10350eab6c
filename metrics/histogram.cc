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
    std::array<uint64_t, kParts - 1> inner;
    for (size_t i = 0; i < inner.size(); ++i) {
      inner[i] = last + width * (i + 1) / kParts;
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

uint64_t Buckets::Greatest(size_t part) const {
  const size_t bucket = part / kParts;
  const size_t within = part % kParts;
  if (bucket == bounds_.size()) return std::numeric_limits<uint64_t>::max();
  return within == kParts - 1 ? bounds_[bucket] : inner_[bucket][within];
}

uint64_t Buckets::Least(size_t part) const {
  return part == 0 ? 0 : Greatest(part - 1) + 1;
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
  for (const Part& part : parts) count += part.count;
  return count;
}

absl::Duration Distribution::Sum() const {
  uint64_t sum = 0;
  for (const Part& part : parts) sum += part.nanoseconds;
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
  const Part* holder = &parts.back();
  for (const Part& part : parts) {
    seen += static_cast<double>(part.count);
    if (seen >= rank) {
      holder = &part;
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
  for (const Part& part : parts) {
    counts[part.number / Buckets::kParts] += part.count;
  }
  return counts;
}

void Distribution::operator+=(const Distribution& other) {
  if (buckets == nullptr) buckets = other.buckets;
  std::vector<Part> both;
  auto mine = parts.begin();
  for (const Part& theirs : other.parts) {
    while (mine != parts.end() && mine->number < theirs.number) {
      both.push_back(*mine++);
    }
    both.push_back(theirs);
    if (mine != parts.end() && mine->number == theirs.number) {
      both.back().count += mine->count;
      both.back().nanoseconds += mine->nanoseconds;
      ++mine;
    }
  }
  both.insert(both.end(), mine, parts.end());
  parts = std::move(both);
}

Distribution Distribution::Since(const Distribution& earlier) const {
  Distribution result;
  result.buckets = buckets;
  auto before = earlier.parts.begin();
  for (Part part : parts) {
    while (before != earlier.parts.end() && before->number < part.number) {
      ++before;
    }
    if (before != earlier.parts.end() && before->number == part.number) {
      part.count -= before->count;
      part.nanoseconds -= before->nanoseconds;
    }
    if (part.count != 0) result.parts.push_back(part);
  }
  return result;
}

Distribution Histogram::Read() const {
  Distribution result;
  if (buckets_ == nullptr) return result;
  result.buckets = buckets_;
  std::vector<uint64_t> cells(CellsFor(*buckets_));
  internal::CellSums(first_, cells.size(), cells.data());
  for (size_t part = 0; part < buckets_->parts(); ++part) {
    const uint64_t count = cells[2 * part];
    if (count != 0) result.parts.push_back({part, count, cells[2 * part + 1]});
  }
  return result;
}

}  // namespace fncache::metrics
