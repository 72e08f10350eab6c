// SPDX-License-Identifier: Apache-2.0
#include "sdk/schema/validate.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/utf8.h"
#include "re2/re2.h"
#include "sdk/schema/keywords.h"
#include "sdk/schema/names.h"
#include "sdk/schema/problems.h"
#include "text/rfc3339.h"

namespace fncache::sdk::schema {
namespace {

using function::Problem;

// Values of an `enum` in a message.
constexpr size_t kMaxNamed = 10;

// The kind of a schema's `type`; kUnset for a type that is none.
Kind KindOf(absl::string_view type) {
  if (type == "string") return Kind::kText;
  if (type == "integer" || type == "number") return Kind::kNumber;
  if (type == "boolean") return Kind::kBool;
  if (type == "object") return Kind::kObject;
  if (type == "array") return Kind::kList;
  return Kind::kUnset;
}

bool IsWhole(double number) { return number == std::floor(number); }

bool IsMultiple(double number, double factor) {
  if (IsWhole(number) && IsWhole(factor)) return std::fmod(number, factor) == 0;
  // Decimal fractions are not exact in binary: 0.3 / 0.1 is below 3.
  const double times = number / factor;
  return std::abs(times - std::round(times)) <=
         1e-12 * std::max(1.0, std::abs(times));
}

bool IsIntOrString(const Node* schema) {
  if (IsSet(schema, "x-kubernetes-int-or-string")) return true;
  const Node* const format = Keyword(schema, "format", Kind::kText);
  return format != nullptr && format->text == "int-or-string";
}

size_t CodePoints(absl::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
      }));
}

// Whether the value, or more of an object or list, can still come.
bool IsAwaited(Node* node, const Node* value) {
  return value == nullptr ? !SourcesOf(node).empty() : node->awaited != nullptr;
}

// Compares values. It goes down the schema with each step, so the depth of the
// schema bounds that of the recursion.
class Values {
 public:
  explicit Values(Problems* problems) : problems_(problems) {}

  void Check(const Node* schema, Node* node) {
    if (Ends() || schema->kind != Kind::kObject ||
        Keyword(schema, "$ref") != nullptr) {
      unsure_ = true;
      return;
    }
    const Node* const value = Look(node);
    if (IsAwaited(node, value)) unsure_ = unsure_ || !schema->children.empty();
    if (value == nullptr) {
      if (node == problems_->root() && !IsAwaited(node, value)) {
        CheckRequired(schema, node);
      }
      return;
    }
    if (!HasType(schema, node, *value)) return;
    CheckEnum(schema, node, *value);
    // API servers compare a null that is allowed with no other rule.
    if (value->kind == Kind::kNull && IsSet(schema, "nullable")) return;
    if (value->kind == Kind::kNumber) CheckNumber(schema, node, value->number);
    if (value->kind == Kind::kText) CheckText(schema, node, value->text);
    if (value->kind == Kind::kList) CheckList(schema, node);
    if (value->kind == Kind::kObject) CheckObject(schema, node);
    CheckForms(schema, node);
  }

 private:
  // kMaybe: it depends on what cannot be judged.
  enum class Match { kYes, kNo, kMaybe };

  template <class... Parts>
  void FailBelow(const Node* node, absl::optional<absl::string_view> key,
                 const Parts&... parts) {
    failed_ = true;
    if (!trying_) problems_->Add(node, key, absl::StrCat(parts...));
  }
  template <class... Parts>
  void Fail(const Node* node, const Parts&... parts) {
    FailBelow(node, absl::nullopt, parts...);
  }
  // No more is to be found out.
  bool Ends() {
    return !problems_->Step() || (trying_ ? failed_ : problems_->full());
  }

  // The keyword's value if it has this type.
  const Node* Get(const Node* schema, absl::string_view keyword, Kind kind) {
    const Node* const value = Keyword(schema, keyword);
    if (value == nullptr || value->kind == kind) return value;
    unsure_ = true;
    return nullptr;
  }

