// SPDX-License-Identifier: Apache-2.0
// Counter and UpDown: handles to numbers that any thread may change at the cost
// of a plain addition (see cells.h), read when someone scrapes.
//
// Handles are small values, made by a Registry and usable while it lives. One
// that no registry made counts into the void.
//
// Thread-safe.
#ifndef FNCACHE_METRICS_COUNTER_H_
#define FNCACHE_METRICS_COUNTER_H_

#include <cstdint>

#include "metrics/cells.h"

namespace fncache::metrics {

// Only goes up.
class Counter {
 public:
  Counter() = default;

  void Add(uint64_t n = 1) const { internal::AddToCell(cell_, n); }
  uint64_t Value() const { return internal::CellSum(cell_); }

 private:
  friend class Registry;
  explicit Counter(uint32_t cell) : cell_(cell) {}

  uint32_t cell_ = 0;
};

// Goes up and down, also up on one thread and down on another.
class UpDown {
 public:
  UpDown() = default;

  void Add(int64_t n) const {
    internal::AddToCell(cell_, static_cast<uint64_t>(n));
  }
  int64_t Value() const {
    return static_cast<int64_t>(internal::CellSum(cell_));
  }

 private:
  friend class Registry;
  explicit UpDown(uint32_t cell) : cell_(cell) {}

  uint32_t cell_ = 0;
};

}  // namespace fncache::metrics

#endif  // FNCACHE_METRICS_COUNTER_H_
