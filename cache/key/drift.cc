// SPDX-License-Identifier: Apache-2.0
#include "cache/key/drift.h"

#include <cstring>

#include "cache/key/plain_wire.h"
#include "cache/wire/wire.h"

namespace fncache::cache::key {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The number of the two digits at `p`; at least 100 if they are none.
int TwoDigits(const char* p) {
  return IsDigit(p[0]) && IsDigit(p[1]) ? (p[0] - '0') * 10 + (p[1] - '0')
                                        : 100;
}

bool HasDay(int year, int month, int day) {
  static constexpr int kDays[] = {31, 29, 31, 30, 31, 30,
                                  31, 31, 30, 31, 30, 31};
  if (month < 1 || month > 12 || day < 1 || day > kDays[month - 1]) {
    return false;
  }
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return month != 2 || day < 29 || leap;
}

}  // namespace

bool IsTime(absl::string_view text) {
  if (text.size() < kLeastTime || text.size() > kMostTime) return false;
  const char* p = text.data();
  if (p[4] != '-' || p[7] != '-' || p[10] != 'T' || p[13] != ':' ||
      p[16] != ':') {
    return false;
  }
  const int century = TwoDigits(p);
  const int year = TwoDigits(p + 2);
  if (century >= 100 || year >= 100 ||
      !HasDay(century * 100 + year, TwoDigits(p + 5), TwoDigits(p + 8)) ||
      TwoDigits(p + 11) > 23 || TwoDigits(p + 14) > 59 ||
      TwoDigits(p + 17) > 59) {
    return false;
  }
  text.remove_prefix(19);
  if (text[0] == '.') {
    size_t digits = 0;
    while (digits + 1 < text.size() && IsDigit(text[digits + 1])) ++digits;
    if (digits < 1 || digits > 9) return false;
    text.remove_prefix(digits + 1);
  }
  if (text == "Z") return true;
  return text.size() == 6 && (text[0] == '+' || text[0] == '-') &&
         text[3] == ':' && TwoDigits(text.data() + 1) <= 23 &&
         TwoDigits(text.data() + 4) <= 59;
}

void AppendDrift(const Drift& drift, std::string* out) {
  // Everything but a large value is appended at once.
  constexpr size_t kSmall = 64;
  char small[1 + 2 * 5 + 2 * kSmall];
  char* end = small;
  *end++ = static_cast<char>(static_cast<int>(drift.type) * 4 +
                             static_cast<int>(drift.section));
  for (const absl::string_view text : {drift.key, drift.value}) {
    end = wire::WriteVarint(end, text.size());
    if (text.size() > kSmall) {
      out->append(small, end - small);
      out->append(text.data(), text.size());
      end = small;
    } else {
      std::memcpy(end, text.data(), text.size());
      end += text.size();
    }
  }
  out->append(small, end - small);
}

bool TakeDrift(absl::string_view* drifts, Drift* drift) {
  if (drifts->empty()) return false;
  const char* p = drifts->data();
  const char* const end = p + drifts->size();
  const int first = Byte(p++);
  drift->type = static_cast<DriftType>(first >> 2);
  drift->section = static_cast<DriftSection>(first & 3);
  for (absl::string_view* const text : {&drift->key, &drift->value}) {
    uint32_t size;
    if (!ReadLength(&p, end, &size)) return false;
    *text = absl::string_view(p, size);
    p += size;
  }
  drifts->remove_prefix(p - drifts->data());
  return true;
}

}  // namespace fncache::cache::key
