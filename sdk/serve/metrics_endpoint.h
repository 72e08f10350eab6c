// SPDX-License-Identifier: Apache-2.0
// MetricsEndpoint: serves one text over HTTP, at /metrics.
//
// It is small on purpose. A library of HTTP would bring 2.4 MB of resident
// memory into each function's process, for one page.
//
// One thread serves all connections. A connection has kPatience for its request
// and its response; if kMostConnections are open, the oldest one is closed. So
// callers that send nothing delay no other.
//
// Thread-safe.
#ifndef FNCACHE_SDK_SERVE_METRICS_ENDPOINT_H_
#define FNCACHE_SDK_SERVE_METRICS_ENDPOINT_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace fncache::sdk::serve {

class MetricsEndpoint {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(5);
  static constexpr size_t kMostConnections = 64;

  // HOST:PORT; an empty host is every address. `page` is called on the
  // endpoint's thread. Unavailable, naming the address, if it cannot be bound.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(
      const std::string& address, std::function<std::string()> page);
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

  // As asked for, with the real port.
  const std::string& address() const { return address_; }

 private:
  MetricsEndpoint(int listening, int wakes, std::string address,
                  std::function<std::string()> page);
  void Run();

  const int listening_;
  const int wakes_;  // an eventfd that ends the thread
  const std::string address_;
  const std::function<std::string()> page_;
  std::thread thread_;
};

}  // namespace fncache::sdk::serve

#endif  // FNCACHE_SDK_SERVE_METRICS_ENDPOINT_H_
