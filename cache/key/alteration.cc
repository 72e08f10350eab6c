// SPDX-License-Identifier: Apache-2.0
#include "cache/key/alteration.h"

#include <algorithm>
#include <limits>
#include <random>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/time/civil_time.h"
#include "cache/key/reencode.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"

namespace fncache::cache::key {
namespace {

namespace pb = google::protobuf;
namespace v1 = apiextensions::fn::proto::v1;

using Visit = absl::FunctionRef<void(DriftSection, DriftType, absl::string_view,
                                     pb::Value*)>;

const MaskNode* Below(const MaskNode* node, absl::string_view name) {
  return node == nullptr ? nullptr : node->Find(name);
}
const MaskNode* Element(const MaskNode* node) {
  return node == nullptr ? nullptr : node->element();
}
bool IsMasked(const MaskNode* node) { return node != nullptr && node->masked; }

// A Value that is more than what this schema knows is no drift.
bool HasUnknown(const pb::Value& value) {
  return !value.GetReflection()->GetUnknownFields(value).empty();
}

// Calls `act(key, value)` for each entry of a map, in the order of the keys:
// that of the map is another one after each parse.
template <typename Map, typename Act>
void InOrder(Map* map, const Act& act) {
  std::vector<typename Map::value_type*> entries;
  entries.reserve(map->size());
  for (auto& entry : *map) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(),
            [](const auto* a, const auto* b) { return a->first < b->first; });
  for (auto* const entry : entries) act(entry->first, &entry->second);
}

// Visits one object.
class ObjectVisit {
 public:
  ObjectVisit(DriftSection section, Visit visit)
      : section_(section), visit_(visit) {}

  void Object(pb::Struct* object, const MaskNode* node) {
    auto& fields = *object->mutable_fields();
    const auto metadata = fields.find(std::string(kMetadataKey));
    if (metadata != fields.end() && metadata->second.has_struct_value()) {
      const MaskNode* const below = Below(node, kMetadataKey);
      if (!IsMasked(below)) {
        Metadata(metadata->second.mutable_struct_value(), below);
      }
    }
    const auto status = fields.find(std::string(kStatusKey));
    if (status != fields.end() && section_ != DriftSection::kComposite) {
      Status(&status->second, kStatusKey, /*in_list=*/false,
             Below(node, kStatusKey));
    }
  }

 private:
  void Metadata(pb::Struct* metadata, const MaskNode* node) {
    auto& fields = *metadata->mutable_fields();
    const auto version = fields.find(std::string(kVersionKey));
    if (version != fields.end() && version->second.has_string_value() &&
        IsVersion(version->second.string_value()) &&
        !HasUnknown(version->second) && !IsMasked(Below(node, kVersionKey))) {
      visit_(section_, DriftType::kVersion, kVersionKey, &version->second);
    }
    const auto managed = fields.find(std::string(kManagedFieldsKey));
    if (managed != fields.end()) {
      ManagedFields(&managed->second, Below(node, kManagedFieldsKey));
    }
  }
  void ManagedFields(pb::Value* value, const MaskNode* node) {
    if (!value->has_list_value() || HasUnknown(*value) || IsMasked(node)) {
      return;
    }
    visit_(section_, DriftType::kManagedFields, kManagedFieldsKey, value);
  }
  void Status(pb::Value* value, absl::string_view key, bool in_list,
              const MaskNode* node) {
    if (IsMasked(node)) return;
    if (value->has_struct_value()) {
      InOrder(value->mutable_struct_value()->mutable_fields(),
              [&](const std::string& name, pb::Value* inner) {
                Status(inner, name, /*in_list=*/false, Below(node, name));
              });
    } else if (value->has_list_value()) {
      if (key == kManagedFieldsKey && !in_list) {
        return ManagedFields(value, node);
      }
      for (pb::Value& inner : *value->mutable_list_value()->mutable_values()) {
        Status(&inner, key, /*in_list=*/true, Element(node));
      }
    } else if (value->has_string_value() && !HasUnknown(*value)) {
      DriftType type;
      if (IsStatusDrift(in_list ? absl::string_view() : key,
                        value->string_value(), &type)) {
        visit_(section_, type, key, value);
      }
    }
  }

