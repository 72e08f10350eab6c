// SPDX-License-Identifier: Apache-2.0
#include "text/yaml_scalar.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace fncache::text {
namespace {

using Type = YamlScalar::Type;

bool IsDigit(absl::string_view text, size_t at) {
  return at < text.size() && absl::ascii_isdigit(text[at]);
}

YamlScalar Bool(bool truth) {
  YamlScalar scalar;
  scalar.type = Type::kBool;
  scalar.truth = truth;
  return scalar;
}

YamlScalar Float(double number) {
  YamlScalar scalar;
  scalar.type = Type::kFloat;
  scalar.number = number;
  return scalar;
}

YamlScalar OfType(Type type) {
  YamlScalar scalar;
  scalar.type = type;
  return scalar;
}

// The words that mean something. True: `text` is one.
bool ResolveWord(absl::string_view text, YamlScalar* scalar) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static const struct {
    absl::string_view spelled[5];
    YamlScalar meaning;
  } kWords[] = {
      {{"y", "Y", "yes", "Yes", "YES"}, Bool(true)},
      {{"true", "True", "TRUE"}, Bool(true)},
      {{"on", "On", "ON"}, Bool(true)},
      {{"n", "N", "no", "No", "NO"}, Bool(false)},
      {{"false", "False", "FALSE"}, Bool(false)},
      {{"off", "Off", "OFF"}, Bool(false)},
      {{"~", "null", "Null", "NULL"}, OfType(Type::kNull)},
      {{".nan", ".NaN", ".NAN"},
       Float(std::numeric_limits<double>::quiet_NaN())},
      {{".inf", ".Inf", ".INF"}, Float(kInfinity)},
      {{"+.inf", "+.Inf", "+.INF"}, Float(kInfinity)},
      {{"-.inf", "-.Inf", "-.INF"}, Float(-kInfinity)},
  };
  if (text.empty()) {
    scalar->type = Type::kNull;
    return true;
  }
  if (text.size() > 5) return false;
  for (const auto& word : kWords) {
    if (absl::c_linear_search(word.spelled, text)) {
      *scalar = word.meaning;
      return true;
    }
  }
  return false;
}

// Digits of `base` and nothing else.
bool ParseDigits(absl::string_view text, int base, uint64_t* value) {
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, *value, base);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

bool WithSign(uint64_t magnitude, bool negative, int64_t* value) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  if (magnitude > kMost + (negative ? 1 : 0)) return false;
  *value = static_cast<int64_t>(negative ? ~magnitude + 1 : magnitude);
  return true;
}

// Cuts a sign off. True: it was '-'.
bool ConsumeSign(absl::string_view* text) {
  if (absl::ConsumePrefix(text, "-")) return true;
  absl::ConsumePrefix(text, "+");
  return false;
}

// Digits without a sign. Their prefix is the base: 0x, 0b, 0o, 0.
bool ParseMagnitude(absl::string_view text, uint64_t* value) {
  if (text.size() < 2 || text[0] != '0') return ParseDigits(text, 10, value);
  switch (absl::ascii_tolower(text[1])) {
    case 'x':
      return ParseDigits(text.substr(2), 16, value);
    case 'b':
      return ParseDigits(text.substr(2), 2, value);
    case 'o':
      return ParseDigits(text.substr(2), 8, value);
    default:
      return ParseDigits(text.substr(1), 8, value);
  }
}

bool ResolveInteger(absl::string_view text, YamlScalar* scalar) {
  absl::string_view digits = text;
  const bool negative = ConsumeSign(&digits);
  uint64_t magnitude = 0;
  if (ParseMagnitude(digits, &magnitude)) {
    if (WithSign(magnitude, negative, &scalar->integer)) {
      scalar->type = Type::kInteger;
      return true;
    }
    if (digits.size() == text.size()) {
      scalar->type = Type::kUnsigned;
      scalar->whole = magnitude;
      return true;
    }
    return false;
  }
  // A sign may follow 0b as well.
  if (absl::ConsumePrefix(&text, "0b")) {
    const bool inner = ConsumeSign(&text);
    if (ParseDigits(text, 2, &magnitude) &&
        WithSign(magnitude, inner, &scalar->integer)) {
      scalar->type = Type::kInteger;
      return true;
    }
  }
  return false;
}

size_t CountDigits(absl::string_view text) {
  size_t count = 0;
  while (IsDigit(text, count)) ++count;
  return count;
}