  bool HasType(const Node* schema, const Node* node, const Node& value) {
    if (value.kind == Kind::kNull && IsSet(schema, "nullable")) return true;
    const bool whole = value.kind != Kind::kNumber || IsWhole(value.number);
    if (IsIntOrString(schema)) {
      if (value.kind == Kind::kText) return true;
      if (value.kind == Kind::kNumber && whole) return true;
      Fail(node, "must be a whole number or text, is ",
           whole ? KindName(value.kind) : "a fraction");
      return false;
    }
    const Node* const type = Get(schema, "type", Kind::kText);
    if (type == nullptr) return true;
    const Kind wanted = KindOf(type->text);
    if (wanted == Kind::kUnset) {
      unsure_ = true;
    } else if (value.kind != wanted) {
      Fail(node, "must be ", KindName(wanted), ", is ", KindName(value.kind));
      return false;
    } else if (type->text == "integer" && !whole) {
      Fail(node, "must be a whole number");
      return false;
    }
    return true;
  }

  void CheckEnum(const Node* schema, Node* node, const Node& value) {
    const Node* const accepted = Get(schema, "enum", Kind::kList);
    if (accepted == nullptr || accepted->size == 0) return;
    std::vector<std::string> names;
    for (size_t i = 0; i < accepted->size; ++i) {
      const Node* const one = accepted->elements[i];
      problems_->Step();
      if (Same(*one, node, value)) return;
      if (names.size() < kMaxNamed) names.push_back(Spelled(one));
    }
    const size_t more = accepted->size - names.size();
    Fail(node, "must be ", accepted->size == 1 ? "" : "one of ",
         absl::StrJoin(names, ", "),
         more == 0 ? "" : absl::StrCat(" or ", more, " more"));
  }

  // Whether the value equals a constant of the schema. Objects and lists with
  // awaited values equal any other.
  bool Same(const Node& constant, Node* node, const Node& value) {
    if (constant.kind != value.kind) return false;
    if (IsAwaited(node, &value)) return unsure_ = true;
    switch (value.kind) {
      case Kind::kBool:
        return constant.boolean == value.boolean;
      case Kind::kNumber:
        return constant.number == value.number;
      case Kind::kText:
        return constant.text == value.text;
      case Kind::kList: {
        if (Size(node) != constant.size) return false;
        for (size_t i = 0; i < constant.size; ++i) {
          if (!SameOrAwaited(*constant.elements[i], ElementOf(node, i))) {
            return false;
          }
        }
        return true;
      }
      case Kind::kObject: {
        size_t fields = 0;
        for (const Node* const child : constant.children) {
          if (child->kind == Kind::kUnset) continue;
          ++fields;
          if (!SameOrAwaited(*child, ChildOf(node, child->key))) return false;
        }
        return Keys(node).size() == fields;
      }
      default:
        return true;
    }
  }
  bool SameOrAwaited(const Node& constant, Node* node) {
    problems_->Step();
    const Node* const value = Look(node);
    if (value != nullptr) return Same(constant, node, *value);
    if (!IsAwaited(node, value)) return false;
    return unsure_ = true;
  }

  void CheckNumber(const Node* schema, const Node* node, double number) {
    CheckBound(schema, node, number, "minimum", "exclusiveMinimum", 1);
    CheckBound(schema, node, number, "maximum", "exclusiveMaximum", -1);
    const Node* const factor = Get(schema, "multipleOf", Kind::kNumber);
    if (factor != nullptr && factor->number > 0 &&
        !IsMultiple(number, factor->number)) {
      Fail(node, "must be a multiple of ", Spelled(factor));
    }
    const Node* const format = Get(schema, "format", Kind::kText);
    if (format == nullptr) return;
    const int bits = format->text == "int32"   ? 31
                     : format->text == "int64" ? 63
                                               : 0;
    if (bits == 0) return;
    const double limit = std::ldexp(1, bits);
    if (number < -limit || number >= limit) {
      Fail(node, "must fit ", format->text);
    }
  }

  // `sign` is 1 for a lower bound and -1 for an upper one. `exclusive` is a
  // boolean in OpenAPI 3.0 and a bound of its own in 3.1.
  void CheckBound(const Node* schema, const Node* node, double number,
                  absl::string_view bound, absl::string_view exclusive,
                  int sign) {
    const Node* limit = Get(schema, bound, Kind::kNumber);
    bool open = IsSet(schema, exclusive);
    for (int i = 0; i < 2; ++i) {
      if (limit != nullptr) {
        const double above = (number - limit->number) * sign;
        if (above < 0 || (above == 0 && open)) {
          Fail(node, "must be ",
               sign > 0 ? (open ? "more than " : "at least ")
                        : (open ? "less than " : "at most "),
               Spelled(limit));
        }
      }
      limit = Keyword(schema, exclusive, Kind::kNumber);
      open = true;
    }
  }

