// SPDX-License-Identifier: Apache-2.0
// Members of Resource, and Secrets.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fncache/function/context.h"
#include "sdk/compose/call.h"

namespace fncache::function {
namespace {

using internal::Ref;
using sdk::ComposedResource;
using Role = ComposedResource::Role;

constexpr char kExternalName[] = "crossplane.io/external-name";

// Whether settings of the resource can be changed through this handle. FATAL if
// not: it is observed, required, or in no call.
bool IsWritable(const Resource& resource) {
  const ComposedResource* composed = resource.composed();
  if (composed != nullptr && composed->desired != nullptr &&
      resource.ref().get()->document == composed->desired) {
    return true;
  }
  const std::string path = sdk::PathOf(resource.ref().get());
  sdk::ReportFatal(absl::StrCat(
      path.empty() ? "a document that stands alone" : path, ": is read-only"));
  return false;
}

}  // namespace

std::string Resource::name() const {
  if (composed_ != nullptr && composed_->role == Role::kComposed) {
    return composed_->name;
  }
  const Field<std::string> name =
      observed().metadata()["name"].as<std::string>();
  // The runner has answered without this item: nothing else brings its name.
  const bool answered = composed_ != nullptr &&
                        composed_->requirement != nullptr &&
                        composed_->requirement->state != State::kPending;
  return answered ? name.value() : name.value_or("");
}

Field<std::string> Resource::external_name() const {
  return metadata()["annotations"][kExternalName].as<std::string>();
}

Resource Resource::external_name(const Observable<std::string>& name) const {
  external_name() = name;
  return *this;
}

Resource Resource::observed() const {
  if (composed_ == nullptr) return *this;
  return Resource(Ref(composed_->observed->root()), composed_);
}

bool Resource::exists() const {
  return composed_ == nullptr ? has_value() : composed_->seen != nullptr;
}

ObservedCondition Resource::condition(std::string_view type) const {
  sdk::Document* document =
      composed_ == nullptr ? ref().get()->document : composed_->observed;
  sdk::Node* found = sdk::ConditionOf(document, {type.data(), type.size()});
  if (found == nullptr) {
    // Behind the last: absent, and awaited where it can still come.
    sdk::Node* all =
        sdk::ChildOf(sdk::ChildOf(document->root(), "status"), "conditions");
    const sdk::Node* shown = sdk::Peek(all);
    found = sdk::ElementOf(all, shown == nullptr ? 0 : shown->size);
  }
  return ObservedCondition(Value(Ref(found)));
}

Resource Resource::ready(Ready ready) const {
  if (IsWritable(*this)) composed_->ready = ready;
  return *this;
}

Resource Resource::depends_on(const Resource& other, Until until) const {
  if (!IsWritable(*this)) return *this;
  const ComposedResource* on = other.composed();
  if (composed_->role != Role::kComposed || on == nullptr ||
      on->role == Role::kComposite) {
    sdk::ReportFatal(absl::StrCat(
        sdk::PathOf(ref().get()),
        ": depends_on is for composed resources, and for required ones that "
        "they depend on"));
  } else {
    composed_->depends_on.emplace_back(other.composed(), until);
  }
  return *this;
}

Resource Resource::on_lost(OnLost on_lost) const {
  if (IsWritable(*this)) composed_->on_lost = on_lost;
  return *this;
}

Secrets Resource::connection_details() const {
  if (composed_ == nullptr) return Secrets();
  const sdk::lazy::Resource* seen = composed_->seen;
  const sdk::Document* observed = composed_->observed;
  return sdk::Call::SecretsOf(
      seen == nullptr || seen->connection_details().empty()
          ? nullptr
          : &seen->connection_details(),
      [observed] {
        sdk::Document* document = observed->arena()->NewDocument();
        document->section = observed->section;
        document->name = observed->name;
        document->index = observed->index;
        document->awaits = observed->awaits;
        if (observed->present()) document->SetBytes("");
        return sdk::ChildOf(document->root(), "connection_details");
      });
}

Resource Resource::connection_detail(
    std::string_view key, const Observable<std::string>& value) const {
  if (IsWritable(*this) &&
      composed_->call->CheckText({key.data(), key.size()},
                                 "the key of a connection detail")) {
    composed_->connection_details[std::string(key)] = value;
  }
  return *this;
}

Secret Secrets::operator[](std::string_view key) const {
  const auto found = all_.find(key);
  if (found != all_.end()) return found->second;
  internal::Origin origin = absent_.observable().origin();
  for (Ref& source : origin.sources) source = internal::Child(source, key);
  return Secret({std::move(origin), std::string()});
}

std::vector<std::string> Secrets::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, secret] : all_) keys.push_back(key);
  return keys;
}

}  // namespace fncache::function
