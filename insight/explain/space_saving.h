// SPDX-License-Identifier: Apache-2.0
// SpaceSaving: counts the most frequent texts, kCounted of them. A new one
// replaces the rarest and gets its count, so counts may be too high, and never
// too low (Metwally et al., Space-Saving, 2005).
//
// Used by one thread at a time.
#ifndef FNCACHE_INSIGHT_EXPLAIN_SPACE_SAVING_H_
#define FNCACHE_INSIGHT_EXPLAIN_SPACE_SAVING_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fncache::insight::explain {

class SpaceSaving {
 public:
  using Top = std::vector<std::pair<std::string, uint64_t>>;

  // The empty text does not count.
  void Add(const std::string& what);
  // The most frequent, first.
  Top Most(size_t most) const;

 private:
  static constexpr size_t kCounted = 64;

  std::map<std::string, uint64_t> counts_;
};

}  // namespace fncache::insight::explain

#endif  // FNCACHE_INSIGHT_EXPLAIN_SPACE_SAVING_H_
