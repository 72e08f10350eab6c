// SPDX-License-Identifier: Apache-2.0
#include "runner/render/output.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status.h"
#include "google/protobuf/struct.pb.h"
#include "nlohmann/json.hpp"
#include "proto/render.pb.h"
#include "text/rfc3339.h"
#include "text/yaml_writer.h"

namespace fncache::runner::render {
namespace {

using crossplane::render::v1alpha1::CompositeOutput;

constexpr char kFixedTime[] = "2024-01-01T00:00:00Z";
constexpr char kApiVersion[] = "render.crossplane.io/v1beta1";
constexpr char kNameAnnotation[] = "crossplane.io/composition-resource-name";

// The command line reads conditions with Go's JSON decoder: names of fields are
// compared without regard to case, the last one counts, and a null leaves the
// field empty.
const text::Json* Field(const text::Json& object, absl::string_view name) {
  const text::Json* found = nullptr;
  for (auto it = object.begin(); it != object.end(); ++it) {
    if (absl::EqualsIgnoreCase(it.key(), name) && !it->is_null()) {
      found = &*it;
    }
  }
  return found;
}

// A whole number in the range of int64, in any JSON representation.
absl::optional<int64_t> WholeNumber(const text::Json& json) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (const auto* whole = json.get_ptr<const text::Json::number_integer_t*>();
      whole != nullptr && !json.is_number_unsigned()) {
    return *whole;
  }
  if (const auto* whole =
          json.get_ptr<const text::Json::number_unsigned_t*>()) {
    if (*whole > uint64_t{std::numeric_limits<int64_t>::max()}) {
      return absl::nullopt;
    }
    return static_cast<int64_t>(*whole);
  }
  const auto* real = json.get_ptr<const text::Json::number_float_t*>();
  if (real == nullptr || !(*real >= -kLimit && *real < kLimit) ||
      static_cast<double>(static_cast<int64_t>(*real)) != *real) {
    return absl::nullopt;
  }
  return static_cast<int64_t>(*real);
}

// Reads a field that is text, "" where there is none; returns false if it is
// something else.
bool ReadText(const text::Json& object, const char* name, std::string* into) {
  into->clear();
  const text::Json* const field = Field(object, name);
  if (field == nullptr) return true;
  const auto* const text = field->get_ptr<const std::string*>();
  if (text == nullptr) return false;
  *into = *text;
  return true;
}

// `condition` with the fixed time; nullopt if it is none.
absl::optional<text::Json> FixedCondition(const text::Json& condition) {
  const text::Json empty = text::Json::object();
  const text::Json& object = condition.is_null() ? empty : condition;
  if (!object.is_object()) return absl::nullopt;
  std::string time;
  if (!ReadText(object, "lastTransitionTime", &time)) return absl::nullopt;
  if (Field(object, "lastTransitionTime") != nullptr &&
      !text::ParseRfc3339(time).has_value()) {
    return absl::nullopt;
  }
  text::Json fixed = {{"lastTransitionTime", kFixedTime}};
  for (const char* name : {"type", "status", "reason", "message"}) {
    std::string text;
    if (!ReadText(object, name, &text)) return absl::nullopt;
    if (!text.empty() || absl::string_view(name) != "message") {
      fixed[name] = std::move(text);
    }
  }
  if (const text::Json* const field = Field(object, "observedGeneration")) {
    const absl::optional<int64_t> generation = WholeNumber(*field);
    if (!generation.has_value()) return absl::nullopt;
    if (*generation != 0) fixed["observedGeneration"] = *generation;
  }
  return fixed;
}

}  // namespace

absl::Status FixConditionTimes(text::Json* object) {
  if (!object->is_object()) return absl::OkStatus();
  const auto status = object->find("status");
  if (status == object->end()) return absl::OkStatus();
  if (status->is_null()) {
    return absl::FailedPreconditionError(
        "cannot set condition timestamps: status is not an object");
  }
  if (!status->is_object()) return absl::OkStatus();
  const text::Json* const conditions = Field(*status, "conditions");
  text::Json fixed;  // null
  if (conditions != nullptr) {
    if (!conditions->is_array()) return absl::OkStatus();
    fixed = text::Json::array();
    for (const text::Json& condition : *conditions) {
      absl::optional<text::Json> made = FixedCondition(condition);
      if (!made.has_value()) return absl::OkStatus();
      fixed.push_back(*std::move(made));
    }
  }
  (*status)["conditions"] = std::move(fixed);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<text::Json>> OutputDocuments(
    const text::Json& composite, const CompositeOutput& output,
    const absl::optional<google::protobuf::Struct>& context,
    const RenderOutputOptions& options) {
  std::vector<text::Json> documents;
  text::Json rendered = text::FromStruct(output.composite_resource());
  if (options.full_composite) {
    text::Json merged = composite;
    text::MergeInto(&merged, rendered);
    rendered = std::move(merged);
  }
  if (const auto status = FixConditionTimes(&rendered); !status.ok()) {
    return Prefixed("cannot replace condition timestamps in xr", status);
  }
  documents.push_back(std::move(rendered));

  std::vector<std::pair<std::string, text::Json>> composed;
  for (const auto& resource : output.composed_resources()) {
    text::Json json = text::FromStruct(resource);
    if (const auto status = FixConditionTimes(&json); !status.ok()) {
      return Prefixed(
          absl::StrCat("cannot replace condition timestamps in composed "
                       "resource ",
                       text::FindText(json, {"metadata", "name"})),
          status);
    }
    // A resource that says neither what it is prints that as empty text.
    for (const char* name : {"apiVersion", "kind"}) {
      if (json.find(name) == json.end()) json[name] = "";
    }
    std::string name =
        text::FindText(json, {"metadata", "annotations", kNameAnnotation});
    composed.emplace_back(std::move(name), std::move(json));
  }
  std::stable_sort(
      composed.begin(), composed.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [name, json] : composed) documents.push_back(std::move(json));

  if (options.results) {
    for (const auto& event : output.events()) {
      documents.push_back({{"apiVersion", kApiVersion},
                           {"kind", "Result"},
                           {"severity", event.type()},
                           {"reason", event.reason()},
                           {"message", event.message()}});
    }
  }
  if (context.has_value()) {
    documents.push_back({{"apiVersion", kApiVersion},
                         {"kind", "Context"},
                         {"fields", text::FromStruct(*context)}});
  }
  return documents;
}

std::string PrintDocuments(const std::vector<text::Json>& documents) {
  std::string all;
  for (const text::Json& document : documents) {
    absl::StrAppend(&all, "---\n", text::ToYaml(document));
  }
  return all;
}

absl::StatusOr<std::string> PrintOutput(
    const text::Json& composite, const CompositeOutput& output,
    const absl::optional<google::protobuf::Struct>& context,
    const RenderOutputOptions& options) {
  const auto documents = OutputDocuments(composite, output, context, options);
  if (!documents.ok()) return documents.status();
  return PrintDocuments(*documents);
}

}  // namespace fncache::runner::render
