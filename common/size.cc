// SPDX-License-Identifier: Apache-2.0
#include "common/size.h"

#include <limits>

#include "absl/numeric/int128.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace fncache {
namespace {

struct Unit {
  absl::string_view name;
  uint64_t bytes;
};

// FormatSize takes the first of equals, so neither kB nor Ki is ever printed.
constexpr Unit kUnits[] = {
    {"", 1},
    {"KiB", 1ull << 10},
    {"MiB", 1ull << 20},
    {"GiB", 1ull << 30},
    {"TiB", 1ull << 40},
    {"PiB", 1ull << 50},
    {"EiB", 1ull << 60},
    {"KB", 1000ull},
    {"MB", 1000ull * 1000},
    {"GB", 1000ull * 1000 * 1000},
    {"TB", 1000ull * 1000 * 1000 * 1000},
    {"PB", 1000ull * 1000 * 1000 * 1000 * 1000},
    {"EB", 1000ull * 1000 * 1000 * 1000 * 1000 * 1000},
    {"B", 1},
    {"kB", 1000ull},
    // As Kubernetes writes them.
    {"Ki", 1ull << 10},
    {"Mi", 1ull << 20},
    {"Gi", 1ull << 30},
    {"Ti", 1ull << 40},
    {"Pi", 1ull << 50},
    {"Ei", 1ull << 60},
};

// Digits after the point that count; with the largest unit the product stays
// below 2^128.
constexpr int kMaxFractionDigits = 18;

absl::Status Bad(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", absl::Utf8SafeCHexEscape(text.substr(0, 64)), "\" ",
                   why, "; accepted: ", kSizeForm));
}

}  // namespace

const char kSizeForm[] = "a size such as 1024, 64MB, 256MiB, 256Mi or 1.5GiB";

absl::StatusOr<uint64_t> ParseSize(absl::string_view text) {
  absl::string_view rest = text;
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  uint64_t whole = 0;
  bool any_digit = false;
  bool overflow = false;
  while (!rest.empty() && absl::ascii_isdigit(rest.front())) {
    const uint64_t digit = rest.front() - '0';
    if (whole > (kMax - digit) / 10) overflow = true;
    if (!overflow) whole = whole * 10 + digit;
    any_digit = true;
    rest.remove_prefix(1);
  }
  uint64_t fraction = 0;
  uint64_t scale = 1;
  const bool has_point = absl::ConsumePrefix(&rest, ".");
  if (has_point) {
    int digits = 0;
    while (!rest.empty() && absl::ascii_isdigit(rest.front())) {
      if (digits < kMaxFractionDigits) {
        fraction = fraction * 10 + (rest.front() - '0');
        scale *= 10;
        ++digits;
      }
      any_digit = true;
      rest.remove_prefix(1);
    }
  }
  if (!any_digit) return Bad(text, "is not a size");

  const Unit* unit = nullptr;
  for (const Unit& candidate : kUnits) {
    if (candidate.name == rest) {
      unit = &candidate;
      break;
    }
  }
  if (unit == nullptr) return Bad(text, "has an unknown unit");
  if (has_point && unit->bytes == 1)
    return Bad(text, "is a fraction of a byte");
  if (overflow) return Bad(text, "is out of range");
  const absl::uint128 bytes = absl::uint128(whole) * unit->bytes +
                              absl::uint128(fraction) * unit->bytes / scale;
  if (bytes > kMax) return Bad(text, "is out of range");
  return static_cast<uint64_t>(bytes);
}

std::string FormatSize(uint64_t bytes) {
  if (bytes == 0) return "0";
  const Unit* best = &kUnits[0];
  for (const Unit& unit : kUnits) {
    if (bytes % unit.bytes == 0 && unit.bytes > best->bytes) best = &unit;
  }
  return absl::StrCat(bytes / best->bytes, best->name);
}

}  // namespace fncache
