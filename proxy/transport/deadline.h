// SPDX-License-Identifier: Apache-2.0
// Deadline: when a call ends, how much time is left, whether it is over, and
// what time-out the call to the function gets.
//
// A caller gives the time that it waits (grpc-timeout), never a moment. So a
// deadline is a moment of the monotonic clock: steps of the wall clock move
// none. Every function gets the time from its caller, so tests simulate it.
//
// A value; thread-safe as such.
#ifndef FNCACHE_PROXY_TRANSPORT_DEADLINE_H_
#define FNCACHE_PROXY_TRANSPORT_DEADLINE_H_

#include <algorithm>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace fncache::proxy::transport {

// grpc-timeout: up to eight digits and a unit. Nothing if it is malformed.
absl::optional<absl::Duration> ParseTimeout(absl::string_view text);
// Rounds up, by less than a thousandth of the duration.
std::string FormatTimeout(absl::Duration timeout);

class Deadline {
 public:
  // The monotonic clock. Its moments compare with each other only.
  static absl::Time Now();

  // No deadline: the call may last for ever.
  Deadline() = default;
  // The deadline of a call that arrives now with this grpc-timeout. A text that
  // cannot be read gives none, as in gRPC's C library.
  static Deadline OfCaller(absl::string_view grpc_timeout, absl::Time now);
  // A deadline of fncache's own.
  static Deadline Own(absl::Duration time, absl::Time now);
  // This one, but later. It counts as fncache's own unless `by` is zero.
  Deadline Extended(absl::Duration by) const;

  bool none() const { return end_ == absl::InfiniteFuture(); }
  // Infinite if there is none. To compare deadlines with each other.
  absl::Time end() const { return end_; }
  // Never negative; infinite if there is none.
  absl::Duration Left(absl::Time now) const {
    return std::max(end_ - now, absl::ZeroDuration());
  }
  // The time until this fraction of the caller's time has passed.
  absl::Duration LeftOf(double fraction, absl::Time now) const;
  // The time that is left to wait for a connection. The wait ends a little
  // early, so that the reason reaches the caller before its own clock ends the
  // call.
  absl::Duration LeftToConnect(absl::Time now) const;

  // A call that ends now ends for its deadline. True a little early: a caller's
  // clock, or the function's, mostly ends the call before this one does.
  bool IsOver(absl::Time now) const;

  // The grpc-timeout for the function. Empty if the fields of the caller pass
  // as they came: there is no deadline, or the caller's came just now.
  std::string UpstreamTimeout(absl::Time now) const;

 private:
  Deadline(absl::Time start, absl::Time end) : start_(start), end_(end) {}

  absl::Time start_;  // of the caller's time-out; the infinite past: it is own
  absl::Time end_ = absl::InfiniteFuture();
};

}  // namespace fncache::proxy::transport

#endif  // FNCACHE_PROXY_TRANSPORT_DEADLINE_H_
