// SPDX-License-Identifier: Apache-2.0
#include "tests/sdk/schema/random_object.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "sdk/schema/keywords.h"

namespace fncache::sdk::schema {
namespace {

using text::Json;

const Json kNone = Json::object();

const Json& At(const Json& schema, const char* keyword) {
  static const Json* const none = new Json;
  if (!schema.is_object()) return *none;
  const auto found = schema.find(keyword);
  return found == schema.end() ? *none : *found;
}

double Number(const Json& schema, const char* keyword, double other) {
  const Json& value = At(schema, keyword);
  return value.is_number() ? value.get<double>() : other;
}

// Whole numbers are written as such: JSON validators tell 1.0 from 1.
Json Written(double number) {
  if (number == std::floor(number) && std::abs(number) < 1e15) {
    return static_cast<int64_t>(number);
  }
  return number;
}

}  // namespace

Json RandomObject::Make(const Json& schema) { return Make(schema, 0); }

Json RandomObject::MakeLeast(const Json& schema) { return Make(schema, 100); }

Json RandomObject::Make(const Json& schema, int depth) {
  const Json& constants = At(schema, "enum");
  if (constants.is_array() && !constants.empty()) {
    return constants[Below(constants.size())];
  }
  const Json& type = At(schema, "type");
  if (type == "string") return MakeText(schema);
  if (type == "integer" || type == "number") return MakeNumber(schema);
  if (type == "boolean") return Below(2) == 0;
  if (type == "array") {
    Json list = Json::array();
    const auto least = static_cast<size_t>(Number(schema, "minItems", 0));
    const size_t size = least + (depth < 6 ? Below(3) : 0);
    for (size_t i = 0; i < size; ++i) {
      list.push_back(Make(At(schema, "items"), depth + 1));
    }
    return list;
  }
  if (type == "object" || At(schema, "properties").is_object()) {
    return MakeObject(schema, depth);
  }
  if (At(schema, "x-kubernetes-int-or-string") == true) {
    return Below(2) == 0 ? Json(Below(100)) : MakeText(schema);
  }
  for (const char* const forms : {"anyOf", "oneOf", "allOf"}) {
    const Json& list = At(schema, forms);
    if (list.is_array() && !list.empty()) {
      return Make(list[Below(list.size())], depth + 1);
    }
  }
  return depth >= 100 ? Json::object() : AnyValue();
}

Json RandomObject::MakeText(const Json& schema) {
  static const char* const texts[] = {"abc",
                                      "a",
                                      "example.org",
                                      "10",
                                      "10.0.0.0/8",
                                      "1Gi",
                                      "5m",
                                      "a/b",
                                      "http://a.b",
                                      "https://a.b",
                                      "AB",
                                      "10%",
                                      "",
                                      "*",
                                      "2024-05-06T07:08:09Z",
                                      "v1",
                                      "Replace",
                                      "10MB",
                                      "a.b/c",
                                      "1 2 3 4 5",
                                      "Mon:1:2-3:4",
                                      "spiffe://a",
                                      "#a",
                                      "0123456789abcdef"};
  const Json& pattern = At(schema, "pattern");
  if (pattern.is_string()) {
    const auto compiled = CompiledPattern(pattern.get<std::string>());
    const size_t start = Below(std::size(texts));
    for (size_t i = 0; compiled != nullptr && i < std::size(texts); ++i) {
      const char* const text = texts[(start + i) % std::size(texts)];
      if (re2::RE2::PartialMatch(text, *compiled)) return text;
    }
  }
  std::string text = At(schema, "format") == "date-time"
                         ? "2024-05-06T07:08:09Z"
                         : texts[Below(std::size(texts))];
  const auto least = static_cast<size_t>(Number(schema, "minLength", 0));
  const auto most = static_cast<size_t>(Number(schema, "maxLength", 1000));
  if (text.size() < least) text.resize(least, 'x');
  if (text.size() > most) text.resize(most);
  return text;
}

Json RandomObject::MakeNumber(const Json& schema) {
  const double least = Number(schema, "minimum", 0);
  const double most = Number(schema, "maximum", least + 100);
  const double step = Number(schema, "multipleOf", 1);
  if (At(schema, "type") == "number" && Below(2) == 0) {
    return Written(least + (most - least) / 4);
  }
  const double first = std::ceil(least / step);
  const double count = std::max(1.0, std::floor(most / step) - first + 1);
  return Written(
      (first + static_cast<double>(Below(static_cast<size_t>(count)))) * step);
}

Json RandomObject::MakeObject(const Json& schema, int depth) {
  Json object = Json::object();
  const Json& properties = At(schema, "properties");
  std::vector<std::string> names;
  const auto require = [&](const Json& required) {
    for (const Json& name : required) names.push_back(name.get<std::string>());
  };
  if (At(schema, "required").is_array()) require(At(schema, "required"));
  for (const char* const forms : {"oneOf", "anyOf", "allOf"}) {
    const Json& list = At(schema, forms);
    if (!list.is_array() || list.empty()) continue;
    const Json& form = list[Below(list.size())];
    if (At(form, "required").is_array()) require(At(form, "required"));
  }
  if (properties.is_object() && depth < 8 && !properties.empty()) {
    // Few of many, so that objects stay small.
    const size_t count = Below(std::min<size_t>(properties.size(), 4) + 1);
    for (size_t i = 0; i < count; ++i) {
      const auto at = static_cast<ptrdiff_t>(Below(properties.size()));
      names.push_back(std::next(properties.begin(), at).key());
    }
  }
  for (const std::string& name : names) {
    if (object.contains(name)) continue;
    const bool known = properties.is_object() && properties.contains(name);
    object[name] = Make(known ? properties[name] : kNone, depth + 1);
  }
  const Json& others = At(schema, "additionalProperties");
  if (others.is_object()) {
    const auto least = static_cast<size_t>(Number(schema, "minProperties", 0));
    const size_t count = least + (depth < 8 ? Below(3) : 0);
    for (size_t i = 0; i < count; ++i) {
      object[absl::StrCat("key.", i)] = Make(others, depth + 1);
    }
  }
  return object;
}

Json RandomObject::AnyValue() {
  switch (Below(7)) {
    case 0:
      return nullptr;
    case 1:
      return Below(2) == 0;
    case 2:
      return static_cast<int64_t>(Below(2000)) - 1000;
    case 3:
      return static_cast<double>(Below(2000)) / 16 + 0.03125;
    case 4:
      return MakeText(kNone);
    case 5:
      return Json::array({1, "a"});
    default:
      return Json{{"a", 1}};
  }
}

void RandomObject::Find(Json* value, const Json& schema,
                        std::vector<Place>* places) {
  places->push_back({value, &schema});
  if (value->is_array()) {
    for (Json& element : *value) Find(&element, At(schema, "items"), places);
  }
  if (!value->is_object()) return;
  const Json& properties = At(schema, "properties");
  for (auto field = value->begin(); field != value->end(); ++field) {
    const bool known =
        properties.is_object() && properties.contains(field.key());
    Find(&*field,
         known ? properties[field.key()] : At(schema, "additionalProperties"),
         places);
  }
}

void RandomObject::Mutate(const Json& schema, Json* value) {
  std::vector<Place> places;
  Find(value, schema, &places);
  // The document itself stays what it is.
  if (places.size() == 1) return Change(places[0]);
  Change(places[1 + Below(places.size() - 1)]);
}

void RandomObject::Change(const Place& place) {
  Json& value = *place.value;
  const Json& schema = *place.schema;
  if (Below(5) == 0) {
    Json other = AnyValue();
    // API servers and JSON Schema differ about forms of a null.
    const bool forms = !At(schema, "anyOf").is_null() ||
                       !At(schema, "oneOf").is_null() ||
                       !At(schema, "allOf").is_null();
    if (!other.is_null() || !forms) value = std::move(other);
    return;
  }
  if (value.is_object()) {
    if (!value.empty() && Below(3) != 0) {
      value.erase(std::next(value.begin(),
                            static_cast<ptrdiff_t>(Below(value.size()))));
    } else {
      const Json& properties = At(schema, "properties");
      if (properties.is_object() && !properties.empty() && Below(3) != 0) {
        const auto at = static_cast<ptrdiff_t>(Below(properties.size()));
        const auto field = std::next(properties.begin(), at);
        value[field.key()] = Make(*field, 6);
      } else {
        value["unknown"] = AnyValue();
      }
    }
  } else if (value.is_array()) {
    if (!value.empty() && Below(2) == 0) {
      value.push_back(value[Below(value.size())]);
    } else if (!value.empty() && Below(2) == 0) {
      value.erase(Below(value.size()));
    } else {
      value.push_back(AnyValue());
    }
  } else if (value.is_number()) {
    static constexpr double kNumbers[] = {
        0, -1, 1, 0.5, 2147483647, 2147483648, -2147483649, 1e10, 12, 15, 17};
    const double bounds[] = {
        Number(schema, "minimum", 0), Number(schema, "minimum", 0) - 1,
        Number(schema, "maximum", 7), Number(schema, "maximum", 7) + 1};
    value = Written(Below(2) == 0 ? kNumbers[Below(std::size(kNumbers))]
                                  : bounds[Below(std::size(bounds))]);
  } else if (value.is_string()) {
    switch (Below(4)) {
      case 0:
        value = "";
        break;
      case 1:
        value = std::string(
            static_cast<size_t>(Number(schema, "maxLength", 300)) + Below(2),
            'x');
        break;
      case 2:
        value = "\xC3\xA4\xF0\x9F\x98\x80" + value.get<std::string>();
        break;
      default:
        value = MakeText(kNone);
    }
  } else {
    value = AnyValue();
  }
}

}  // namespace fncache::sdk::schema
