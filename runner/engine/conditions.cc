// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/conditions.h"

#include <cmath>
#include <utility>

#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "runner/engine/metadata.h"
#include "text/rfc3339.h"

namespace fncache::runner::engine {

using google::protobuf::ListValue;

namespace {

using FunctionCondition = apiextensions::fn::proto::v1::Condition;

// A number that is whole and fits; else 0, as for any other value.
int64_t WholeNumber(const Value* value) {
  if (value == nullptr || value->kind_case() != Value::kNumberValue) return 0;
  const double number = value->number_value();
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (!(number >= -kLimit && number < kLimit)) return 0;
  return std::trunc(number) == number ? static_cast<int64_t>(number) : 0;
}

// Reads one condition. Returns false if its time is none that Go reads: the
// reference's decoder stops there, so that the list ends with that condition,
// which is empty.
bool Decode(const Value& value, Condition* condition) {
  if (!value.has_struct_value()) return true;
  const Struct& map = value.struct_value();
  const Value* const time = text::Find(map, {"lastTransitionTime"});
  if (time != nullptr && !text::IsNull(*time)) {
    if (time->kind_case() != Value::kStringValue) return false;
    condition->last_transition_time = text::ParseRfc3339(time->string_value());
    if (!condition->last_transition_time.has_value()) return false;
  }
  condition->type = text::FindText(map, {"type"});
  condition->status = text::FindText(map, {"status"});
  condition->reason = text::FindText(map, {"reason"});
  condition->message = text::FindText(map, {"message"});
  condition->observed_generation =
      WholeNumber(text::Find(map, {"observedGeneration"}));
  return true;
}

Value Encode(const Condition& condition) {
  Value value;
  Struct* const map = value.mutable_struct_value();
  text::SetText(map, {"type"}, condition.type);
  text::SetText(map, {"status"}, condition.status);
  text::SetText(map, {"reason"}, condition.reason);
  if (condition.last_transition_time.has_value()) {
    text::SetText(map, {"lastTransitionTime"},
                  text::FormatRfc3339(*condition.last_transition_time));
  } else {
    text::Ensure(map, {"lastTransitionTime"})
        ->set_null_value(google::protobuf::NULL_VALUE);
  }
  if (!condition.message.empty()) {
    text::SetText(map, {"message"}, condition.message);
  }
  if (condition.observed_generation != 0) {
    text::Ensure(map, {"observedGeneration"})
        ->set_number_value(static_cast<double>(condition.observed_generation));
  }
  return value;
}

bool SameBesidesTime(const Condition& a, const Condition& b) {
  const bool both_observed =
      a.observed_generation != 0 && b.observed_generation != 0;
  return a.status == b.status && a.reason == b.reason &&
         a.message == b.message &&
         (!both_observed || a.observed_generation == b.observed_generation);
}

void Set(const Condition& condition, std::vector<Condition>* conditions) {
  bool found = false;
  for (Condition& existing : *conditions) {
    if (existing.type != condition.type) continue;
    if (!SameBesidesTime(existing, condition)) existing = condition;
    found = true;
  }
  if (!found) conditions->push_back(condition);
}

}  // namespace

bool IsSystemCondition(absl::string_view type) {
  return type == "Ready" || type == "Synced" || type == "Healthy" ||
         type == "UpToDate" || type == "Responsive";
}

std::vector<Condition> ConditionsOf(const Struct& object) {
  std::vector<Condition> conditions;
  const ListValue* const list =
      text::FindList(object, {"status", "conditions"});
  if (list == nullptr) return conditions;
  conditions.reserve(list->values_size());
  for (const Value& value : list->values()) {
    conditions.emplace_back();
    if (!Decode(value, &conditions.back())) break;
  }
  return conditions;
}

void SetConditions(const std::vector<Condition>& conditions, Struct* object) {
  std::vector<Condition> all = ConditionsOf(*object);
  for (const Condition& condition : conditions) Set(condition, &all);
  Value list;
  ListValue* const values = list.mutable_list_value();
  for (const Condition& condition : all) {
    *values->add_values() = Encode(condition);
  }
  SetNested(object, {"status", "conditions"}, std::move(list));
}

Condition FromFunction(const FunctionCondition& from, absl::Time now) {
  Condition condition;
  condition.type = from.type();
  condition.reason = from.reason();
  condition.message = from.message();
  condition.last_transition_time = now;
  switch (from.status()) {
    case apiextensions::fn::proto::v1::STATUS_CONDITION_TRUE:
      condition.status = "True";
      break;
    case apiextensions::fn::proto::v1::STATUS_CONDITION_FALSE:
      condition.status = "False";
      break;
    case apiextensions::fn::proto::v1::STATUS_CONDITION_UNKNOWN:
    case apiextensions::fn::proto::v1::STATUS_CONDITION_UNSPECIFIED:
      condition.status = "Unknown";
      break;
    default:  // a number that the protocol does not have: no status
      break;
  }
  return condition;
}

int64_t GenerationOf(const Struct& object) {
  return WholeNumber(text::Find(object, {"metadata", "generation"}));
}

}  // namespace fncache::runner::engine
