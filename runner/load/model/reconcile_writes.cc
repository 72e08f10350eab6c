// SPDX-License-Identifier: Apache-2.0
#include "runner/load/model/reconcile_writes.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runner/engine/composed_resources.h"
#include "runner/engine/composite_schema.h"
#include "runner/engine/metadata.h"
#include "runner/engine/rendered_composite.h"
#include "text/object.h"

namespace fncache::runner::load::model {

namespace fn = apiextensions::fn::proto::v1;
using google::protobuf::ListValue;
using google::protobuf::Struct;
using google::protobuf::Value;

namespace {

engine::Condition SystemCondition(absl::string_view type, bool status,
                                  absl::string_view reason, int64_t generation,
                                  absl::Time now) {
  engine::Condition condition;
  condition.type = std::string(type);
  condition.status = status ? "True" : "False";
  condition.reason = std::string(reason);
  condition.observed_generation = generation;
  condition.last_transition_time = now;
  return condition;
}

engine::Condition ReadyCondition(fn::Ready ready,
                                 const std::vector<std::string>& unready,
                                 int64_t generation, absl::Time now) {
  if (ready == fn::READY_TRUE ||
      (ready != fn::READY_FALSE && unready.empty())) {
    return SystemCondition("Ready", true, "Available", generation, now);
  }
  engine::Condition condition =
      SystemCondition("Ready", false, "Creating", generation, now);
  if (ready != fn::READY_FALSE) {
    condition.message =
        absl::StrCat("Unready resources: ", engine::SomeOf(unready));
  }
  return condition;
}

// The fields with which an apply to the composite begins.
Struct BeginApply(const Struct& composite) {
  Struct apply;
  for (const char* const field : {"apiVersion", "kind"}) {
    text::SetText(&apply, {field}, text::FindText(composite, {field}));
  }
  return apply;
}

}  // namespace

bool HasFinalizer(const Struct& composite) {
  const ListValue* const list =
      text::FindList(composite, {"metadata", "finalizers"});
  return list != nullptr &&
         std::any_of(list->values().begin(), list->values().end(),
                     [](const Value& value) {
                       return value.string_value() == kFinalizer;
                     });
}

bool IsReady(const Struct& composite) {
  for (const engine::Condition& condition : engine::ConditionsOf(composite)) {
    if (condition.type == "Ready") return condition.status == "True";
  }
  return false;
}

engine::Condition Responsive(bool closed, int64_t generation, absl::Time now) {
  engine::Condition condition = SystemCondition(
      "Responsive", closed, closed ? "WatchCircuitClosed" : "WatchCircuitOpen",
      generation, now);
  if (!closed) condition.message = "Too many watch events";
  return condition;
}

void ReconcileWrites::Update(Struct updated, const Writer& writer) {
  if (cluster_.UpdateComposite(std::move(updated), writer, now_)) {
    reconcile_.AddWrite(2);
  }
}

void ReconcileWrites::FirstReferences() {
  Struct updated = cluster_.Composite();
  Value* const list = text::Ensure(&updated, {"metadata", "finalizers"});
  list->mutable_list_value()->add_values()->set_string_value(kFinalizer);
  engine::AddLabels(&updated,
                    {{engine::kCompositeLabel, engine::NameOf(updated)}});
  Update(std::move(updated), {kRunner, ""});
  Refer("compositionRef", template_.input.composition->name);
  Refer("compositionRevisionRef", template_.revision);
}

void ReconcileWrites::Refer(const char* field, const std::string& name) {
  Struct updated = cluster_.Composite();
  if (engine::FindOwnField(updated, template_.schema, field) == nullptr) {
    Value reference;
    text::SetText(reference.mutable_struct_value(), {"name"}, name);
    engine::SetOwnField(template_.schema, field, std::move(reference),
                        &updated);
  }
  Update(std::move(updated), {kRunner, ""});
}

absl::Status ReconcileWrites::Failure(const engine::PipelineOutcome& outcome,
                                      bool foreign) {
  if (foreign) return outcome.status;
  const std::string error =
      absl::StrCat("cannot compose resources: ", outcome.status.message());
  Struct updated = cluster_.Composite();
  const int64_t generation = engine::GenerationOf(reconcile_.composite);
  if (!reconcile_.first) {
    engine::SetConditions({Responsive(reconcile_.responsive, generation, now_)},
                          &updated);
  }
  if (outcome.fatal) {
    engine::SetFatalConditions(outcome.conditions, template_.schema, error,
                               now_, &updated);
  } else {
    engine::Condition synced =
        SystemCondition("Synced", false, "ReconcileError", generation, now_);
    synced.message = error;
    engine::SetConditions({synced}, &updated);
  }
  Update(std::move(updated), {kRunner, "status"});
  return outcome.status;
}

void ReconcileWrites::ApplyReferences(Value references, bool any) {
  const bool referred =
      engine::FindOwnField(reconcile_.composite, template_.schema,
                           "resourceRefs") != nullptr;
  if (!referred && !any) return;
  Struct apply = BeginApply(reconcile_.composite);
  engine::SetOwnField(template_.schema, "resourceRefs", std::move(references),
                      &apply);
  if (cluster_.ApplyComposite(apply, {kRunnerApply, ""}, now_)) {
    reconcile_.AddWrite(2);
  }
}

void ReconcileWrites::ApplyResource(const std::string& name, Struct* resource) {
  text::Remove(resource, {"status"});
  switch (cluster_.ApplyComposed(name, *resource, now_)) {
    case SimulatedCluster::Effect::kNone:
      break;
    case SimulatedCluster::Effect::kCreated:
      reconcile_.AddWrite(1);
      if (text::FindMap(*resource, {"spec"}) != nullptr) {
        reconcile_.created.push_back(name);
      }
      break;
    case SimulatedCluster::Effect::kUpdated:
      reconcile_.AddWrite(2);
      break;
  }
}

void ReconcileWrites::ApplyStatus(Struct* desired) {
  Struct apply = BeginApply(reconcile_.composite);
  const auto status = desired->mutable_fields()->find("status");
  if (status != desired->mutable_fields()->end()) {
    text::Ensure(&apply, {"status"})->Swap(&status->second);
  }
  if (!reconcile_.first) {
    engine::SetConditions(engine::ConditionsOf(reconcile_.composite), &apply);
  }
  if (text::FindMap(apply, {"status"}) != nullptr &&
      cluster_.ApplyComposite(apply, {kRunnerApply, "status"}, now_)) {
    reconcile_.AddWrite(2);
  }
}

absl::Status ReconcileWrites::Success(engine::PipelineOutcome outcome,
                                      bool foreign, SplitMix64 names) {
  Struct desired;
  desired.Swap(outcome.desired.mutable_composite()->mutable_resource());
  const fn::Ready ready = outcome.desired.composite().ready();

  std::vector<Struct> live;
  live.reserve(cluster_.size());
  engine::ObservedResources observed;
  for (size_t k = 0; k < cluster_.size(); ++k) {
    live.push_back(cluster_.ComposedAt(k));
    observed[cluster_.ResourceNameOf(k)] = &live.back();
  }
  auto composed = engine::Compose(reconcile_.composite, observed,
                                  std::move(outcome.desired),
                                  [&names] { return names.Next(); });
  if (!composed.ok()) {
    engine::PipelineOutcome failed;
    failed.status = composed.status();
    return Failure(failed, foreign);
  }

  for (const Struct& gone : composed->deleted) {
    const size_t k = cluster_.Find(
        engine::AnnotationOf(gone, engine::kResourceNameAnnotation));
    if (k == cluster_.size()) continue;
    cluster_.DeleteComposed(k);
    ++reconcile_.deleted;
    reconcile_.AddWrite(1);
  }
  ApplyReferences(std::move(composed->references),
                  !composed->resources.empty());
  std::vector<engine::Readiness> readiness;
  for (engine::ComposedResource& resource : composed->resources) {
    readiness.push_back({resource.name, resource.ready});
    ApplyResource(resource.name, &resource.resource);
  }

  // The status that functions want and the conditions that were observed are
  // applied; Synced and Ready are written after that. The first reconcile's
  // second write fails, since its references changed the composite.
  ApplyStatus(&desired);
  if (reconcile_.first) return absl::OkStatus();
  if (foreign) {
    return absl::AbortedError(
        "cannot update composite resource status: the object has been "
        "modified; please apply your changes to the latest version and try "
        "again");
  }
  Struct updated = cluster_.Composite();
  const int64_t generation = engine::GenerationOf(reconcile_.composite);
  std::vector<engine::Condition> conditions;
  for (const fn::Condition& condition : outcome.conditions) {
    if (engine::IsSystemCondition(condition.type())) continue;
    conditions.push_back(engine::FromFunction(condition, now_));
  }
  conditions.push_back(
      SystemCondition("Synced", true, "ReconcileSuccess", generation, now_));
  conditions.push_back(ReadyCondition(ready, engine::UnreadyOf(readiness).names,
                                      generation, now_));
  engine::SetConditions(conditions, &updated);
  reconcile_.ready = IsReady(updated);
  Update(std::move(updated), {kRunner, "status"});
  return absl::OkStatus();
}

}  // namespace fncache::runner::load::model
