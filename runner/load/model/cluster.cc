// SPDX-License-Identifier: Apache-2.0
#include "runner/load/model/cluster.h"

#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/sha256.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/struct.pb.h"
#include "runner/engine/metadata.h"
#include "text/object.h"
#include "text/rfc3339.h"

namespace fncache::runner::load::model {

using google::protobuf::Struct;
using google::protobuf::Value;

namespace {

Struct Parsed(const std::string& bytes) {
  Struct object;
  object.ParseFromString(bytes);
  return object;
}

std::string Bytes(const Struct& object) {
  std::string bytes = object.SerializeAsString();
  bytes.shrink_to_fit();
  return bytes;
}

// Whether the objects' specs, or what else they have beside metadata and
// status, differ.
bool SpecDiffers(const Struct& a, const Struct& b) {
  const auto one_way = [](const Struct& from, const Struct& to) {
    for (const auto& [name, value] : from.fields()) {
      if (name == "metadata" || name == "status") continue;
      const Value* const other = text::Find(to, {name});
      if (other == nullptr || !text::Equal(value, *other)) return true;
    }
    return false;
  };
  return one_way(a, b) || one_way(b, a);
}

uint64_t DigestOf(const Struct& object) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    object.SerializeToCodedStream(&coded);
  }
  return absl::HashOf(bytes);
}

bool HasGeneration(const Struct& object) {
  return text::FindMap(object, {"spec"}) != nullptr;
}

}  // namespace

SimulatedCluster::SimulatedCluster(SplitMix64 random)
    : random_(random), version_(100000 + random_.Next() % 900000) {}

std::string SimulatedCluster::NewUid() {
  const uint64_t a = random_.Next();
  const uint64_t b = random_.Next();
  return absl::StrFormat("%08x-%04x-4%03x-%04x-%012x", a >> 32,
                         (a >> 16) & 0xffff, a & 0xfff,
                         0x8000 | ((b >> 48) & 0x3fff), b & 0xffffffffffff);
}

void SimulatedCluster::Create(Struct composite, absl::Time now) {
  for (const char* const field :
       {"uid", "resourceVersion", "generation", "creationTimestamp",
        "managedFields", "finalizers", "ownerReferences"}) {
    text::Remove(&composite, {"metadata", field});
  }
  text::Remove(&composite, {"status"});
  uid_ = NewUid();
  manager_ = absl::StrCat(
      "apiextensions.crossplane.io/composed/",
      Sha256Hex(absl::StrCat(text::FindText(composite, {"kind"}), ".",
                             text::FindText(composite, {"apiVersion"}), "/",
                             engine::NameOf(composite))));
  Struct object;
  for (const char* const field : {"apiVersion", "kind"}) {
    text::SetText(&object, {field}, text::FindText(composite, {field}));
  }
  UpdateTo(std::move(composite), {"kubectl-create", ""}, now,
           /*keyed_conditions=*/true, &object);
  text::SetText(&object, {"metadata", "uid"}, uid_);
  text::SetText(&object, {"metadata", "creationTimestamp"},
                text::FormatRfc3339(now));
  text::SetText(&object, {"metadata", "resourceVersion"},
                absl::StrCat(++version_));
  text::Ensure(&object, {"metadata", "generation"})->set_number_value(1);
  PutComposite(object);
}

Struct SimulatedCluster::Composite() const { return Parsed(composite_); }

Struct SimulatedCluster::ComposedAt(size_t i) const {
  return Parsed(composed_[i].object);
}

size_t SimulatedCluster::Find(absl::string_view resource_name) const {
  size_t i = 0;
  while (i < composed_.size() && composed_[i].resource_name != resource_name) {
    ++i;
  }
  return i;
}

void SimulatedCluster::PutComposite(const Struct& composite) {
  composite_ = Bytes(composite);
}

void SimulatedCluster::Bump(const Struct& before, Struct* object) {
  text::SetText(object, {"metadata", "resourceVersion"},
                absl::StrCat(++version_));
  if (!HasGeneration(*object) || !SpecDiffers(before, *object)) return;
  const Value* const old = text::Find(before, {"metadata", "generation"});
  text::Ensure(object, {"metadata", "generation"})
      ->set_number_value(old == nullptr ? 1 : old->number_value() + 1);
}

bool SimulatedCluster::ApplyComposite(const Struct& wanted,
                                      const Writer& writer, absl::Time now) {
  const Struct before = Composite();
  Struct object = before;
  if (!ApplyTo(wanted, writer, now, /*keyed_conditions=*/true, &object)) {
    return false;
  }
  Bump(before, &object);
  PutComposite(object);
  return true;
}

bool SimulatedCluster::UpdateComposite(Struct updated, const Writer& writer,
                                       absl::Time now) {
  const Struct before = Composite();
  Struct object = before;
  if (writer.subresource == "status") {
    Struct with_status = before;
    text::Remove(&with_status, {"status"});
    const auto status = updated.mutable_fields()->find("status");
    if (status != updated.mutable_fields()->end()) {
      text::Ensure(&with_status, {"status"})->Swap(&status->second);
    }
    updated.Swap(&with_status);
  }
  if (!UpdateTo(std::move(updated), writer, now, /*keyed_conditions=*/true,
                &object)) {
    return false;
  }
  Bump(before, &object);
  PutComposite(object);
  return true;
}

