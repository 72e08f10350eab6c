// SPDX-License-Identifier: Apache-2.0
// Formats numbers for the client's texts: short, and with one width in a
// column.
//
// Pure functions, thread-safe.
#ifndef FNCACHE_PROXY_ADMIN_UNITS_H_
#define FNCACHE_PROXY_ADMIN_UNITS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace google::protobuf {
class Duration;
class Timestamp;
}  // namespace google::protobuf

namespace fncache::proxy::admin {

absl::Duration FromProto(const google::protobuf::Duration& duration);
absl::Time FromProto(const google::protobuf::Timestamp& time);
google::protobuf::Duration ToProto(absl::Duration duration);
google::protobuf::Timestamp ToProto(absl::Time time);

// 1,234,567
std::string Grouped(uint64_t number);
// 0, 0.5, 12.3, 1234, 1234k, 12.3M
std::string ShortNumber(double number);
// 0, 12, 99999, 1234k, 12.3M
std::string ShortCount(uint64_t count);
// 812 B, 1.2 KiB, 256 MiB
std::string ShortSize(uint64_t bytes);
// 12us, 1.20ms, 34.0s, 2m3s, 3h4m, 5d6h
std::string ShortDuration(absl::Duration duration);
// 2027-01-15 08:00:00 UTC
std::string TimeText(absl::Time time);

}  // namespace fncache::proxy::admin

#endif  // FNCACHE_PROXY_ADMIN_UNITS_H_
