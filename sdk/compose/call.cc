// SPDX-License-Identifier: Apache-2.0
#include "sdk/compose/call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/utf8.h"
#include "sdk/compose/bounded_text.h"

namespace fncache::sdk {
namespace {

const lazy::Resource* Find(
    const google::protobuf::Map<std::string, lazy::Resource>& resources,
    const std::string& name) {
  const auto found = resources.find(name);
  return found == resources.end() ? nullptr : &found->second;
}

}  // namespace

Call::Call(const function::Options& options, const CallInfo& info)
    : options(options),
      info(info),
      request(google::protobuf::Arena::CreateMessage<lazy::RunFunctionRequest>(
          &messages)),
      response(
          google::protobuf::Arena::CreateMessage<lazy::RunFunctionResponse>(
              &messages)),
      arena(Arena::New()) {
  no_requirement.call = this;
}

Call::~Call() { arena->Unref(); }

bool Call::Parse(absl::string_view bytes) {
  return request->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

void Call::Fatal(std::string text) {
  if (error.empty()) error = Clip(WellFormedUtf8(text));
}

bool Call::CheckText(absl::string_view text, absl::string_view what) {
  if (IsUtf8(text)) return true;
  Fatal(absl::StrCat(what, " is not UTF-8"));
  return false;
}

bool Call::CheckTtl(absl::Duration ttl) {
  // The largest Duration of protobuf has 315,576,000,000 seconds.
  if (ttl >= absl::ZeroDuration() && ttl <= absl::Seconds(315576000000)) {
    return true;
  }
  Fatal("the TTL must not be negative or infinite");
  return false;
}

Document* Call::Read(
    Section section, absl::string_view name,
    const google::protobuf::RepeatedPtrField<std::string>* pieces) {
  Document* document = arena->NewDocument();
  document->section = section;
  document->name = arena->Keep(name);
  document->writable = false;
  document->awaits =
      section == Section::kObservedResource || section == Section::kRequired;
  documents.push_back(document);
  if (pieces == nullptr || pieces->empty()) return document;
  if (pieces->size() == 1) {
    document->SetBytes(pieces->Get(0));
  } else {
    std::string all;
    for (const std::string& piece : *pieces) all += piece;
    document->SetBytes(arena->Keep(all));
  }
  return document;
}

Document* Call::Write(Section section, absl::string_view name, Document* base) {
  Document* document = arena->NewDocument();
  document->section = section;
  document->name = arena->Keep(name);
  document->base = base;
  return document;
}

void Call::Describe(ComposedResource* resource, Section desired,
                    Section observed, const lazy::Resource* before,
                    const lazy::Resource* seen) {
  resource->call = this;
  resource->before = before;
  resource->seen = seen;
  Document* base = nullptr;
  if (before != nullptr && !before->resource().empty()) {
    base = Read(desired, resource->name, &before->resource());
  }
  resource->desired = Write(desired, resource->name, base);
  resource->observed = Read(observed, resource->name,
                            seen == nullptr ? nullptr : &seen->resource());
}

Node* Call::ContextRoot() {
  if (context == nullptr) {
    context = Write(Section::kContext, "",
                    Read(Section::kContext, "", &request->context()));
  }
  return context->root();
}

ComposedResource* Call::Composite() {
  if (composite == nullptr) {
    composite = std::make_unique<ComposedResource>();
    composite->role = ComposedResource::Role::kComposite;
    Describe(
        composite.get(), Section::kDesiredComposite,
        Section::kObservedComposite,
        request->desired().has_composite() ? &request->desired().composite()
                                           : nullptr,
        request->observed().has_composite() ? &request->observed().composite()
                                            : nullptr);
  }
  return composite.get();
}

ComposedResource* Call::Composed(absl::string_view name) {
  const auto found = composed.find(name);
  if (found != composed.end()) return found->second.get();
  const bool accepted =
      CheckText(name, "the name of a resource") && !name.empty();
  if (!accepted) {
    Fatal("a resource needs a name");
    if (no_resource != nullptr) return no_resource.get();
  }
  auto made = std::make_unique<ComposedResource>();
  ComposedResource* resource = made.get();
  if (accepted) resource->name = std::string(name);
  Describe(
      resource, Section::kDesiredResource, Section::kObservedResource,
      accepted ? Find(request->desired().resources(), resource->name) : nullptr,
      accepted ? Find(request->observed().resources(), resource->name)
               : nullptr);
  if (accepted) {
    composed.emplace(resource->name, std::move(made));
  } else {
    no_resource = std::move(made);
  }
  return resource;
}

ComposedResource* Call::Item(Requirement* requirement, size_t index) {
  std::unique_ptr<ComposedResource>& item = requirement->items[index];
  if (item == nullptr) {
    item = std::make_unique<ComposedResource>();
    item->call = this;
    item->role = ComposedResource::Role::kRequired;
    item->name = requirement->name;
    item->requirement = requirement;
    if (requirement->answer != nullptr &&
        index < static_cast<size_t>(requirement->answer->items_size())) {
      item->seen = &requirement->answer->items(static_cast<int>(index));
    }
    item->observed = Read(Section::kRequired, item->name,
                          item->seen ? &item->seen->resource() : nullptr);
    item->observed->index = static_cast<int>(index);
    item->observed->extra = requirement->extra;
    item->observed->never = requirement->state == function::State::kUnsupported;
  }
  return item.get();
}

function::Secrets Call::SecretsOf(
    const google::protobuf::Map<std::string, std::string>* data,
    const std::function<Node*()>& path) {
  using function::internal::Presence;
  using function::internal::Ref;
  std::map<std::string, function::Secret, std::less<>> all;
  if (data != nullptr && !data->empty()) {
    Node* const keys = path();
    for (const auto& [key, value] : *data) {
      Node* const source = ChildOf(keys, key);
      source->kind = Kind::kText;  // it is there
      all.emplace(key,
                  function::Secret(
                      {{Presence::kValue, false, {Ref(source)}, ""}, value}));
    }
  }
  Node* const absent = path();
  const Presence presence =
      absent->document->awaits ? Presence::kAwaited : Presence::kFinal;
  return function::Secrets(
      data != nullptr, std::move(all),
      function::Secret({{presence, false, {Ref(absent)}, ""}, std::string()}));
}

SchemaRequirement* Call::NoSchema() {
  if (no_schema.schema == nullptr) {
    no_schema.schema = Read(Section::kSchema, "", nullptr);
  }
  return &no_schema;
}

void Call::Answer(std::string message) {
  request->clear_desired();
  request->clear_context();
  no_ttl = true;
  raw_responses = {std::move(message)};
}

bool Call::Has(lazy::Capability capability) const {
  const auto& all = request->meta().capabilities();
  return std::find(all.begin(), all.end(), capability) != all.end();
}

bool Call::Advertises() const { return Has(lazy::CAPABILITY_CAPABILITIES); }

Node* ConditionOf(Document* document, absl::string_view type) {
  Node* const all = ChildOf(ChildOf(document->root(), "status"), "conditions");
  const Node* const shown = Peek(all);
  if (shown == nullptr || shown->kind != Kind::kList) {
    ReadWhole(all);
    return nullptr;
  }
  for (size_t i = 0, end = Size(all); i < end; ++i) {
    Node* const condition = ElementOf(all, i);
    if (TextAt(condition, "type") == type) return condition;
  }
  return nullptr;
}

absl::string_view TextAt(Node* object, absl::string_view key) {
  Node* const field = ChildOf(object, key);
  ReadWhole(field);
  const Node* const shown = Peek(field);
  return shown != nullptr && shown->kind == Kind::kText ? shown->text : "";
}

absl::string_view StatusOf(Node* condition) {
  return condition == nullptr ? "" : TextAt(condition, "status");
}

lazy::Ready ObservedReady(Document* observed) {
  const absl::string_view status = StatusOf(ConditionOf(observed, "Ready"));
  return status == "True"    ? lazy::READY_TRUE
         : status == "False" ? lazy::READY_FALSE
                             : lazy::READY_UNSPECIFIED;
}

}  // namespace fncache::sdk
