// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/prepared_composite.h"

#include <openssl/sha.h>

#include <array>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "runner/engine/conditions.h"
#include "runner/engine/metadata.h"
#include "text/rfc3339.h"

namespace fncache::runner::engine {

namespace {

constexpr absl::string_view kPausedAnnotation = "crossplane.io/paused";
constexpr absl::string_view kRequestedAnnotation =
    "crossplane.io/reconcile-requested-at";

// Whether `value` is a reference with this name and nothing else that a
// reference can have.
bool IsJustName(const Value* value, absl::string_view name) {
  if (value == nullptr) return false;
  if (text::IsNull(*value)) return name.empty();
  if (!value->has_struct_value()) return false;
  const Struct& reference = value->struct_value();
  for (const absl::string_view field :
       {"kind", "namespace", "uid", "apiVersion", "resourceVersion",
        "fieldPath"}) {
    const Value* const other = text::Find(reference, {field});
    if (other == nullptr || text::IsNull(*other)) continue;
    if (other->kind_case() != Value::kStringValue ||
        !other->string_value().empty()) {
      return false;
    }
  }
  const Value* const named = text::Find(reference, {"name"});
  if (named == nullptr || text::IsNull(*named)) {
    return name.empty();
  }
  return named->kind_case() == Value::kStringValue &&
         named->string_value() == name;
}

Condition SystemCondition(absl::string_view type, absl::string_view status,
                          absl::string_view reason, int64_t generation,
                          absl::Time now) {
  Condition condition;
  condition.type = std::string(type);
  condition.status = std::string(status);
  condition.reason = std::string(reason);
  condition.observed_generation = generation;
  condition.last_transition_time = now;
  return condition;
}

bool IsPaused(const Struct& composite) {
  return AnnotationOf(composite, kPausedAnnotation) == "true";
}

bool IsDeleted(const Struct& composite) {
  return text::ParseRfc3339(
             text::FindText(composite, {"metadata", "deletionTimestamp"}))
      .has_value();
}

void Pause(absl::Time now, PreparedComposite* prepared) {
  prepared->events.push_back(
      NormalEvent("ReconciliationPaused",
                  "Reconciliation is paused via the pause annotation"));
  Condition synced = SystemCondition("Synced", "False", "ReconcilePaused",
                                     GenerationOf(prepared->composite), now);
  synced.message =
      "Reconciliation (including deletion) is paused via the pause annotation";
  SetConditions({synced}, &prepared->composite);
  prepared->finished = true;
}

void Delete(absl::Time now, PreparedComposite* prepared) {
  const int64_t generation = GenerationOf(prepared->composite);
  SetConditions(
      {SystemCondition("Ready", "False", "Deleting", generation, now),
       SystemCondition("Synced", "True", "ReconcileSuccess", generation, now)},
      &prepared->composite);
  prepared->finished = true;
}

// Notes in the status that a requested reconcile ran. The annotation stays, so
// a composite from a cluster may have one that was handled before.
void HandleRequest(PreparedComposite* prepared) {
  const std::string requested =
      AnnotationOf(prepared->composite, kRequestedAnnotation);
  if (requested.empty() ||
      requested == text::FindText(prepared->composite,
                                  {"status", "lastHandledReconcileAt"})) {
    return;
  }
  prepared->events.push_back(
      NormalEvent("ReconcileRequestHandled", "Handling reconcile request"));
  SetNested(&prepared->composite, {"status", "lastHandledReconcileAt"},
            text::TextValue(requested));
}

void SelectComposition(CompositeSchema schema, const std::string& name,
                       PreparedComposite* prepared) {
  const bool selected = IsJustName(
      FindOwnField(prepared->composite, schema, "compositionRef"), name);
  Value reference;
  Struct* const map = reference.mutable_struct_value();
  if (!name.empty()) text::SetText(map, {"name"}, name);
  const bool set = SetOwnField(schema, "compositionRef", std::move(reference),
                               &prepared->composite);
  if (set && !selected) {
    prepared->events.push_back(
        NormalEvent("SelectComposition",
                    absl::StrCat("Successfully selected composition: ", name)));
  }
}

// Sets the label whose value the names and labels of composed resources begin
// with.
void LabelPrefix(PreparedComposite* prepared) {
  Struct* const composite = &prepared->composite;
  if (!LabelOf(*composite, kCompositeLabel).empty()) return;
  AddLabels(composite, {{kCompositeLabel, NameOf(*composite)}});
  prepared->updated = true;
}

// Whether the composite says where its connection secret goes. A null counts,
// and a reference with a field of another type does not.
bool HasConnectionSecret(const Struct& composite) {
  const Value* const value =
      text::Find(composite, {"spec", "writeConnectionSecretToRef"});
  if (value == nullptr) return false;
  if (text::IsNull(*value)) return true;
  if (!value->has_struct_value()) return false;
  for (const absl::string_view field : {"name", "namespace"}) {
    const Value* const text = text::Find(value->struct_value(), {field});
    if (text != nullptr && !text::IsNull(*text) &&
        text->kind_case() != Value::kStringValue) {
      return false;
    }
  }
  return true;
}

void SetConnectionSecret(CompositeSchema schema,
                         const absl::optional<std::string>& secrets_namespace,
                         PreparedComposite* prepared) {
  if (!secrets_namespace.has_value()) return;
  Struct* const composite = &prepared->composite;
  if (schema == CompositeSchema::kLegacy) {
    if (HasConnectionSecret(*composite)) return;
    Value reference;
    Struct* const map = reference.mutable_struct_value();
    text::SetText(map, {"name"}, UidOf(*composite));
    text::SetText(map, {"namespace"}, *secrets_namespace);
    SetNested(composite, {"spec", "writeConnectionSecretToRef"},
              std::move(reference));
  }
  // The runner writes a modern composite back too, though nothing changed.
  prepared->updated = true;
}

}  // namespace

std::string DefaultUid(const Struct& composite) {
  const std::string& api_version = text::FindText(composite, {"apiVersion"});
  const absl::string_view zero("\0", 1);
  const std::string text =
      absl::StrCat(std::string(16, '\0'), text::GroupOf(api_version), "/",
                   text::VersionOf(api_version),
                   ", Kind=", text::FindText(composite, {"kind"}), zero,
                   NamespaceOf(composite), zero, NameOf(composite));
  std::array<uint8_t, SHA_DIGEST_LENGTH> digest;
  SHA1(reinterpret_cast<const uint8_t*>(text.data()), text.size(),
       digest.data());
  digest[6] = (digest[6] & 0x0f) | 0x50;  // version 5
  digest[8] = (digest[8] & 0x3f) | 0x80;  // variant of RFC 4122
  const std::string hex = absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(digest.data()), digest.size()));
  return absl::StrCat(hex.substr(0, 8), "-", hex.substr(8, 4), "-",
                      hex.substr(12, 4), "-", hex.substr(16, 4), "-",
                      hex.substr(20, 12));
}

void IdentifyComposite(Struct* composite) {
  if (UidOf(*composite).empty()) {
    SetMetadataText(composite, "uid", DefaultUid(*composite));
  }
  SetMetadataText(composite, "resourceVersion", "999");
}

PreparedComposite PrepareComposite(Struct stored, CompositeSchema schema,
                                   const Composition& composition,
                                   absl::Time now) {
  PreparedComposite prepared;
  prepared.composite = std::move(stored);
  const Value* const status = text::Find(prepared.composite, {"status"});
  if (status != nullptr) prepared.original_status = *status;

  SetConditions({SystemCondition("Responsive", "True", "WatchCircuitClosed",
                                 GenerationOf(prepared.composite), now)},
                &prepared.composite);
  if (IsPaused(prepared.composite)) {
    Pause(now, &prepared);
    return prepared;
  }
  HandleRequest(&prepared);
  if (IsDeleted(prepared.composite)) {
    Delete(now, &prepared);
    return prepared;
  }
  SelectComposition(schema, composition.name, &prepared);
  LabelPrefix(&prepared);
  SetConnectionSecret(schema, composition.connection_secrets_namespace,
                      &prepared);
  return prepared;
}

}  // namespace fncache::runner::engine
