// SPDX-License-Identifier: Apache-2.0
#include "runner/text/rfc3339.h"

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

namespace fncache::runner::text {
namespace {

// Takes digits off the head of `text`: `most` of them, or as few as `least`
// where no more follow. Returns their value, or -1 if there are too few or the
// value is not from `low` to `high`.
int TakeNumber(absl::string_view* text, size_t least, size_t most, int low,
               int high) {
  size_t digits = 0;
  int value = 0;
  while (digits < most && digits < text->size() &&
         absl::ascii_isdigit((*text)[digits])) {
    value = value * 10 + ((*text)[digits++] - '0');
  }
  text->remove_prefix(digits);
  return digits >= least && value >= low && value <= high ? value : -1;
}

int TakeTwoDigits(absl::string_view* text, int low, int high) {
  return TakeNumber(text, 2, 2, low, high);
}

// Skips a fraction of a second; returns false if one begins there and has no
// digit.
bool SkipFraction(absl::string_view* text) {
  if (!absl::ConsumePrefix(text, ".") && !absl::ConsumePrefix(text, ",")) {
    return true;
  }
  if (text->empty() || !absl::ascii_isdigit(text->front())) return false;
  while (!text->empty() && absl::ascii_isdigit(text->front())) {
    text->remove_prefix(1);
  }
  return true;
}

// How far east of UTC the zone is that `text` consists of, `Z` or `+02:00`.
absl::optional<absl::Duration> ParseZone(absl::string_view text) {
  if (text == "Z") return absl::ZeroDuration();
  const bool east = absl::ConsumePrefix(&text, "+");
  if (!east && !absl::ConsumePrefix(&text, "-")) return absl::nullopt;
  const int hours = TakeTwoDigits(&text, 0, 24);
  if (hours < 0 || !absl::ConsumePrefix(&text, ":")) return absl::nullopt;
  const int minutes = TakeTwoDigits(&text, 0, 60);
  if (minutes < 0 || !text.empty()) return absl::nullopt;
  const absl::Duration offset = absl::Hours(hours) + absl::Minutes(minutes);
  return east ? offset : -offset;
}

}  // namespace

absl::optional<absl::Time> ParseRfc3339(absl::string_view text) {
  const int year = TakeNumber(&text, 4, 4, 0, 9999);
  if (year < 0 || !absl::ConsumePrefix(&text, "-")) return absl::nullopt;
  const int month = TakeTwoDigits(&text, 1, 12);
  if (month < 0 || !absl::ConsumePrefix(&text, "-")) return absl::nullopt;
  const int day = TakeTwoDigits(&text, 1, 31);
  if (day < 0 || !absl::ConsumePrefix(&text, "T")) return absl::nullopt;
  const int hour = TakeNumber(&text, 1, 2, 0, 23);
  if (hour < 0 || !absl::ConsumePrefix(&text, ":")) return absl::nullopt;
  const int minute = TakeTwoDigits(&text, 0, 59);
  if (minute < 0 || !absl::ConsumePrefix(&text, ":")) return absl::nullopt;
  const int second = TakeTwoDigits(&text, 0, 59);
  if (second < 0 || !SkipFraction(&text)) return absl::nullopt;
  const absl::optional<absl::Duration> zone = ParseZone(text);
  // A civil time carries the 30th of February over to March, which is how one
  // tells that there is no such day.
  const absl::CivilSecond civil(year, month, day, hour, minute, second);
  if (!zone.has_value() || civil.day() != day) return absl::nullopt;
  return absl::FromCivil(civil, absl::UTCTimeZone()) - *zone;
}

std::string FormatRfc3339(absl::Time time) {
  return absl::FormatTime("%E4Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

}  // namespace fncache::runner::text