// [-+]? ( .D+ | D+ (. D*)? ) ( [eE] [-+]? D+ )? and nothing else.
bool LooksLikeFloat(absl::string_view text) {
  ConsumeSign(&text);
  const size_t before = CountDigits(text);
  text.remove_prefix(before);
  if (absl::ConsumePrefix(&text, ".")) {
    const size_t after = CountDigits(text);
    if (before + after == 0) return false;
    text.remove_prefix(after);
  } else if (before == 0) {
    return false;
  }
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  ConsumeSign(&text);
  return !text.empty() && CountDigits(text) == text.size();
}

bool ResolveFloat(absl::string_view text, YamlScalar* scalar) {
  if (!LooksLikeFloat(text)) return false;
  absl::ConsumePrefix(&text, "+");
  double number = 0;
  const auto parsed =
      absl::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec == std::errc::result_out_of_range) {
    if (std::fabs(number) > 1) return false;  // too large; else it is too small
    number = 0;
  }
  *scalar = Float(number);
  return true;
}

// Go's number syntax takes an underscore between two digits.
bool ConsumeUnderscores(std::string* text) {
  for (size_t i = 0; i < text->size(); ++i) {
    if ((*text)[i] != '_') continue;
    if (i == 0 || !IsDigit(*text, i - 1) || !IsDigit(*text, i + 1)) {
      return false;
    }
  }
  absl::StrReplaceAll({{"_", ""}}, text);
  return true;
}

// Reads one or two digits, two if `both`.
bool ConsumeNumber(absl::string_view* text, bool both, int* number) {
  if (!IsDigit(*text, 0)) return false;
  const size_t length = IsDigit(*text, 1) ? 2 : 1;
  if (both && length != 2) return false;
  *number = 0;
  for (const char digit : text->substr(0, length)) {
    *number = *number * 10 + (digit - '0');
  }
  text->remove_prefix(length);
  return true;
}

bool ConsumeUpTo(absl::string_view* text, int most) {
  int number = 0;
  return ConsumeNumber(text, /*both=*/false, &number) && number <= most;
}

bool ConsumeDate(absl::string_view* text) {
  int year = 0, month = 0, day = 0;
  if (CountDigits(*text) != 4) return false;
  for (const char digit : text->substr(0, 4)) year = year * 10 + (digit - '0');
  text->remove_prefix(4);
  if (!absl::ConsumePrefix(text, "-") ||
      !ConsumeNumber(text, /*both=*/false, &month) ||
      !absl::ConsumePrefix(text, "-") ||
      !ConsumeNumber(text, /*both=*/false, &day)) {
    return false;
  }
  if (month < 1 || month > 12 || day < 1) return false;
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return day <= kDays[month - 1] + (month == 2 && leap ? 1 : 0);
}

bool ConsumeTime(absl::string_view* text) {
  if (!ConsumeUpTo(text, 23) || !absl::ConsumePrefix(text, ":") ||
      !ConsumeUpTo(text, 59) || !absl::ConsumePrefix(text, ":") ||
      !ConsumeUpTo(text, 59)) {
    return false;
  }
  if (!text->empty() && ((*text)[0] == '.' || (*text)[0] == ',') &&
      IsDigit(*text, 1)) {
    text->remove_prefix(1);
    text->remove_prefix(CountDigits(*text));
  }
  return true;
}

bool ConsumeZone(absl::string_view* text) {
  if (absl::ConsumePrefix(text, "Z")) return true;
  if (!absl::ConsumePrefix(text, "+") && !absl::ConsumePrefix(text, "-")) {
    return false;
  }
  int hour = 0, minute = 0;
  return ConsumeNumber(text, /*both=*/true, &hour) && hour <= 24 &&
         absl::ConsumePrefix(text, ":") &&
         ConsumeNumber(text, /*both=*/true, &minute) && minute <= 60;
}

// A date alone, or a date and a time. Between the two is T or t, and then the
// time has a zone; or there are blanks.
bool LooksLikeTimestamp(absl::string_view text) {
  if (!ConsumeDate(&text)) return false;
  if (text.empty()) return true;
  if (absl::ConsumePrefix(&text, "T") || absl::ConsumePrefix(&text, "t")) {
    return ConsumeTime(&text) && ConsumeZone(&text) && text.empty();
  }
  if (text[0] != ' ') return false;
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return ConsumeTime(&text) && text.empty();
}