  const DriftSection section_;
  const Visit visit_;
};

// A time, and how it is written.
struct Time {
  absl::Time instant;
  size_t digits = 0;   // of its fraction
  bool is_utc = true;  // Z
  absl::Duration offset;
};

int Number(absl::string_view digits) {
  int number = 0;
  for (const char digit : digits) number = 10 * number + (digit - '0');
  return number;
}

// Precondition: IsTime(text).
Time Parse(absl::string_view text) {
  Time time;
  const absl::CivilSecond civil(
      Number(text.substr(0, 4)), Number(text.substr(5, 2)),
      Number(text.substr(8, 2)), Number(text.substr(11, 2)),
      Number(text.substr(14, 2)), Number(text.substr(17, 2)));
  text.remove_prefix(19);
  if (text[0] == '.') {
    time.digits = text.find_first_not_of("0123456789", 1) - 1;
    text.remove_prefix(time.digits + 1);
  }
  if (text != "Z") {
    time.is_utc = false;
    time.offset = absl::Hours(Number(text.substr(1, 2))) +
                  absl::Minutes(Number(text.substr(4, 2)));
    if (text[0] == '-') time.offset = -time.offset;
  }
  time.instant = absl::FromCivil(civil, absl::UTCTimeZone()) - time.offset;
  return time;
}

// `decimal` stands for each digit of a fraction.
std::string Write(const Time& time, char decimal) {
  const absl::CivilSecond civil =
      absl::ToCivilSecond(time.instant + time.offset, absl::UTCTimeZone());
  std::string text = absl::StrFormat(
      "%04d-%02d-%02dT%02d:%02d:%02d", civil.year(), civil.month(), civil.day(),
      civil.hour(), civil.minute(), civil.second());
  if (time.digits > 0) text += "." + std::string(time.digits, decimal);
  if (time.is_utc) return text + "Z";
  const int64_t minutes = absl::ToInt64Minutes(
      time.offset < absl::ZeroDuration() ? -time.offset : time.offset);
  absl::StrAppendFormat(&text, "%c%02d:%02d",
                        time.offset < absl::ZeroDuration() ? '-' : '+',
                        minutes / 60, minutes % 60);
  return text;
}

// Alters all drift of one request. It is gathered first, since an
// order of all of it is needed.
class Alteration {
 public:
  Alteration(Question question, uint64_t seed, absl::Time now)
      : question_(question), engine_(seed), now_(now) {}

  void AddTime(std::string* text) { times_.push_back(text); }
  void AddVersion(std::string* text) { versions_.push_back(text); }
  // From `begin`, letters become other letters, and digits other digits. Texts
  // that differ stay different.
  void Rename(std::string* text, size_t begin = 0) const {
    const int by = static_cast<int>(question_);
    for (size_t i = begin; i < text->size(); ++i) {
      char& c = (*text)[i];
      if (c >= 'a' && c <= 'z') {
        c = static_cast<char>('a' + (c - 'a' + by) % 26);
      } else if (c >= 'A' && c <= 'Z') {
        c = static_cast<char>('A' + (c - 'A' + by) % 26);
      } else if (c >= '0' && c <= '9') {
        c = static_cast<char>('0' + (c - '0' + by) % 10);
      }
    }
  }

  void Apply() {
    const std::vector<double> times = Order(times_.size());
    for (size_t i = 0; i < times_.size(); ++i) SetTime(times[i], times_[i]);
    const std::vector<double> versions = Order(versions_.size());
    for (size_t i = 0; i < versions_.size(); ++i) {
      SetVersion(versions[i], versions_[i]);
    }
  }

 private:
  // For each of `count` drifts a number from 0 (long ago, the lowest) to 1.
  std::vector<double> Order(size_t count) {
    if (question_ == Question::kLongAgo) return std::vector<double>(count, 0);
    if (question_ == Question::kFarAhead) return std::vector<double>(count, 1);
    std::vector<double> order(count);
    for (size_t i = 0; i < count; ++i) {
      order[i] = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    }
    // Equal for the two questions, as their seed is.
    for (size_t i = count; i > 1; --i)
      std::swap(order[i - 1], order[engine_() % i]);
    if (question_ == Question::kReverse) {
      for (double& place : order) place = 1 - place;
    }
    return order;
  }

  void SetTime(double place, std::string* text) const {
    Time time = Parse(*text);
    const absl::Time before = time.instant;
    time.instant =
        now_ - kFarTime + absl::Trunc(2 * place * kFarTime, absl::Seconds(1));
    if (time.instant == before) time.instant += absl::Seconds(1);
    // Times that are all equal have equal fractions of any length.
    const bool equal =
        question_ == Question::kLongAgo || question_ == Question::kFarAhead;
    *text = Write(time, equal                              ? '0'
                        : question_ == Question::kShuffled ? '3'
                                                           : '7');
  }

  // The digits of `text` say how many there are; 20 digits begin with a zero.
  static void SetVersion(double place, std::string* text) {
    const size_t digits = std::min<size_t>(text->size(), 19);
    uint64_t least = 1;
    for (size_t i = 1; i < digits; ++i) least *= 10;
    const uint64_t most =
        digits == 19 ? std::numeric_limits<int64_t>::max() : 10 * least - 1;
    uint64_t value = least + static_cast<uint64_t>(
                                 place * static_cast<double>(most - least));
    value = std::min(value, most);
    const auto write = [&] {
      return absl::StrFormat("%0*d", static_cast<int>(text->size()), value);
    };
    std::string altered = write();
    if (altered == *text) {
      value = value == most ? least : value + 1;
      altered = write();
    }
    *text = std::move(altered);
  }

