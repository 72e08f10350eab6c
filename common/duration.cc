// SPDX-License-Identifier: Apache-2.0
#include "common/duration.h"

#include <cstdint>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/utf8.h"

namespace fncache {
namespace {

constexpr uint64_t kMostPositive = std::numeric_limits<int64_t>::max();
constexpr uint64_t kMostNegative = kMostPositive + 1;

struct Unit {
  absl::string_view name;
  uint64_t nanoseconds;
};

constexpr uint64_t kMicrosecond = 1000;
constexpr uint64_t kMillisecond = 1000 * kMicrosecond;
constexpr uint64_t kSecond = 1000 * kMillisecond;
constexpr uint64_t kMinute = 60 * kSecond;
constexpr uint64_t kHour = 60 * kMinute;

// The micro sign U+00B5 and the Greek letter mu U+03BC look the same; Go takes
// both.
constexpr Unit kUnits[] = {
    {"h", kHour},
    {"m", kMinute},
    {"s", kSecond},
    {"ms", kMillisecond},
    {"us", kMicrosecond},
    {"\xc2\xb5s", kMicrosecond},
    {"\xce\xbcs", kMicrosecond},
    {"ns", 1},
};

absl::Status Bad(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", absl::Utf8SafeCHexEscape(text.substr(0, 64)), "\" ",
                   why, "; accepted: ", kDurationForm));
}

// A decimal number as it was read: its digits before and after the point.
struct Number {
  uint64_t whole = 0;
  uint64_t fraction = 0;  // over `scale`
  double scale = 1;
  bool any_digit = false;
  bool overflow = false;
};

Number ReadNumber(absl::string_view* rest) {
  Number number;
  while (!rest->empty() && absl::ascii_isdigit(rest->front())) {
    const uint64_t digit = rest->front() - '0';
    if (number.whole > (kMostNegative - digit) / 10) number.overflow = true;
    if (!number.overflow) number.whole = number.whole * 10 + digit;
    number.any_digit = true;
    rest->remove_prefix(1);
  }
  if (!absl::ConsumePrefix(rest, ".")) return number;
  bool full = false;  // further digits are too small to count
  while (!rest->empty() && absl::ascii_isdigit(rest->front())) {
    const uint64_t digit = rest->front() - '0';
    if (number.fraction > (kMostPositive - digit) / 10) full = true;
    if (!full) {
      number.fraction = number.fraction * 10 + digit;
      number.scale *= 10;
    }
    number.any_digit = true;
    rest->remove_prefix(1);
  }
  return number;
}

const Unit* ReadUnit(absl::string_view* rest) {
  size_t length = 0;
  while (length < rest->size() && (*rest)[length] != '.' &&
         !absl::ascii_isdigit((*rest)[length])) {
    ++length;
  }
  const absl::string_view name = rest->substr(0, length);
  for (const Unit& unit : kUnits) {
    if (unit.name == name) {
      rest->remove_prefix(length);
      return &unit;
    }
  }
  return nullptr;
}

// 12.030 -> "12.03", with `digits` digits of `value` after the point.
std::string WithPoint(uint64_t value, int digits) {
  uint64_t scale = 1;
  for (int i = 0; i < digits; ++i) scale *= 10;
  std::string out = absl::StrCat(value / scale);
  uint64_t fraction = value % scale;
  if (fraction == 0) return out;
  std::string tail = absl::StrCat(fraction);
  tail.insert(0, digits - tail.size(), '0');
  while (tail.back() == '0') tail.pop_back();
  return absl::StrCat(out, ".", tail);
}

}  // namespace

const char kDurationForm[] = "a duration such as 90s, 1h30m, 1.5h or 100ms";

absl::StatusOr<absl::Duration> ParseGoDuration(absl::string_view text) {
  absl::string_view rest = text;
  const bool negative = absl::ConsumePrefix(&rest, "-");
  if (!negative) absl::ConsumePrefix(&rest, "+");
  if (rest == "0") return absl::ZeroDuration();
  if (rest.empty()) return Bad(text, "is not a duration");

  uint64_t total = 0;
  while (!rest.empty()) {
    const Number number = ReadNumber(&rest);
    if (!number.any_digit) return Bad(text, "is not a duration");
    if (rest.empty()) return Bad(text, "has no unit");
    const Unit* unit = ReadUnit(&rest);
    if (unit == nullptr) return Bad(text, "has an unknown unit");
    if (number.overflow || number.whole > kMostNegative / unit->nanoseconds) {
      return Bad(text, "is out of range");
    }
    // At most 2^63, and the fraction adds less than an hour: this cannot wrap.
    uint64_t value = number.whole * unit->nanoseconds;
    value += static_cast<uint64_t>(static_cast<double>(number.fraction) *
                                   (unit->nanoseconds / number.scale));
    if (value > kMostNegative - total) return Bad(text, "is out of range");
    total += value;
  }
  if (negative && total == kMostNegative) {
    return absl::Nanoseconds(std::numeric_limits<int64_t>::min());
  }
  if (total > kMostPositive) return Bad(text, "is out of range");
  const absl::Duration duration =
      absl::Nanoseconds(static_cast<int64_t>(total));
  return negative ? -duration : duration;
}

absl::StatusOr<absl::Duration> ParsePositiveGoDuration(absl::string_view text) {
  absl::StatusOr<absl::Duration> duration = ParseGoDuration(text);
  if (duration.ok() && *duration > absl::ZeroDuration()) return duration;
  return absl::InvalidArgumentError(absl::StrCat("expected ", kDurationForm,
                                                 ", above 0, but got \"",
                                                 Printable(text), "\""));
}

std::string FormatGoDuration(absl::Duration duration) {
  // Saturates at Go's range.
  const int64_t nanoseconds = absl::ToInt64Nanoseconds(duration);
  if (nanoseconds == 0) return "0s";
  const uint64_t size = nanoseconds < 0
                            ? uint64_t{0} - static_cast<uint64_t>(nanoseconds)
                            : static_cast<uint64_t>(nanoseconds);
  const char* const sign = nanoseconds < 0 ? "-" : "";
  if (size < kMicrosecond) return absl::StrCat(sign, size, "ns");
  if (size < kMillisecond) {
    return absl::StrCat(sign, WithPoint(size, 3), "\xc2\xb5s");
  }
  if (size < kSecond) return absl::StrCat(sign, WithPoint(size, 6), "ms");
  std::string out = sign;
  if (size >= kHour) absl::StrAppend(&out, size / kHour, "h");
  if (size >= kMinute) absl::StrAppend(&out, size % kHour / kMinute, "m");
  return absl::StrCat(out, WithPoint(size % kMinute, 9), "s");
}

}  // namespace fncache