YamlScalar Resolve(absl::string_view text, bool timestamps) {
  YamlScalar scalar;
  if (ResolveWord(text, &scalar)) return scalar;
  const char first = text[0];
  if (first == '.') {
    std::string digits(text);
    if (ConsumeUnderscores(&digits)) ResolveFloat(digits, &scalar);
    return scalar;
  }
  if (first != '+' && first != '-' && !absl::ascii_isdigit(first)) {
    return scalar;
  }
  if (timestamps && LooksLikeTimestamp(text)) {
    scalar.type = Type::kTimestamp;
    return scalar;
  }
  const std::string digits = absl::StrReplaceAll(text, {{"_", ""}});
  if (!ResolveInteger(digits, &scalar)) ResolveFloat(digits, &scalar);
  return scalar;
}

// The name of the tag that a scalar of this type has.
absl::string_view TagOf(Type type) {
  switch (type) {
    case Type::kText:
      return "str";
    case Type::kNull:
      return "null";
    case Type::kBool:
      return "bool";
    case Type::kInteger:
    case Type::kUnsigned:
      return "int";
    case Type::kFloat:
      return "float";
    case Type::kTimestamp:
      return "timestamp";
  }
  return "";
}

template <typename Number>
std::string ShortestNumber(Number number) {
  if (std::isnan(number)) return ".nan";
  if (std::isinf(number)) return number < 0 ? "-.inf" : ".inf";
  char text[64];
  const auto printed = std::to_chars(text, text + sizeof text, number,
                                     std::chars_format::scientific);
  const absl::string_view all(text, static_cast<size_t>(printed.ptr - text));
  absl::string_view exponent_text = all.substr(all.find('e') + 1);
  absl::ConsumePrefix(&exponent_text, "+");
  int exponent = 0;
  std::from_chars(exponent_text.data(),
                  exponent_text.data() + exponent_text.size(), exponent);
  // std::to_chars writes an exponent as it is wanted, of two digits or more.
  if (exponent < -4 || exponent >= 6) return std::string(all);
  const auto plain =
      std::to_chars(text, text + sizeof text, number, std::chars_format::fixed);
  return std::string(text, plain.ptr);
}

}  // namespace

YamlScalar ResolveYamlScalar(absl::string_view text) {
  return Resolve(text, /*timestamps=*/true);
}

absl::StatusOr<YamlScalar> ResolveTaggedYamlScalar(absl::string_view tag,
                                                   absl::string_view text) {
  if (!absl::ConsumePrefix(&tag, "tag:yaml.org,2002:")) return YamlScalar();
  static const struct {
    absl::string_view tag;
    Type type;
  } kTags[] = {{"bool", Type::kBool},
               {"int", Type::kInteger},
               {"float", Type::kFloat},
               {"null", Type::kNull},
               {"timestamp", Type::kTimestamp}};
  const auto* known = absl::c_find_if(
      kTags, [tag](const auto& entry) { return entry.tag == tag; });
  if (known == std::end(kTags)) return YamlScalar();
  YamlScalar scalar = Resolve(text, known->type == Type::kTimestamp);
  if (scalar.type == known->type) return scalar;
  if (scalar.type == Type::kUnsigned && known->type == Type::kInteger) {
    return scalar;
  }
  if (scalar.type == Type::kInteger && known->type == Type::kFloat) {
    return Float(static_cast<double>(scalar.integer));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "cannot decode !!", TagOf(scalar.type), " `", text, "` as a !!", tag));
}

bool IsBase60(absl::string_view text) {
  ConsumeSign(&text);
  if (!IsDigit(text, 0)) return false;
  while (!text.empty() && (IsDigit(text, 0) || text[0] == '_')) {
    text.remove_prefix(1);
  }
  if (text.empty() || text[0] != ':') return false;
  while (absl::ConsumePrefix(&text, ":")) {
    int part = 0;
    if (!ConsumeNumber(&text, /*both=*/false, &part) || part > 59) return false;
  }
  if (!absl::ConsumePrefix(&text, ".")) return text.empty();
  return absl::c_all_of(
      text, [](char c) { return absl::ascii_isdigit(c) || c == '_'; });
}

std::string YamlNumber(double number) { return ShortestNumber(number); }

std::string YamlNumber(float number) { return ShortestNumber(number); }

}  // namespace fncache::text
