// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/deadline.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace fncache::proxy::transport {
namespace {

constexpr size_t kMostDigits = 8;
constexpr int64_t kMostNumber = 99'999'999;

struct Unit {
  char letter;
  absl::Duration duration;
};

const std::array<Unit, 6>& Units() {
  static const std::array<Unit, 6> units = {{{'n', absl::Nanoseconds(1)},
                                             {'u', absl::Microseconds(1)},
                                             {'m', absl::Milliseconds(1)},
                                             {'S', absl::Seconds(1)},
                                             {'M', absl::Minutes(1)},
                                             {'H', absl::Hours(1)}}};
  return units;
}

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

absl::optional<absl::Duration> ParseTimeout(absl::string_view text) {
  if (text.size() < 2 || text.size() > kMostDigits + 1) return absl::nullopt;
  const absl::string_view digits = text.substr(0, text.size() - 1);
  uint64_t number = 0;
  for (const char c : digits) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) {
      return absl::nullopt;
    }
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  for (const Unit& unit : Units()) {
    if (text.back() == unit.letter) {
      return static_cast<int64_t>(number) * unit.duration;
    }
  }
  return absl::nullopt;
}

std::string FormatTimeout(absl::Duration timeout) {
  timeout = std::max(timeout, absl::Nanoseconds(1));
  for (const Unit& unit : Units()) {
    absl::Duration rest;
    const int64_t whole = absl::IDivDuration(timeout, unit.duration, &rest);
    // An overflow gives the largest integer, which needs a larger unit, too.
    if (whole >= kMostNumber) continue;
    const int64_t number = rest > absl::ZeroDuration() ? whole + 1 : whole;
    return absl::StrCat(number, std::string(1, unit.letter));
  }
  return "99999999H";
}

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
