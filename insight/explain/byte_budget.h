// SPDX-License-Identifier: Apache-2.0
// ByteBudget: bounds the bytes of requests and answers that are read for
// explanations, and with them the CPU time: a token bucket for paths, and one
// for everything. Without tokens for paths, only sections are explained.
// Without any tokens, fewer composites are looked at.
//
// Used by one thread at a time.
#ifndef FNCACHE_INSIGHT_EXPLAIN_BYTE_BUDGET_H_
#define FNCACHE_INSIGHT_EXPLAIN_BYTE_BUDGET_H_

#include <cstdint>
#include <limits>

#include "absl/time/time.h"
#include "insight/explain/kept_requests.h"

namespace fncache::insight::explain {

struct ByteBudgetOptions {
  static constexpr uint64_t kUnbounded = std::numeric_limits<uint64_t>::max();

  // Bytes per second of requests whose paths are read, and of all requests and
  // answers that are looked at. Each bucket has tokens for four seconds at
  // most, and at the start. Paths take about 1.4 ns a byte, all else 0.5 ns a
  // byte and 2 us a request (bench/miss_memory_benchmark), so both limits are 4
  // % of a core.
  uint64_t paths_bytes_per_second = 16 << 20;
  uint64_t bytes_per_second = 32 << 20;
};

class ByteBudget {
 public:
  ByteBudget(const ByteBudgetOptions& options, absl::Time now);

  // Whether there are tokens to read paths.
  bool PathsAffordable(absl::Time now);
  // Takes the tokens of one request of so many bytes. `with_paths`: its paths
  // were read.
  void Spend(uint64_t bytes, bool with_paths);
  // Halves the composites that are looked at if there are no tokens, and
  // doubles them if there are many. Those that stay keep their past.
  void Balance(absl::Time now);

  // There are tokens for composites whose hash is at most this, and were of
  // late.
  uint64_t affordable() const { return affordable_; }
  uint64_t always_seen() const { return always_seen_; }

 private:
  struct Bucket {
    double per_second = 0;
    double most = 0;  // also the largest debt
    double tokens = 0;
  };

  void Refill(absl::Time now);

  Bucket paths_;
  Bucket all_;
  absl::Time filled_;
  uint64_t affordable_ = kAll;
  absl::Time balanced_ = absl::InfinitePast();
  // The least that `affordable_` was of late, and when it last was not all.
  uint64_t always_seen_ = kAll;
  absl::Time left_out_ = absl::InfinitePast();
};

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_BYTE_BUDGET_H_