SimulatedCluster::Effect SimulatedCluster::ApplyComposed(
    const std::string& resource_name, const Struct& wanted, absl::Time now) {
  const Writer writer{manager_, ""};
  const size_t i = Find(resource_name);
  const uint64_t digest = DigestOf(wanted);
  if (i < composed_.size()) {
    if (composed_[i].applied == digest) return Effect::kNone;
    composed_[i].applied = digest;
    const Struct before = ComposedAt(i);
    Struct object = before;
    if (!ApplyTo(wanted, writer, now, /*keyed_conditions=*/false, &object)) {
      return Effect::kNone;
    }
    Bump(before, &object);
    composed_[i].object = Bytes(object);
    return Effect::kUpdated;
  }
  Struct object;
  for (const char* const field : {"apiVersion", "kind"}) {
    text::SetText(&object, {field}, text::FindText(wanted, {field}));
  }
  for (const char* const field : {"name", "namespace"}) {
    engine::SetMetadataText(&object, field,
                            text::FindText(wanted, {"metadata", field}));
  }
  ApplyTo(wanted, writer, now, /*keyed_conditions=*/false, &object);
  text::SetText(&object, {"metadata", "uid"}, NewUid());
  text::SetText(&object, {"metadata", "creationTimestamp"},
                text::FormatRfc3339(now));
  text::SetText(&object, {"metadata", "resourceVersion"},
                absl::StrCat(++version_));
  if (HasGeneration(object)) {
    text::Ensure(&object, {"metadata", "generation"})->set_number_value(1);
  }
  composed_.push_back({resource_name, Bytes(object), digest});
  return Effect::kCreated;
}

void SimulatedCluster::DeleteComposed(size_t i) {
  ++version_;
  composed_.erase(composed_.begin() + static_cast<ptrdiff_t>(i));
}

void SimulatedCluster::NameExternally(size_t i, absl::Time now) {
  UpdateComposed(
      i, {kProvider, ""},
      [](Struct* object) {
        if (!engine::AnnotationOf(*object, kExternalName).empty()) return;
        engine::AddAnnotations(
            object, {{std::string(kExternalName), engine::NameOf(*object)}});
      },
      now);
}

bool SimulatedCluster::UpdateComposedStatus(
    size_t i, const std::string& manager,
    const std::function<void(Struct*)>& change, absl::Time now) {
  return UpdateComposed(i, {manager, "status"}, change, now);
}

bool SimulatedCluster::UpdateComposed(
    size_t i, const Writer& writer, const std::function<void(Struct*)>& change,
    absl::Time now) {
  const Struct before = ComposedAt(i);
  Struct object = before;
  Struct updated = before;
  change(&updated);
  if (!UpdateTo(std::move(updated), writer, now, /*keyed_conditions=*/false,
                &object)) {
    return false;
  }
  Bump(before, &object);
  composed_[i].object = Bytes(object);
  return true;
}

void SimulatedCluster::Touch(absl::Time now, Struct* object) {
  Value* const owners = text::Ensure(object, {"metadata", "managedFields"});
  Value* newest = nullptr;
  if (owners->has_list_value()) {
    for (Value& entry : *owners->mutable_list_value()->mutable_values()) {
      if (newest == nullptr ||
          text::FindText(entry.struct_value(), {"time"}) >=
              text::FindText(newest->struct_value(), {"time"})) {
        newest = &entry;
      }
    }
  }
  if (newest != nullptr) {
    text::SetText(newest->mutable_struct_value(), {"time"},
                  text::FormatRfc3339(now));
  }
  text::SetText(object, {"metadata", "resourceVersion"},
                absl::StrCat(++version_));
}

void SimulatedCluster::TouchComposite(absl::Time now) {
  Struct object = Composite();
  Touch(now, &object);
  PutComposite(object);
}

void SimulatedCluster::TouchComposed(size_t i, absl::Time now) {
  Struct object = ComposedAt(i);
  Touch(now, &object);
  composed_[i].object = Bytes(object);
}

size_t SimulatedCluster::MemoryBytes() const {
  size_t bytes = sizeof(*this) + composite_.capacity() + uid_.capacity() +
                 manager_.capacity() + composed_.capacity() * sizeof(Composed);
  for (const Composed& composed : composed_) {
    bytes += composed.object.capacity() + composed.resource_name.capacity();
  }
  return bytes;
}

void SetProviderCondition(absl::string_view type, bool status,
                          absl::string_view reason, absl::Time now,
                          Struct* object) {
  Value* const list = text::Ensure(object, {"status", "conditions"});
  if (!list->has_list_value()) list->mutable_list_value();
  Struct* condition = nullptr;
  for (Value& value : *list->mutable_list_value()->mutable_values()) {
    if (text::FindText(value.struct_value(), {"type"}) == type) {
      condition = value.mutable_struct_value();
    }
  }
  if (condition == nullptr) {
    condition =
        list->mutable_list_value()->add_values()->mutable_struct_value();
    text::SetText(condition, {"type"}, type);
  }
  const absl::string_view text = status ? "True" : "False";
  if (text::FindText(*condition, {"status"}) == text &&
      text::FindText(*condition, {"reason"}) == reason) {
    return;
  }
  text::SetText(condition, {"status"}, text);
  text::SetText(condition, {"reason"}, reason);
  text::SetText(condition, {"lastTransitionTime"}, text::FormatRfc3339(now));
}

}  // namespace fncache::runner::load::model
