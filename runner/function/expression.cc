// SPDX-License-Identifier: Apache-2.0
#include "runner/function/expression.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/field_path.h"
#include "common/status.h"
#include "runner/function/request_path.h"
#include "sdk/model/node.h"

namespace fncache::runner::function {
namespace {

using fn::Value;
using fn::internal::Ref;

// An expression's text, taken apart.
struct Parsed {
  std::vector<std::string> path;
  absl::optional<Value> fallback;
};

absl::Status Bad(absl::string_view why) {
  return absl::InvalidArgumentError(why);
}

// The index after the closing quote of the quoted text that starts at
// `text[at]`, or npos.
size_t EndOfQuoted(absl::string_view text, size_t at) {
  for (size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return absl::string_view::npos;
}

// The index of the `}` that ends the expression whose text starts at `at`, or
// npos. The expression may contain quoted text and `${index}`.
size_t EndOfExpression(absl::string_view text, size_t at) {
  int nested = 0;
  while (at < text.size()) {
    if (text[at] == '"') {
      at = EndOfQuoted(text, at);
      continue;
    }
    if (text[at] == '{') ++nested;
    if (text[at] == '}' && nested-- == 0) return at;
    ++at;
  }
  return absl::string_view::npos;
}

// `${index}` inside a path's key.
absl::StatusOr<std::string> WithIndex(std::string segment, const Scope& scope) {
  if (segment.find("${index}") != std::string::npos) {
    if (!scope.index.has_value()) {
      return Bad("index exists in a resource with count only");
    }
    segment = absl::StrReplaceAll(segment,
                                  {{"${index}", absl::StrCat(*scope.index)}});
  }
  return segment;
}

// Reads `text` up to a `|` outside of quotes, or its end, as a path. Sets
// `*end` to where it stopped.
absl::StatusOr<std::vector<std::string>> ParsePath(absl::string_view text,
                                                   const Scope& scope,
                                                   size_t* end) {
  std::vector<std::string> path;
  size_t at = 0;
  while (true) {
    std::string segment;
    if (at < text.size() && text[at] == '"') {
      absl::string_view rest = text.substr(at);
      auto unquoted = TakeQuoted(&rest);
      if (!unquoted.ok()) return unquoted.status();
      segment = *std::move(unquoted);
      at = text.size() - rest.size();
    } else {
      size_t stop = at;
      while (stop < text.size() && text[stop] != '.' && text[stop] != '|') {
        ++stop;
      }
      absl::string_view plain = text.substr(at, stop - at);
      // Space may precede the `|` or the end.
      if (stop == text.size() || text[stop] == '|') {
        plain = absl::StripTrailingAsciiWhitespace(plain);
      }
      if (plain.empty()) return Bad("a path has an empty part");
      std::string checked(plain);
      absl::StrReplaceAll({{"${index}", ""}}, &checked);
      if (checked.find_first_of("\"{}$ \t\n\r") != std::string::npos) {
        return Bad(absl::StrCat("the part ", plain,
                                " of the path needs quotes: \"...\""));
      }
      segment = std::string(plain);
      at = stop;
    }
    auto indexed = WithIndex(std::move(segment), scope);
    if (!indexed.ok()) return indexed.status();
    path.push_back(*std::move(indexed));
    while (at < text.size() && absl::ascii_isspace(text[at])) ++at;
    if (at == text.size() || text[at] == '|') {
      *end = at;
      return path;
    }
    if (text[at] != '.') return Bad("a . belongs between two parts of a path");
    ++at;
  }
}

// JSON's number (RFC 8259, section 6), which is what keeps 007 and 1.2.3 text.
bool IsNumber(absl::string_view text) {
  const auto digits = [&text] {
    size_t n = 0;
    while (n < text.size() && absl::ascii_isdigit(text[n])) ++n;
    text.remove_prefix(n);
    return n;
  };
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  const bool leading_zero = !text.empty() && text[0] == '0';
  const size_t whole = digits();
  if (whole == 0 || (leading_zero && whole > 1)) return false;
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    if (digits() == 0) return false;
  }
  if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
    text.remove_prefix(1);
    if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
      text.remove_prefix(1);
    }
    if (digits() == 0) return false;
  }
  return text.empty();
}

absl::StatusOr<Value> ParseFallback(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  double number = 0;
  if (!text.empty() && text[0] == '"') {
    auto unquoted = TakeQuoted(&text);
    if (!unquoted.ok()) return unquoted.status();
    if (!text.empty()) return Bad("something follows the quoted default");
    return Value() = *unquoted;
  }
  if (text == "true" || text == "false") return Value() = text == "true";
  if (text == "null") return Value() = fn::kNull;
  if (IsNumber(text) && absl::SimpleAtod(text, &number) &&
      std::isfinite(number)) {
    return Value() = number;
  }
  return Value() = std::string(text);
}

