#include "runner/engine/conditions.h"

#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "runner/engine/metadata.h"

namespace fncache::runner::engine {

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

// False if the time is none, which ends the decoding of the list.
bool Decode(const Value& value, Condition* condition) {
  if (!value.has_struct_value()) return true;
  const Struct& map = value.struct_value();
  const Value* const time = text::Find(map, {"lastTransitionTime"});
  if (time != nullptr && time->kind_case() != Value::kNullValue) {
    if (time->kind_case() != Value::kStringValue) return false;
    condition->last_transition_time = ParseRfc3339(time->string_value());
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
                  FormatRfc3339(*condition.last_transition_time));
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

// The value of the `count` digits that `text` begins with, which are taken off
// it; -1 if there are fewer.
int TakeDigits(absl::string_view* text, size_t count) {
  int value = 0;
  if (text->size() < count) return -1;
  for (size_t i = 0; i < count; ++i) {
    const char digit = (*text)[i];
    if (!absl::ascii_isdigit(digit)) return -1;
    value = value * 10 + (digit - '0');
  }
  text->remove_prefix(count);
  return value;
}

bool Take(char expected, absl::string_view* text) {
  if (text->empty() || text->front() != expected) return false;
  text->remove_prefix(1);
  return true;
}

bool IsDate(int year, int month, int day) {
  if (year < 0 || month < 1 || month > 12 || day < 1) return false;
  const absl::CivilDay date(year, month, day);
  return date.month() == month && date.day() == day;
}

// The rest of a time behind its seconds: perhaps a fraction, then `Z` or an
// offset, which is subtracted from `time`.
bool TakeZone(absl::string_view text, absl::Time* time) {
  if (!text.empty() && (text.front() == '.' || text.front() == ',')) {
    text.remove_prefix(1);
    if (text.empty() || !absl::ascii_isdigit(text.front())) return false;
    while (!text.empty() && absl::ascii_isdigit(text.front())) {
      text.remove_prefix(1);
    }
  }
  if (text == "Z") return true;
  if (text.empty() || (text.front() != '+' && text.front() != '-')) {
    return false;
  }
  const bool east = text.front() == '+';
  text.remove_prefix(1);
  const int hours = TakeDigits(&text, 2);
  if (hours < 0 || hours > 24 || !Take(':', &text)) return false;
  const int minutes = TakeDigits(&text, 2);
  if (minutes < 0 || minutes > 60 || !text.empty()) return false;
  const absl::Duration offset = absl::Hours(hours) + absl::Minutes(minutes);
  *time = east ? *time - offset : *time + offset;
  return true;
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

absl::optional<absl::Time> ParseRfc3339(absl::string_view text) {
  const int year = TakeDigits(&text, 4);
  if (!Take('-', &text)) return absl::nullopt;
  const int month = TakeDigits(&text, 2);
  if (!Take('-', &text)) return absl::nullopt;
  const int day = TakeDigits(&text, 2);
  if (!Take('T', &text) || !IsDate(year, month, day)) return absl::nullopt;
  const int hour = TakeDigits(&text, 2);
  if (!Take(':', &text)) return absl::nullopt;
  const int minute = TakeDigits(&text, 2);
  if (!Take(':', &text)) return absl::nullopt;
  const int second = TakeDigits(&text, 2);
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
      second > 59) {
    return absl::nullopt;
  }
  absl::Time time =
      absl::FromCivil(absl::CivilSecond(year, month, day, hour, minute, second),
                      absl::UTCTimeZone());
  if (!TakeZone(text, &time)) return absl::nullopt;
  return time;
}

std::string FormatRfc3339(absl::Time time) {
  return absl::FormatTime("%E4Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

}  // namespace fncache::runner::engine
