// SPDX-License-Identifier: Apache-2.0
// LastMisses: the last misses with their explanations. The oldest goes first.
//
// Used by one thread at a time.
#ifndef FNCACHE_INSIGHT_EXPLAIN_LAST_MISSES_H_
#define FNCACHE_INSIGHT_EXPLAIN_LAST_MISSES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/strings/string_view.h"
#include "insight/explain/explanation.h"

namespace fncache::insight::explain {

class LastMisses {
 public:
  // The most misses that are kept.
  static constexpr size_t kMost = 1000;

  // Keeps it with its texts cut. `bound`: the most bytes of all.
  void Add(ExplainedMiss miss, uint64_t bound);

  // The misses of a function, or of all if that is empty, the newest first.
  std::vector<ExplainedMiss> Last(size_t most,
                                  absl::string_view function) const;

  uint64_t bytes() const { return bytes_; }

 private:
  std::deque<ExplainedMiss> misses_;
  uint64_t bytes_ = 0;
};

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_LAST_MISSES_H_