absl::StatusOr<Parsed> Parse(absl::string_view text, const Scope& scope) {
  text = absl::StripLeadingAsciiWhitespace(text);
  Parsed parsed;
  size_t end = 0;
  auto path = ParsePath(text, scope, &end);
  if (!path.ok()) return path.status();
  parsed.path = *std::move(path);
  if (end < text.size()) {
    auto fallback = ParseFallback(text.substr(end + 1));
    if (!fallback.ok()) return fallback.status();
    parsed.fallback.emplace(*std::move(fallback));
  }
  return parsed;
}

// `text` is the text between `${` and `}`.
absl::StatusOr<Value> Evaluate(absl::string_view text, const Scope& scope) {
  auto parsed = Parse(text, scope);
  if (!parsed.ok()) return parsed.status();
  if (parsed->path.size() == 1 && parsed->path[0] == "index") {
    if (!scope.index.has_value()) {
      return Bad("index exists in a resource with count only");
    }
    return Value() = *scope.index;
  }
  auto found = LookUp(scope.ctx, parsed->path);
  if (!found.ok()) return found.status();
  if (found->has_value()) return **std::move(found);
  if (parsed->fallback.has_value()) return *std::move(parsed->fallback);
  return Bad("the request has no such value");
}

// Whole numbers without a point, others as short as reads back the same.
std::string NumberText(double number) {
  char buffer[32];
  if (std::trunc(number) == number && std::abs(number) < 1e15) {
    return absl::StrCat(static_cast<int64_t>(number));
  }
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number);
  return std::string(buffer, end.ptr);
}

absl::Status AppendText(const Value& value, std::string* out) {
  const sdk::Node& node = *sdk::Peek(value.ref().get());
  switch (node.kind) {
    case sdk::Kind::kText:
      absl::StrAppend(out, node.text);
      return absl::OkStatus();
    case sdk::Kind::kNumber:
      out->append(NumberText(node.number));
      return absl::OkStatus();
    case sdk::Kind::kBool:
      out->append(node.boolean ? "true" : "false");
      return absl::OkStatus();
    case sdk::Kind::kObject:
      return Bad("an object cannot be part of a text");
    case sdk::Kind::kList:
      return Bad("a list cannot be part of a text");
    case sdk::Kind::kNull:
    case sdk::Kind::kUnset:
      break;
  }
  return Bad("null cannot be part of a text");
}

absl::Status At(absl::string_view expression, const absl::Status& status) {
  return Prefixed(absl::StrCat("${", expression, "}"), status);
}

// `from` expanded becomes `to`.
absl::Status ExpandInto(sdk::Node* from, Value to, const Scope& scope,
                        std::string* where) {
  const size_t length = where->size();
  const sdk::Node* const shown = sdk::Peek(from);
  const sdk::Kind kind = shown == nullptr ? sdk::Kind::kUnset : shown->kind;
  if (kind == sdk::Kind::kText && absl::StrContains(shown->text, "${")) {
    const auto expanded = ExpandString(shown->text, scope);
    if (!expanded.ok()) return Prefixed(*where, expanded.status());
    to = *expanded;
  } else if (kind == sdk::Kind::kList) {
    fn::internal::StartList(to.ref());
    for (size_t i = 0; i < shown->size; ++i) {
      absl::StrAppend(where, "[", i, "]");
      const absl::Status status =
          ExpandInto(sdk::ElementOf(from, i), to.add(), scope, where);
      if (!status.ok()) return status;
      where->resize(length);
    }
  } else if (kind == sdk::Kind::kObject) {
    fn::internal::StartObject(to.ref());
    // They are sorted, so that of several faults the error is always the same.
    for (const absl::string_view key : sdk::Keys(from)) {
      absl::StrAppend(where, where->empty() ? "" : ".", SpellKey(key));
      const absl::Status status = ExpandInto(
          sdk::ChildOf(from, key), to[std::string_view(key.data(), key.size())],
          scope, where);
      if (!status.ok()) return status;
      where->resize(length);
    }
  } else {
    to = Value(Ref(from));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Value> Expand(const Value& value, const Scope& scope,
                             absl::string_view where) {
  Value expanded;
  std::string at(where);
  const absl::Status status =
      ExpandInto(value.ref().get(), expanded, scope, &at);
  if (!status.ok()) return status;
  return expanded;
}

absl::StatusOr<Value> ExpandString(absl::string_view text, const Scope& scope) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    if (absl::StartsWith(text.substr(at), "$${")) {
      out += "${";
      at += 3;
      continue;
    }
    if (!absl::StartsWith(text.substr(at), "${")) {
      out += text[at++];
      continue;
    }
    const size_t end = EndOfExpression(text, at + 2);
    if (end == absl::string_view::npos) {
      return Bad(absl::StrCat(text.substr(at), ": ${ without its }"));
    }
    const absl::string_view expression = text.substr(at + 2, end - at - 2);
    auto value = Evaluate(expression, scope);
    if (!value.ok()) return At(expression, value.status());
    if (at == 0 && end + 1 == text.size()) return value;
    const absl::Status status = AppendText(*value, &out);
    if (!status.ok()) return At(expression, status);
    at = end + 1;
  }
  return Value() = out;
}

}  // namespace fncache::runner::function
