// SPDX-License-Identifier: Apache-2.0
#include "tests/cache/key/drift_oracle.h"

#include <map>
#include <regex>

#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/unknown_field_set.h"

namespace fncache::cache::key {
namespace {

namespace pb = google::protobuf;
namespace v1 = apiextensions::fn::proto::v1;

bool HasUnknown(const pb::Message& message) {
  return !message.GetReflection()->GetUnknownFields(message).empty();
}

bool IsDigits(absl::string_view text) {
  static const auto* const kDigits = new std::regex("[0-9]{1,20}");
  return std::regex_match(std::string(text), *kDigits);
}

class Finder {
 public:
  explicit Finder(std::vector<FoundDrift>* found) : found_(found) {}

  void Object(const std::string& path, const std::string& section,
              v1::Resource* resource) {
    if (!resource->has_resource()) return;
    section_ = section;
    auto& fields = *resource->mutable_resource()->mutable_fields();
    const auto metadata = fields.find("metadata");
    if (metadata != fields.end() && metadata->second.has_struct_value()) {
      auto& inner = *metadata->second.mutable_struct_value()->mutable_fields();
      const std::string below = path + "/metadata";
      // "managedFields" comes before "resourceVersion".
      const auto managed = inner.find("managedFields");
      if (managed != inner.end()) Managed(below, &managed->second);
      const auto version = inner.find("resourceVersion");
      if (version != inner.end()) {
        Text(below + "/resourceVersion", "resourceVersion", true,
             &version->second, /*times=*/false);
      }
    }
    const auto status = fields.find("status");
    if (status != fields.end() && section != "composite") {
      Value(path + "/status", "status", /*is_own=*/true, &status->second);
    }
  }

 private:
  void Add(const std::string& path, const std::string& key, char type,
           pb::Value* value) {
    found_->push_back({path, section_, key, type, value});
  }
  void Managed(const std::string& path, pb::Value* value) {
    if (!value->has_list_value() || HasUnknown(*value)) return;
    Add(path + "/managedFields", "managedFields", 'm', value);
  }
  // `is_own`: the text is the value of this key, and not in a list of it.
  void Text(const std::string& path, const std::string& key, bool is_own,
            pb::Value* value, bool times) {
    if (!value->has_string_value() || HasUnknown(*value)) return;
    if (times && IsTimeByExpression(value->string_value())) {
      Add(path, key, 't', value);
    } else if (is_own && key == "resourceVersion" &&
               IsDigits(value->string_value())) {
      Add(path, key, 'v', value);
    }
  }
  void Value(const std::string& path, const std::string& key, bool is_own,
             pb::Value* value) {
    if (value->has_list_value() && is_own && key == "managedFields") {
      Managed(path.substr(0, path.rfind('/')), value);
    } else if (value->has_list_value()) {
      for (int i = 0; i < value->list_value().values_size(); ++i) {
        Value(absl::StrCat(path, "/", i), key, false,
              value->mutable_list_value()->mutable_values(i));
      }
    } else if (value->has_struct_value()) {
      std::map<std::string, pb::Value*> sorted;
      for (auto& [name, inner] :
           *value->mutable_struct_value()->mutable_fields()) {
        sorted[name] = &inner;
      }
      for (const auto& [name, inner] : sorted) {
        Value(absl::StrCat(path, "/", name), name, true, inner);
      }
    } else {
      Text(path, key, is_own, value, /*times=*/true);
    }
  }

  std::vector<FoundDrift>* const found_;
  std::string section_;
};

template <typename Map, typename Do>
void InOrder(Map* map, const Do& act) {
  std::map<std::string, decltype(&map->begin()->second)> sorted;
  for (auto& [name, value] : *map) sorted[name] = &value;
  for (const auto& [name, value] : sorted) act(name, value);
}

}  // namespace

bool IsTimeByExpression(absl::string_view text) {
  static const auto* const kTime = new std::regex(
      R"((\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?)"
      R"((Z|[+-]([01]\d|2[0-3]):[0-5]\d))");
  std::smatch match;
  const std::string all(text);
  if (!std::regex_match(all, match, *kTime)) return false;
  const int year = std::stoi(match[1]);
  const int month = std::stoi(match[2]);
  const int day = std::stoi(match[3]);
  const absl::CivilDay normal(year, month, day);
  return normal.month() == month && normal.day() == day;
}

std::vector<FoundDrift> FindDrift(v1::RunFunctionRequest* request) {
  std::vector<FoundDrift> found;
  Finder finder(&found);
  if (request->has_observed()) {
    v1::State* const observed = request->mutable_observed();
    if (observed->has_composite()) {
      finder.Object("/composite", "composite", observed->mutable_composite());
    }
    InOrder(observed->mutable_resources(),
            [&](const std::string& name, v1::Resource* resource) {
              finder.Object("/composed/" + name, "composed", resource);
            });
  }
  const auto required = [&](const std::string& path) {
    return [&finder, path](const std::string& name, v1::Resources* resources) {
      for (int i = 0; i < resources->items_size(); ++i) {
        finder.Object(absl::StrCat(path, "/", name, "/", i), "required",
                      resources->mutable_items(i));
      }
    };
  };
  InOrder(request->mutable_required_resources(), required("/required"));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  InOrder(request->mutable_extra_resources(), required("/extra"));
#pragma GCC diagnostic pop
  return found;
}

std::string ValueBytes(const pb::Value& value) {
  std::string bytes;
  pb::io::StringOutputStream stream(&bytes);
  pb::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  value.SerializeToCodedStream(&out);
  out.Trim();
  return bytes;
}

std::string TakeOutDrift(v1::RunFunctionRequest* request) {
  std::string all;
  for (const FoundDrift& drift : FindDrift(request)) {
    const std::string value = ValueBytes(*drift.value);
    absl::StrAppend(&all, drift.path, "\n", value.size(), "\n", value);
    drift.value->Clear();
    drift.value->GetReflection()
        ->MutableUnknownFields(drift.value)
        ->AddVarint(kMarkTag >> 3, drift.type == 'v'   ? 1
                                   : drift.type == 'm' ? 2
                                                       : 3);
  }
  return all;
}

}  // namespace fncache::cache::key
