// SPDX-License-Identifier: Apache-2.0
#include "text/rfc3339.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "text/quoted.h"

namespace fncache::text {
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
  // A civil time carries the 30th of February over to March, which shows that
  // there is no such day.
  const absl::CivilSecond civil(year, month, day, hour, minute, second);
  if (!zone.has_value() || civil.day() != day) return absl::nullopt;
  return absl::FromCivil(civil, absl::UTCTimeZone()) - *zone;
}

std::string Rfc3339Problem(absl::string_view text) {
  // Go's layout, cut where Go cuts it. A number has its digits and its range.
  static constexpr struct {
    absl::string_view layout;
    size_t least = 0;  // 0 = the layout's own text
    size_t most = 0;
    int low = 0;
    int high = 99;
    absl::string_view name = "";
  } kParts[] = {{"2006", 4, 4, 0, 9999},
                {"-"},
                {"01", 2, 2, 1, 12, "month"},
                {"-"},
                {"02", 2, 2},
                {"T"},
                {"15", 1, 2, 0, 23, "hour"},
                {":"},
                {"04", 2, 2, 0, 59, "minute"},
                {":"},
                {"05", 2, 2, 0, 59, "second"}};
  const std::string time = absl::StrCat("parsing time ", Quoted(text));
  const auto cannot = [&time](absl::string_view rest, absl::string_view part) {
    return absl::StrCat(time,
                        " as \"2006-01-02T15:04:05Z07:00\": cannot parse ",
                        Quoted(rest), " as ", Quoted(part));
  };
  absl::string_view rest = text;
  for (const auto& part : kParts) {
    const absl::string_view before = rest;
    if (part.least == 0) {
      if (!absl::ConsumePrefix(&rest, part.layout)) {
        return cannot(rest, part.layout);
      }
      continue;
    }
    const int value = TakeNumber(&rest, part.least, part.most, 0, 9999);
    if (value < 0) return cannot(before, part.layout);
    if (value < part.low || value > part.high) {
      return absl::StrCat(time, ": ", part.name, " out of range");
    }
  }
  const absl::string_view fraction = rest;
  if (!SkipFraction(&rest)) rest = fraction;
  constexpr absl::string_view kZone = "Z07:00";
  const absl::string_view zone = rest;
  if (!absl::ConsumePrefix(&rest, "Z")) {
    constexpr size_t kZoneBytes = 6;  // +02:00
    if (zone.size() < kZoneBytes || zone[3] != ':') return cannot(zone, kZone);
    absl::string_view hour = zone.substr(1, 2);
    absl::string_view minute = zone.substr(4, 2);
    const int hours = TakeTwoDigits(&hour, 0, 99);
    const int minutes = TakeTwoDigits(&minute, 0, 99);
    if (hours < 0 || minutes < 0) return cannot(zone, kZone);
    if (hours > 24) {
      return absl::StrCat(time, ": time zone offset hour out of range");
    }
    if (minutes > 60) {
      return absl::StrCat(time, ": time zone offset minute out of range");
    }
    if (zone[0] != '+' && zone[0] != '-') return cannot(zone, kZone);
    rest.remove_prefix(kZoneBytes);
  }
  if (!rest.empty()) {
    return absl::StrCat(time, ": extra text: ", Quoted(rest));
  }
  return absl::StrCat(time, ": day out of range");
}

std::string FormatRfc3339(absl::Time time) {
  return absl::FormatTime("%E4Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

}  // namespace fncache::text