  const Question question_;
  std::mt19937_64 engine_;
  const absl::Time now_;
  std::vector<std::string*> times_;
  std::vector<std::string*> versions_;
};

// All texts in managedFields, and the fields that they name (`f:replicas`).
void AlterManagedFields(pb::Value* value, Altered altered,
                        Alteration* alteration) {
  if (value->has_list_value()) {
    for (pb::Value& inner : *value->mutable_list_value()->mutable_values()) {
      AlterManagedFields(&inner, altered, alteration);
    }
  } else if (value->has_struct_value()) {
    // In the order of the names as they came, which all questions share.
    pb::Map<std::string, pb::Value> renamed;
    InOrder(value->mutable_struct_value()->mutable_fields(),
            [&](std::string name, pb::Value* inner) {
              const size_t colon = name.find(':');
              if (colon != std::string::npos) {
                alteration->Rename(&name, colon + 1);
              }
              pb::Value* const moved = &renamed[name];
              moved->Swap(inner);
              AlterManagedFields(moved, altered, alteration);
            });
    value->mutable_struct_value()->mutable_fields()->swap(renamed);
  } else if (value->has_string_value()) {
    if (IsTime(value->string_value())) {
      if (altered == Altered::kAll) {
        alteration->AddTime(value->mutable_string_value());
      }
    } else {
      alteration->Rename(value->mutable_string_value());
    }
  }
}

absl::optional<std::string> Serialize(v1::RunFunctionRequest* request) {
  // A request without meta has another key than one with it.
  if (request->has_meta()) request->mutable_meta()->set_tag(RandomTag());
  std::string bytes;
  if (!request->SerializeToString(&bytes)) return absl::nullopt;
  return bytes;
}

}  // namespace

void VisitDrift(const MaskSet& masks, v1::RunFunctionRequest* request,
                Visit visit) {
  const MaskNode* const root = masks.root();
  const auto object = [&](DriftSection section, v1::Resource* resource,
                          const MaskNode* node) {
    if (!resource->has_resource() || IsMasked(node)) return;
    const MaskNode* const below = Below(node, "resource");
    if (IsMasked(below)) return;
    ObjectVisit(section, visit).Object(resource->mutable_resource(), below);
  };
  if (request->has_observed()) {
    v1::State* const observed = request->mutable_observed();
    const MaskNode* const node = Below(root, "observed");
    if (observed->has_composite()) {
      object(DriftSection::kComposite, observed->mutable_composite(),
             Below(node, "composite"));
    }
    const MaskNode* const resources = Below(node, "resources");
    InOrder(observed->mutable_resources(),
            [&](const std::string& name, v1::Resource* resource) {
              object(DriftSection::kComposed, resource, Below(resources, name));
            });
  }
  const auto required = [&](auto* map, const MaskNode* node) {
    InOrder(map, [&](const std::string& name, v1::Resources* resources) {
      const MaskNode* const below = Below(node, name);
      if (IsMasked(below)) return;
      const MaskNode* const items = Below(below, "items");
      if (IsMasked(items)) return;
      for (v1::Resource& resource : *resources->mutable_items()) {
        object(DriftSection::kRequired, &resource, Element(items));
      }
    });
  };
  required(request->mutable_required_resources(),
           Below(root, "required_resources"));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  required(request->mutable_extra_resources(), Below(root, "extra_resources"));
#pragma GCC diagnostic pop
}

std::string RandomTag() {
  absl::BitGen random;
  std::string bytes(32, '\0');
  for (char& byte : bytes)
    byte = static_cast<char>(absl::Uniform<uint8_t>(random));
  return absl::BytesToHexString(bytes);
}

absl::optional<std::string> Alter(absl::string_view bytes, const MaskSet& masks,
                                  Question question, Altered altered,
                                  uint64_t seed, absl::Time now) {
  v1::RunFunctionRequest request;
  if (!ParseRequest(bytes, &request)) return absl::nullopt;
  Alteration alteration(question, seed, now);
  const auto visit = [&](DriftSection /*section*/, DriftType type,
                         absl::string_view /*key*/, pb::Value* value) {
    switch (type) {
      case DriftType::kVersion:
        return alteration.AddVersion(value->mutable_string_value());
      case DriftType::kManagedFields:
        return AlterManagedFields(value, altered, &alteration);
      case DriftType::kTime:
        if (altered == Altered::kVersions) return;
        return alteration.AddTime(value->mutable_string_value());
    }
  };
  VisitDrift(masks, &request, visit);
  alteration.Apply();
  return Serialize(&request);
}

absl::optional<std::string> WithOwnTag(absl::string_view bytes) {
  v1::RunFunctionRequest request;
  if (!ParseRequest(bytes, &request)) return absl::nullopt;
  return Serialize(&request);
}

}  // namespace fncache::cache::key
