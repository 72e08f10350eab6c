// SPDX-License-Identifier: Apache-2.0
// Ipv6Relay: lets an IPv4 server be reached at an IPv6 address.
//
// Debian's civetweb is built without IPv6, and a cluster may have nothing else.
// The relay listens on an IPv6 address and passes bytes to and from a port on
// 127.0.0.1, on one thread of its own. What it holds is bounded: connections,
// the bytes buffered for each, and the time that one may last.
//
// Thread-safe.
#ifndef FNCACHE_METRICS_IPV6_RELAY_H_
#define FNCACHE_METRICS_IPV6_RELAY_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

namespace fncache::metrics {

class Ipv6Relay {
 public:
  // Listens on `host` (a numeric IPv6 address, without brackets; `::` takes
  // IPv4 connections too) and `port` (0 takes a free one), for a server at
  // 127.0.0.1:`to_port`. InvalidArgument for a host that is none, Unavailable
  // where it cannot be bound.
  static absl::StatusOr<std::unique_ptr<Ipv6Relay>> Start(
      const std::string& host, const std::string& port, int to_port);

  // Closes what is open.
  ~Ipv6Relay();
  Ipv6Relay(const Ipv6Relay&) = delete;
  Ipv6Relay& operator=(const Ipv6Relay&) = delete;

  int port() const { return port_; }

 private:
  Ipv6Relay(int listener, int stop, int port, int to_port);

  const int listener_;
  const int stop_;  // an eventfd, readable once it is time to end
  const int port_;
  std::thread thread_;
};

}  // namespace fncache::metrics

#endif  // FNCACHE_METRICS_IPV6_RELAY_H_
