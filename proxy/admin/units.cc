// SPDX-License-Identifier: Apache-2.0
#include "proxy/admin/units.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "google/protobuf/util/time_util.h"

namespace fncache::proxy::admin {

using google::protobuf::util::TimeUtil;

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) +
         absl::Nanoseconds(duration.nanos());
}

absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) +
         absl::Nanoseconds(time.nanos());
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  return TimeUtil::NanosecondsToDuration(absl::ToInt64Nanoseconds(duration));
}

google::protobuf::Timestamp ToProto(absl::Time time) {
  return TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(time));
}

std::string Grouped(uint64_t number) {
  std::string digits = absl::StrCat(number);
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string ShortNumber(double number) {
  if (number == 0) return "0";
  if (std::abs(number) < 99.95) return absl::StrFormat("%.1f", number);
  if (std::abs(number) < 99999.5) return absl::StrFormat("%.0f", number);
  if (std::abs(number) < 9.995e6) return absl::StrFormat("%.0fk", number / 1e3);
  return absl::StrFormat("%.1fM", number / 1e6);
}

std::string ShortCount(uint64_t count) {
  return count < 100000 ? absl::StrCat(count)
                        : ShortNumber(static_cast<double>(count));
}

std::string ShortSize(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < sizeof kUnits / sizeof kUnits[0]) {
    value /= 1024;
    ++unit;
  }
  const bool whole = unit == 0 || value >= 99.95;
  return absl::StrFormat("%.*f %s", whole ? 0 : 1, value, kUnits[unit]);
}

std::string ShortDuration(absl::Duration duration) {
  if (duration < absl::ZeroDuration()) {
    return absl::StrCat("-", ShortDuration(-duration));
  }
  const double seconds = absl::ToDoubleSeconds(duration);
  if (seconds == 0) return "0s";
  if (seconds < 0.9995e-3) return absl::StrFormat("%.0fus", seconds * 1e6);
  if (seconds < 0.9995) return absl::StrFormat("%.3gms", seconds * 1e3);
  if (seconds < 59.95) return absl::StrFormat("%.3gs", seconds);
  const int64_t whole =
      absl::ToInt64Seconds(duration + absl::Milliseconds(500));
  if (whole < 3600) return absl::StrCat(whole / 60, "m", whole % 60, "s");
  if (whole < 86400) {
    return absl::StrCat(whole / 3600, "h", whole % 3600 / 60, "m");
  }
  return absl::StrCat(whole / 86400, "d", whole % 86400 / 3600, "h");
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

}  // namespace fncache::proxy::admin