  void CheckCount(const Node* schema, Node* node, size_t count,
                  absl::string_view least, absl::string_view most,
                  absl::string_view one, absl::string_view many) {
    const bool more = IsAwaited(node, node);
    const auto counted = [&](const Node* limit) {
      return absl::StrCat(Spelled(limit), " ", limit->number == 1 ? one : many);
    };
    const Node* const minimum = Get(schema, least, Kind::kNumber);
    if (minimum != nullptr && !more &&
        static_cast<double>(count) < minimum->number) {
      Fail(node, "must have at least ", counted(minimum));
    }
    const Node* const maximum = Get(schema, most, Kind::kNumber);
    if (maximum != nullptr && static_cast<double>(count) > maximum->number) {
      Fail(node, "must have at most ", counted(maximum));
    }
  }

  void CheckText(const Node* schema, Node* node, absl::string_view text) {
    CheckCount(schema, node, CodePoints(text), "minLength", "maxLength",
               "character", "characters");
    const Node* const pattern = Get(schema, "pattern", Kind::kText);
    if (pattern != nullptr) {
      const auto compiled = CompiledPattern(pattern->text);
      if (compiled == nullptr) {
        unsure_ = true;
      } else if (!re2::RE2::PartialMatch(
                     re2::StringPiece(text.data(), text.size()), *compiled)) {
        Fail(node, "must match the pattern ", PrintableStart(pattern->text));
      }
    }
    const Node* const format = Get(schema, "format", Kind::kText);
    if (format == nullptr) return;
    if (format->text == "date-time") {
      if (!text::ParseRfc3339(absl::AsciiStrToUpper(text)).has_value()) {
        Fail(node, "must be a time as RFC 3339 has it");
      }
    } else {
      unsure_ = true;
    }
  }

  void CheckList(const Node* schema, Node* node) {
    const size_t size = Size(node);
    CheckCount(schema, node, size, "minItems", "maxItems", "element",
               "elements");
    if (IsSet(schema, "uniqueItems")) CheckUnique(node, size);
    const Node* const items = Get(schema, "items", Kind::kObject);
    for (size_t i = 0; items != nullptr && i < size && !Ends(); ++i) {
      Check(items, ElementOf(node, i));
    }
  }

  void CheckUnique(Node* node, size_t size) {
    std::set<std::string> known;
    for (size_t i = 0; i < size; ++i) {
      std::string element;
      if (!Encode(ElementOf(node, i), &element)) {
        unsure_ = true;
      } else if (!known.insert(std::move(element)).second) {
        return Fail(node, "must not have equal elements");
      }
    }
  }

  // Appends the value so that different values differ; false where some of it
  // is awaited.
  bool Encode(Node* node, std::string* out) {
    problems_->Step();
    const Node* const value = Look(node);
    if (value == nullptr || IsAwaited(node, value)) return false;
    absl::StrAppend(out, static_cast<int>(value->kind), ":");
    if (value->kind == Kind::kBool) absl::StrAppend(out, value->boolean);
    if (value->kind == Kind::kNumber) {
      const double number = value->number + 0.0;  // of -0.0, too
      out->append(reinterpret_cast<const char*>(&number), sizeof(number));
    }
    if (value->kind == Kind::kText) {
      absl::StrAppend(out, value->text.size(), ":", value->text);
    }
    if (value->kind == Kind::kList) {
      const size_t size = Size(node);
      absl::StrAppend(out, size, ":");
      for (size_t i = 0; i < size; ++i) {
        if (!Encode(ElementOf(node, i), out)) return false;
      }
    }
    if (value->kind == Kind::kObject) {
      const auto keys = Keys(node);
      absl::StrAppend(out, keys.size(), ":");
      for (const absl::string_view key : keys) {
        absl::StrAppend(out, key.size(), ":", key);
        if (!Encode(ChildOf(node, key), out)) return false;
      }
    }
    return true;
  }

