// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ostream>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/field_path.h"
#include "fncache/function/testing.h"
#include "nlohmann/json.hpp"
#include "runner/testing/call_state.h"
#include "runner/testing/messages.h"
#include "text/differences.h"
#include "text/json.h"
#include "text/yaml_writer.h"

// extra_resources is deprecated, and old runners have nothing else.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fncache::function {
namespace testing {

namespace proto = apiextensions::fn::proto::v1;

namespace {

Target TargetOf(proto::Target target) {
  return target == proto::TARGET_COMPOSITE_AND_CLAIM
             ? Target::kCompositeAndClaim
             : Target::kComposite;
}

std::optional<bool> ReadyOf(const proto::Resource& resource) {
  if (resource.ready() == proto::READY_UNSPECIFIED) return std::nullopt;
  return resource.ready() == proto::READY_TRUE;
}

template <typename Map>
std::vector<std::string> SortedKeys(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

// The hint behind `reads=(`, "" without such a member.
absl::string_view ReadsOf(absl::string_view hint) {
  constexpr absl::string_view kReads = "reads=(";
  const size_t at = hint.find(kReads);
  return at == hint.npos ? "" : hint.substr(at + kReads.size());
}

// The value as a field of an object; an empty object where it is absent.
google::protobuf::Struct Boxed(const Value& value) {
  google::protobuf::Struct box;
  if (!value.has_value() && !value.is_null()) return box;
  const absl::StatusOr<text::Json> json = text::ParseJson(Json(value).raw());
  if (json.ok()) (*box.mutable_fields())[""] = text::ToValue(*json);
  return box;
}

// The value at the path; absent where the path is broken.
Value At(const Value& value, absl::string_view path) {
  if (path.empty()) return value;
  if (absl::ConsumePrefix(&path, "[")) {
    const size_t end = std::min(path.find(']'), path.size());
    size_t index = 0;
    if (!absl::SimpleAtoi(path.substr(0, end), &index)) return Value();
    path.remove_prefix(std::min(end + 1, path.size()));
    absl::ConsumePrefix(&path, ".");
    return At(value[index], path);
  }
  std::string key;
  if (absl::StartsWith(path, "\"")) {
    absl::StatusOr<std::string> quoted = TakeQuoted(&path);
    if (!quoted.ok()) return Value();
    key = *std::move(quoted);
  } else {
    key = std::string(path.substr(0, path.find_first_of(".[")));
    path.remove_prefix(key.size());
  }
  absl::ConsumePrefix(&path, ".");
  return At(value[key], path);
}

}  // namespace

absl::Status Answer::status() const { return state_->status; }

std::string Answer::fatal() const {
  for (const proto::Result& result : state_->response.results()) {
    if (result.severity() == proto::SEVERITY_FATAL) return result.message();
  }
  return "";
}

Value Answer::resource(std::string_view name) const {
  const auto& all = state_->response.desired().resources();
  const auto found = all.find(std::string(name));
  return found == all.end() ? Value() : ToValue(found->second.resource());
}

Value Answer::composite() const {
  const proto::Resource& composite = state_->response.desired().composite();
  return composite.has_resource() ? ToValue(composite.resource()) : Value();
}

std::vector<std::string> Answer::resources() const {
  return SortedKeys(state_->response.desired().resources());
}

std::optional<bool> Answer::ready(std::string_view name) const {
  const auto& all = state_->response.desired().resources();
  const auto found = all.find(std::string(name));
  return found == all.end() ? std::nullopt : ReadyOf(found->second);
}

std::optional<bool> Answer::ready() const {
  return ReadyOf(state_->response.desired().composite());
}

std::map<std::string, std::string> Answer::connection_details() const {
  const auto& details =
      state_->response.desired().composite().connection_details();
  return {details.begin(), details.end()};
}

std::vector<std::string> Answer::held() const { return state_->held; }
std::vector<std::string> Answer::kept() const { return state_->kept; }

std::vector<Result> Answer::results() const {
  std::vector<Result> results;
  for (const proto::Result& from : state_->response.results()) {
    results.push_back({static_cast<Severity>(from.severity()), from.message(),
                       from.reason(), TargetOf(from.target())});
  }
  return results;
}

std::vector<Condition> Answer::conditions() const {
  std::vector<Condition> conditions;
  for (const proto::Condition& from : state_->response.conditions()) {
    conditions.push_back(
        {from.type(),
         from.status() == proto::STATUS_CONDITION_TRUE    ? Status::kTrue
         : from.status() == proto::STATUS_CONDITION_FALSE ? Status::kFalse
                                                          : Status::kUnknown,
         from.reason(), from.message(), TargetOf(from.target())});
  }
  return conditions;
}

std::map<std::string, Requirement> Answer::requirements() const {
  std::map<std::string, Requirement> all;
  const proto::Requirements& from = state_->response.requirements();
  for (const auto* const some : {&from.resources(), &from.extra_resources()}) {
    for (const auto& [name, selector] : *some) {
      const auto& labels = selector.match_labels().labels();
      Requirement& to = all[name];
      to = {selector.api_version(),
            selector.kind(),
            selector.match_name(),
            {labels.begin(), labels.end()},
            std::nullopt};
      if (selector.has_namespace_()) to.name_space = selector.namespace_();
    }
  }
  return all;
}

std::map<std::string, Requirement> Answer::required_schemas() const {
  std::map<std::string, Requirement> all;
  for (const auto& [name, selector] :
       state_->response.requirements().schemas()) {
    all[name].api_version = selector.api_version();
    all[name].kind = selector.kind();
  }
  return all;
}

std::optional<absl::Duration> Answer::ttl() const {
  if (!state_->response.meta().has_ttl()) return std::nullopt;
  const auto& ttl = state_->response.meta().ttl();
  return absl::Seconds(ttl.seconds()) + absl::Nanoseconds(ttl.nanos());
}

Value Answer::context(std::string_view key) const {
  return ToValue(state_->response.context())[key];
}

Value Answer::output() const {
  return state_->response.has_output() ? ToValue(state_->response.output())
                                       : Value();
}

std::vector<std::string> Answer::reads() const {
  std::vector<std::string> paths;
  absl::string_view rest = ReadsOf(state_->depends);
  while (absl::StartsWith(rest, "\"")) {
    absl::StatusOr<std::string> path = TakeQuoted(&rest);
    if (!path.ok()) break;
    paths.push_back(*std::move(path));
    rest = absl::StripLeadingAsciiWhitespace(rest);
  }
  return paths;
}

bool Answer::pure() const {
  return absl::EndsWith(state_->depends, ", pure") ||
         state_->depends == "pure" ||
         absl::StartsWith(state_->depends, "pure, ");
}

std::string Answer::yaml() const {
  if (!state_->status.ok()) return state_->status.ToString() + "\n";
  return text::ToYaml(ToJson(state_->response));
}

namespace internal {

bool IsEqual(const Value& value, const Value& wanted, std::string* why) {
  std::string first;
  text::DifferenceVisitor visitor;
  visitor.below = [](const std::string& path, const std::string& key) {
    return key.empty() ? path : PathBelow(path, key);
  };
  visitor.differs = [&](const std::string& path, const auto* a, const auto* b) {
    if (!why->empty()) return;
    *why = path.empty() ? "which is " + TextOf(value)
                        : absl::StrCat("which differs at ", path);
  };
  text::VisitDifferences("", Boxed(value), Boxed(wanted), visitor);
  return why->empty();
}

bool IsFieldEqual(const Value& value, const std::string& path,
                  const Value* wanted, std::string* why) {
  const Value field = At(value, path);
  if (!field.has_value() && !field.is_null()) {
    *why = "which has no " + path;
    return false;
  }
  if (wanted == nullptr || IsEqual(field, *wanted, why)) return true;
  *why = "where " + path + " is " + TextOf(field);
  return false;
}

std::string TextOf(const Value& value) {
  const google::protobuf::Struct box = Boxed(value);
  return box.fields().empty() ? "(absent)"
                              : text::ValueToYaml(box.fields().at(""));
}

}  // namespace internal
}  // namespace testing

void PrintTo(const Value& value, std::ostream* out) {
  *out << "\n" << testing::internal::TextOf(value);
}

}  // namespace fncache::function
