// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/alter.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/time/time.h"

namespace fncache::runner::probe {
namespace {

// Splitmix64's constants.
constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
constexpr uint64_t kFirst = 0xbf58476d1ce4e5b9;
constexpr uint64_t kSecond = 0x94d049bb133111eb;

// Beyond that a double has no neighbour that is one away.
constexpr double kMostWhole = 9007199254740992.0;

bool AlterWord(absl::string_view text, uint64_t random, std::string* altered) {
  static constexpr absl::string_view kStatuses[] = {"True", "False", "Unknown"};
  constexpr uint64_t kCount = 3;
  for (uint64_t i = 0; i < kCount; ++i) {
    if (text != kStatuses[i]) continue;
    *altered = std::string(kStatuses[(i + 1 + random % 2) % kCount]);
    return true;
  }
  if (text == "true") *altered = "false";
  if (text == "false") *altered = "true";
  return !altered->empty();
}

}  // namespace

uint64_t NextRandom(uint64_t* state) {
  *state += kStep;
  uint64_t mixed = *state;
  mixed = (mixed ^ (mixed >> 30)) * kFirst;
  mixed = (mixed ^ (mixed >> 27)) * kSecond;
  return mixed ^ (mixed >> 31);
}

std::string AlteredText(absl::string_view text, uint64_t random) {
  std::string altered;
  if (AlterWord(text, random, &altered)) return altered;
  absl::Time time;
  std::string why;
  if (absl::ParseTime(absl::RFC3339_full, text, &time, &why) &&
      time != absl::InfiniteFuture() && time != absl::InfinitePast()) {
    constexpr uint64_t kMostDays = 300;
    time -= absl::Hours(24 * static_cast<int64_t>(1 + random % kMostDays)) +
            absl::Seconds(static_cast<int64_t>(random >> 32) % 3600);
    return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
  }
  altered = std::string(text);
  for (size_t i = 0; i < altered.size(); ++i) {
    const auto c = static_cast<unsigned char>(altered[i]);
    const uint64_t next = NextRandom(&random);
    if (absl::ascii_isdigit(c)) {
      // A number keeps its length, and so does not begin with a zero.
      const bool leads = i == 0 && altered.size() > 1 && c != '0';
      altered[i] = static_cast<char>(leads ? '1' + next % 9 : '0' + next % 10);
    } else if (absl::ascii_islower(c)) {
      altered[i] = static_cast<char>('a' + next % 26);
    } else if (absl::ascii_isupper(c)) {
      altered[i] = static_cast<char>('A' + next % 26);
    }
  }
  if (altered != text) return altered;
  // Nothing in it to alter, or all of it came out as it was.
  for (size_t i = altered.size(); i-- > 0;) {
    char& c = altered[i];
    if (absl::ascii_isdigit(static_cast<unsigned char>(c))) {
      c = c == '9' ? '8' : static_cast<char>(c + 1);
      return altered;
    }
    if (absl::ascii_isalpha(static_cast<unsigned char>(c))) {
      c = c == 'z' ? 'y' : c == 'Z' ? 'Y' : static_cast<char>(c + 1);
      return altered;
    }
  }
  return altered + "x";
}

double AlteredNumber(double number, uint64_t random) {
  constexpr uint64_t kFar = 9;
  const double by = static_cast<double>(1 + random % kFar);
  if (!std::isfinite(number)) return by;
  if (std::fabs(number) >= kMostWhole) return number / 2;
  return number < 0 ? number - by : number + by;
}

}  // namespace fncache::runner::probe
