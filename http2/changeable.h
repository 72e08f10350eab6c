// SPDX-License-Identifier: Apache-2.0
// Changeable, ChangeableDuration: options that may be changed while threads
// read them, and are read and copied like plain values otherwise.
//
// Thread-safe. A reader sees the old value or the new one; a decision that uses
// several values at once needs a lock, or a copy.
#ifndef FNCACHE_HTTP2_CHANGEABLE_H_
#define FNCACHE_HTTP2_CHANGEABLE_H_

#include <atomic>
#include <cstdint>
#include <limits>

#include "absl/time/time.h"

namespace fncache::http2 {

template <typename T>
class Changeable {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  Changeable(T value) : value_(value) {}
  Changeable(const Changeable& other) : value_(other.Get()) {}
  Changeable& operator=(const Changeable& other) {
    value_.store(other.Get(), std::memory_order_relaxed);
    return *this;
  }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator T() const { return Get(); }
  T Get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<T> value_;
};

// Precise to the nanosecond. A duration beyond int64 nanoseconds (292 years) is
// infinite.
class ChangeableDuration {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  ChangeableDuration(absl::Duration value)
      : nanos_(absl::ToInt64Nanoseconds(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator absl::Duration() const {
    const int64_t nanos = nanos_;
    return nanos == std::numeric_limits<int64_t>::max()
               ? absl::InfiniteDuration()
               : absl::Nanoseconds(nanos);
  }

 private:
  Changeable<int64_t> nanos_;
};

}  // namespace fncache::http2

#endif  // FNCACHE_HTTP2_CHANGEABLE_H_
