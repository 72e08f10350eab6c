// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/deadline.h"

#include <chrono>

#include "proxy/transport/codec.h"

namespace fncache::proxy::transport {
namespace {

// Clocks of two processes end one call at most this far apart.
constexpr absl::Duration kSlack = absl::Milliseconds(20);
// A call that waits in vain for a connection ends kHeadStart before its
// deadline. A longer time-out gives a hundredth of it, up to kMostHeadStart,
// because gRPC's C core rounds the time-out that it sends up to three digits.
// Both are below kSlack.
constexpr absl::Duration kHeadStart = absl::Milliseconds(5);
constexpr absl::Duration kMostHeadStart = absl::Milliseconds(15);
// A time-out that arrived less than 10 ms ago is forwarded unchanged.
constexpr absl::Duration kRecent = absl::Milliseconds(10);

}  // namespace

absl::Time Deadline::Now() {
  return absl::UnixEpoch() +
         absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

Deadline Deadline::OfCaller(absl::string_view grpc_timeout, absl::Time now) {
  const auto timeout = ParseTimeout(grpc_timeout);
  if (!timeout.has_value()) return Deadline();
  return Deadline(now, now + *timeout);
}

Deadline Deadline::Own(absl::Duration time, absl::Time now) {
  return Deadline(absl::InfinitePast(), now + time);
}

Deadline Deadline::Extended(absl::Duration by) const {
  return by > absl::ZeroDuration() ? Own(by, end_) : *this;
}

absl::Duration Deadline::LeftOf(double fraction, absl::Time now) const {
  return std::max(start_ + (end_ - start_) * fraction - now,
                  absl::ZeroDuration());
}

absl::Duration Deadline::LeftToConnect(absl::Time now) const {
  const absl::Duration left = end_ - now;
  if (none()) return left;
  return left - std::min(left / 10,
                         std::clamp(left / 100, kHeadStart, kMostHeadStart));
}

bool Deadline::IsOver(absl::Time now) const { return end_ - now <= kSlack; }

std::string Deadline::UpstreamTimeout(absl::Time now) const {
  if (none() || now - start_ <= kRecent) return "";
  return FormatTimeout(end_ - now);
}

}  // namespace fncache::proxy::transport