  void CheckRequired(const Node* schema, Node* node) {
    const Node* const required = Get(schema, "required", Kind::kList);
    if (required == nullptr || IsAwaited(node, node)) return;
    for (size_t i = 0; i < required->size && !Ends(); ++i) {
      const Node* const name = required->elements[i];
      if (name->kind != Kind::kText) {
        unsure_ = true;
        continue;
      }
      Node* const child = ChildOf(node, name->text);
      const Node* const value = Look(child);
      if (value == nullptr && !IsAwaited(child, value)) {
        FailBelow(node, name->text, "is required");
      }
    }
  }

  void CheckObject(const Node* schema, Node* node) {
    CheckRequired(schema, node);
    const auto keys = Keys(node);
    CheckCount(schema, node, keys.size(), "minProperties", "maxProperties",
               "field", "fields");
    const Node* const properties = Get(schema, "properties", Kind::kObject);
    const Node* const others = Keyword(schema, "additionalProperties");
    if (others != nullptr && others->kind != Kind::kObject &&
        others->kind != Kind::kBool) {
      unsure_ = true;
    }
    if (properties == nullptr && others == nullptr) return;
    for (const absl::string_view key : keys) {
      if (Ends()) return;
      const Node* const named = Keyword(properties, key);
      if (named != nullptr) {
        Check(named, ChildOf(node, key));
      } else if (others != nullptr && others->kind == Kind::kObject) {
        Check(others, ChildOf(node, key));
      } else if (others != nullptr && others->kind == Kind::kBool &&
                 !others->boolean) {
        FailBelow(node, key, "is not known");
      }
    }
  }

  // allOf, anyOf, oneOf and not.
  void CheckForms(const Node* schema, Node* node) {
    const Node* const all = Get(schema, "allOf", Kind::kList);
    for (size_t i = 0; all != nullptr && i < all->size; ++i) {
      Check(all->elements[i], node);
    }
    const Node* const any = Get(schema, "anyOf", Kind::kList);
    const Matches of_any = CountMatches(any, node);
    if (any != nullptr && any->size > 0 && of_any.yes == 0) {
      if (of_any.maybe > 0) {
        unsure_ = true;
      } else {
        Fail(node, "has none of the accepted forms (anyOf)");
      }
    }
    const Node* const one = Get(schema, "oneOf", Kind::kList);
    const Matches of_one = CountMatches(one, node);
    if (of_one.yes > 1) {
      Fail(node, "has more than one of the accepted forms (oneOf)");
    } else if (of_one.maybe > 0) {
      unsure_ = true;
    } else if (one != nullptr && one->size > 0 && of_one.yes == 0) {
      Fail(node, "has none of the accepted forms (oneOf)");
    }
    const Node* const other = Get(schema, "not", Kind::kObject);
    if (other == nullptr) return;
    const Match match = Try(other, node);
    if (match == Match::kYes) Fail(node, "has a form that is not accepted");
    if (match == Match::kMaybe) unsure_ = true;
  }

  struct Matches {
    size_t yes = 0;
    size_t maybe = 0;
  };
  Matches CountMatches(const Node* schemas, Node* node) {
    Matches matches;
    for (size_t i = 0; schemas != nullptr && i < schemas->size; ++i) {
      const Match match = Try(schemas->elements[i], node);
      if (match == Match::kYes) ++matches.yes;
      if (match == Match::kMaybe) ++matches.maybe;
    }
    return matches;
  }

  Match Try(const Node* schema, Node* node) {
    const bool trying = std::exchange(trying_, true);
    const bool failed = std::exchange(failed_, false);
    const bool unsure = std::exchange(unsure_, false);
    Check(schema, node);
    const Match match = failed_   ? Match::kNo
                        : unsure_ ? Match::kMaybe
                                  : Match::kYes;
    trying_ = trying;
    failed_ = failed;
    unsure_ = unsure;
    return match;
  }

  Problems* const problems_;
  // Within anyOf, oneOf and not: nothing is reported.
  bool trying_ = false;
  // Since the current trial began: a rule was broken; the verdict depends on
  // what cannot be judged.
  bool failed_ = false;
  bool unsure_ = false;
};

}  // namespace

std::vector<Problem> Validate(const Node* schema, Node* object) {
  const Node* const seen = Peek(schema);
  if (seen == nullptr) return {};
  Problems problems(object);
  Values(&problems).Check(seen, object);
  CheckNames(seen, object, &problems);
  return problems.Take();
}

}  // namespace fncache::sdk::schema
