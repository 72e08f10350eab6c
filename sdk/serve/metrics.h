// SPDX-License-Identifier: Apache-2.0
// The metrics of a function's process: those of gRPC servers in Go, by the same
// names and labels, and two of the SDK.
//
// Every series is there from the start, because a rate does not see the event
// that makes a series. Thread-safe.
#ifndef FNCACHE_SDK_SERVE_METRICS_H_
#define FNCACHE_SDK_SERVE_METRICS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/method.h"

namespace fncache::sdk::serve {

class Metrics {
 public:
  // Precondition: `method` is not kOther.
  void Started(Method method);
  void Handled(Method method, absl::StatusCode code, absl::Duration duration);
  // A response holds resources and keeps fields.
  void Composed(int held, int kept);

  // The text exposition format, version 0.0.4.
  std::string Expose() const;

 private:
  // The upper bounds in seconds that Prometheus' client for Go has by default.
  static constexpr std::array<double, 11> kBounds = {
      .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10};
  static constexpr size_t kCodes = 17;

  struct OfMethod {
    std::atomic<uint64_t> started{0};
    std::array<std::atomic<uint64_t>, kCodes> handled{};
    // By the bound that they are at most, the last one above all.
    std::array<std::atomic<uint64_t>, kBounds.size() + 1> durations{};
    std::atomic<int64_t> nanoseconds{0};
  };

  std::array<OfMethod, 2> methods_;
  std::atomic<int> held_{0};
  std::atomic<uint64_t> kept_{0};
};

}  // namespace fncache::sdk::serve

#endif  // FNCACHE_SDK_SERVE_METRICS_H_
