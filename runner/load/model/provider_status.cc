// SPDX-License-Identifier: Apache-2.0
#include "runner/load/model/provider_status.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/sha256.h"
#include "google/protobuf/struct.pb.h"
#include "runner/engine/metadata.h"
#include "text/object.h"

namespace fncache::runner::load::model {

using google::protobuf::Struct;
using google::protobuf::Value;
using Content = StatusField::Content;
using When = StatusField::When;

namespace {

// As much of a hash as cloud providers' identifiers have digits.
constexpr size_t kIdDigits = 17;

std::string IdOf(const Struct& resource, const StatusField& field) {
  const std::string hash = Sha256Hex(absl::StrCat(
      engine::UidOf(resource), "/", absl::StrJoin(field.path, ".")));
  return absl::StrCat(absl::AsciiStrToLower(text::FindText(resource, {"kind"})),
                      "-", hash.substr(0, kIdDigits));
}

Value* At(const std::vector<std::string>& path, Struct* resource) {
  Value* value = text::Ensure(resource, {"status"});
  for (const std::string& name : path) {
    value = &(*value->mutable_struct_value()->mutable_fields())[name];
  }
  return value;
}

}  // namespace

std::vector<StatusField> DefaultStatus() {
  const auto field = [](std::vector<std::string> path, When when,
                        Content content, std::string text = "") {
    StatusField made;
    made.path = {"atProvider"};
    made.path.insert(made.path.end(), path.begin(), path.end());
    made.when = when;
    made.content = content;
    made.text = std::move(text);
    return made;
  };
  return {
      field({"state"}, When::kFirst, Content::kText, "creating"),
      field({"endpoint", "zone"}, When::kFirst, Content::kText, "zone-a"),
      field({"lastChecked"}, When::kFirst, Content::kTime),
      field({"writes"}, When::kEvery, Content::kCounter),
      field({"state"}, When::kReady, Content::kText, "available"),
      field({"id"}, When::kReady, Content::kId),
      field({"arn"}, When::kReady, Content::kId),
      field({"endpoint", "address"}, When::kReady, Content::kId),
      field({"lastChecked"}, When::kHeartbeat, Content::kTime),
  };
}

std::vector<StatusField> StatusWith(std::vector<StatusField> named) {
  std::vector<StatusField> all = DefaultStatus();
  const auto replaced = [&](const StatusField& usual) {
    return std::any_of(
        named.begin(), named.end(), [&](const StatusField& field) {
          return field.when == usual.when &&
                 (field.when == When::kHeartbeat || field.path == usual.path);
        });
  };
  all.erase(std::remove_if(all.begin(), all.end(), replaced), all.end());
  for (StatusField& field : named) all.push_back(std::move(field));
  return all;
}

void WriteStatus(const std::vector<StatusField>& fields, When when,
                 absl::Time now, Struct* resource) {
  for (const StatusField& field : fields) {
    if (field.when != when) continue;
    if (!field.kind.empty() &&
        field.kind != text::FindText(*resource, {"kind"})) {
      continue;
    }
    Value* const value = At(field.path, resource);
    switch (field.content) {
      case Content::kText:
        value->set_string_value(field.text);
        break;
      case Content::kId:
        value->set_string_value(IdOf(*resource, field));
        break;
      case Content::kCounter:
        value->set_number_value(value->number_value() + 1);
        break;
      case Content::kTime:
        value->set_string_value(
            absl::FormatTime("%Y-%m-%dT%H:%M:%E9SZ", now, absl::UTCTimeZone()));
        break;
    }
  }
}

}  // namespace fncache::runner::load::model
