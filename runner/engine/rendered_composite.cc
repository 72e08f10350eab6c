// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/rendered_composite.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "runner/engine/conditions.h"
#include "runner/engine/metadata.h"
#include "text/quoted.h"

namespace fncache::runner::engine {

using google::protobuf::ListValue;

namespace {

namespace fn = apiextensions::fn::proto::v1;

// Names that a message has before it says how many more there are.
constexpr size_t kNamedUnready = 3;

// Sets conditions that functions gave, and notes which of them target the
// claim. Returns their types.
std::set<std::string> SetFunctionConditions(
    const FunctionConditions& conditions, CompositeSchema schema,
    absl::Time now, Struct* composite) {
  std::set<std::string> types;
  std::vector<Condition> set;
  std::vector<std::string> of_claim;
  for (const fn::Condition& condition : conditions) {
    if (IsSystemCondition(condition.type())) continue;
    types.insert(condition.type());
    set.push_back(FromFunction(condition, now));
    if (condition.target() == fn::TARGET_COMPOSITE_AND_CLAIM) {
      of_claim.push_back(condition.type());
    }
  }
  if (!set.empty()) SetConditions(set, composite);
  if (schema != CompositeSchema::kLegacy || of_claim.empty()) return types;

  // Types that are there already stay, each once.
  Value list;
  std::set<std::string> known;
  const ListValue* const existing =
      text::FindList(*composite, {"status", "claimConditionTypes"});
  if (existing != nullptr) {
    for (const Value& type : existing->values()) {
      known.insert(type.string_value());
    }
    *list.mutable_list_value() = *existing;
  }
  for (const std::string& type : of_claim) {
    if (!known.insert(type).second) continue;
    list.mutable_list_value()->add_values()->set_string_value(type);
  }
  SetNested(composite, {"status", "claimConditionTypes"}, std::move(list));
  return types;
}

Condition Synced(absl::Time now) {
  Condition condition;
  condition.type = "Synced";
  condition.status = "True";
  condition.reason = "ReconcileSuccess";
  condition.last_transition_time = now;
  return condition;
}

Condition Ready(fn::Ready ready, const std::vector<std::string>& unready,
                absl::Time now) {
  Condition condition;
  condition.type = "Ready";
  condition.status = "True";
  condition.reason = "Available";
  condition.last_transition_time = now;
  if (ready == fn::READY_TRUE) return condition;
  if (ready != fn::READY_FALSE && unready.empty()) return condition;
  condition.status = "False";
  condition.reason = "Creating";
  if (ready != fn::READY_FALSE) {
    condition.message = absl::StrCat("Unready resources: ", SomeOf(unready));
  }
  return condition;
}

void CopyText(const Struct& from, absl::string_view field, Struct* to) {
  const std::string& text = text::FindText(from, {"metadata", field});
  if (!text.empty()) text::SetText(to, {"metadata", field}, text);
}

}  // namespace

Struct SuccessfulComposite(const PreparedComposite& prepared,
                           CompositeSchema schema, RenderedComposite rendered,
                           absl::Time now) {
  const Struct& observed = prepared.composite;
  Struct composite;
  text::SetText(&composite, {"apiVersion"},
                text::FindText(observed, {"apiVersion"}));
  text::SetText(&composite, {"kind"}, text::FindText(observed, {"kind"}));
  CopyText(observed, "name", &composite);
  CopyText(observed, "namespace", &composite);
  SetOwnField(schema, "resourceRefs", std::move(rendered.references),
              &composite);
  auto* const desired = rendered.desired.mutable_fields();
  for (const char* const field : {"status", "conditions"}) {
    const auto it = desired->find(field);
    if (it == desired->end()) continue;
    (*composite.mutable_fields())[field].Swap(&it->second);
  }

  SetConditions(ConditionsOf(observed), &composite);
  SetFunctionConditions(rendered.conditions, schema, now, &composite);
  SetConditions({Synced(now), Ready(rendered.ready, rendered.unready, now)},
                &composite);

  // The runner writes no status that equals the one it read, and to it null
  // equals none. (A desired status of null takes no conditions.)
  const Value* const status = text::Find(composite, {"status"});
  const bool unchanged =
      text::Equal(status != nullptr ? *status : Value(),
                  prepared.original_status.value_or(Value()));
  return prepared.updated && unchanged ? observed : composite;
}

Struct WholeComposite(const PreparedComposite& prepared, const Struct& stored) {
  if (prepared.updated) return prepared.composite;
  Struct composite = stored;
  const Value* const status = text::Find(prepared.composite, {"status"});
  if (status != nullptr) *text::Ensure(&composite, {"status"}) = *status;
  return composite;
}

void SetFatalConditions(const FunctionConditions& conditions,
                        CompositeSchema schema, const std::string& error,
                        absl::Time now, Struct* composite) {
  const int64_t generation = GenerationOf(*composite);
  Condition synced = Synced(now);
  synced.status = "False";
  synced.reason = "ReconcileError";
  synced.message = error;
  synced.observed_generation = generation;
  SetConditions({synced}, composite);
  const std::set<std::string> given =
      SetFunctionConditions(conditions, schema, now, composite);

  std::vector<Condition> unknown;
  for (Condition& condition : ConditionsOf(*composite)) {
    if (IsSystemCondition(condition.type)) continue;
    if (given.count(condition.type) > 0) continue;
    condition.status = "Unknown";
    condition.reason = "FatalError";
    condition.message =
        "A fatal error occurred before the status of this condition could be "
        "determined.";
    condition.observed_generation = generation;
    unknown.push_back(std::move(condition));
  }
  if (!unknown.empty()) SetConditions(unknown, composite);
}

Unready UnreadyOf(const std::vector<Readiness>& resources) {
  Unready unready;
  for (size_t i = 0; i < resources.size(); ++i) {
    if (resources[i].ready) continue;
    std::string name(resources[i].name);
    if (name.empty()) name = absl::StrCat(i);
    unready.events.push_back(NormalEvent(
        kComposeReason, absl::StrCat("Composed resource ", text::Quoted(name),
                                     " is not yet ready")));
    unready.names.push_back(std::move(name));
  }
  std::sort(unready.names.begin(), unready.names.end());
  return unready;
}

std::string SomeOf(const std::vector<std::string>& names) {
  const auto all = absl::MakeConstSpan(names);
  if (all.size() > kNamedUnready) {
    return absl::StrCat(absl::StrJoin(all.first(kNamedUnready), ", "), ", and ",
                        all.size() - kNamedUnready, " more");
  }
  if (all.size() < kNamedUnready) return absl::StrJoin(all, ", ");
  return absl::StrCat(absl::StrJoin(all.first(kNamedUnready - 1), ", "),
                      ", and ", all.back());
}

Event EventOf(const PipelineResult& result, bool detailed) {
  const fn::Result& from = result.result;
  std::string detail;
  absl::string_view type = "Warning";
  switch (from.severity()) {
    case fn::SEVERITY_NORMAL:
      type = "Normal";
      detail = absl::StrCat("Pipeline step ", text::Quoted(result.step));
      break;
    case fn::SEVERITY_WARNING:
    case fn::SEVERITY_FATAL:
      detail = absl::StrCat("Pipeline step ", text::Quoted(result.step));
      break;
    case fn::SEVERITY_UNSPECIFIED:
      detail = absl::StrCat(
          "Pipeline step ", text::Quoted(result.step),
          " returned a result of unknown severity (assuming warning)");
      break;
    default:
      return Event();  // the runner knows nothing to say
  }
  return MakeEvent(
      type, from.reason().empty() ? kComposeReason : from.reason(),
      detailed ? absl::StrCat(detail, ": ", from.message()) : from.message());
}

bool HasClaim(const Struct& composite, CompositeSchema schema,
              const ObjectStore& objects) {
  if (schema != CompositeSchema::kLegacy) return false;
  const Struct* const claim = text::FindMap(composite, {"spec", "claimRef"});
  return claim != nullptr &&
         objects.Get(text::FindText(*claim, {"apiVersion"}),
                     text::FindText(*claim, {"kind"}),
                     text::FindText(*claim, {"namespace"}),
                     text::FindText(*claim, {"name"})) != nullptr;
}

}  // namespace fncache::runner::engine
