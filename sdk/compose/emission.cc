// SPDX-License-Identifier: Apache-2.0
#include "sdk/compose/emission.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/field_path.h"
#include "sdk/compose/bounded_text.h"
#include "sdk/compose/extra_resources.h"
#include "sdk/compose/waits.h"

namespace fncache::sdk {
namespace {

using function::OnLost;
using function::Ready;
using function::internal::Presence;

bool TouchedBelow(const Node* object) {
  return object->removed || object->hides_base ||
         std::any_of(object->children.begin(), object->children.end(), Touched);
}

lazy::Ready ReadyOf(const ComposedResource& resource, Ready ready) {
  if (ready == Ready::kTrue) return lazy::READY_TRUE;
  if (ready == Ready::kFalse) return lazy::READY_FALSE;
  return ObservedReady(resource.observed);
}

// apiVersion or kind as earlier steps desire it; "" without.
absl::string_view EarlierText(const ComposedResource& resource,
                              absl::string_view key) {
  Document* const before = resource.desired->base;
  return before == nullptr ? "" : TextAt(before->root(), key);
}

// Whether something will end the wait.
bool CanCome(const Wait& wait) {
  return std::any_of(
      wait.sources.begin(), wait.sources.end(),
      [](const Node* source) { return !source->document->never; });
}

// The paths of what was set at and below the node, without the objects that
// were only made for them.
void AddSet(const Node* node, std::vector<std::string>* paths) {
  if (!Touched(node)) return;
  if (node->kind != Kind::kObject || !node->implicit) {
    paths->push_back(PathOf(node));
    return;
  }
  for (const Node* const child : node->children) AddSet(child, paths);
}

void AddResult(lazy::Severity severity, absl::string_view reason,
               std::string text, lazy::RunFunctionResponse* response) {
  if (text.empty()) return;
  lazy::Result* const result = response->add_results();
  result->set_severity(severity);
  result->set_message(std::move(text));
  if (!reason.empty()) result->set_reason(std::string(reason));
  result->set_target(lazy::TARGET_COMPOSITE);
}

class Emission {
 public:
  explicit Emission(Call* call)
      : call_(call),
        request_(call->request),
        response_(call->response),
        is_operation_(!request_->observed().has_composite()) {}

  // Decides everything, and changes nothing of the response yet.
  void Prepare() {
    for (const auto& [name, resource] : call_->composed) Decide(resource.get());
    report_ = ReportWaits(call_);
    if (!report_.cycle.empty()) call_->Fatal(report_.cycle);
    if (!lost_.empty()) {
      std::sort(lost_.begin(), lost_.end());
      call_->Fatal(Bounded("lost: ", lost_, "; "));
    }
    for (const auto& [name, resource] : call_->composed) {
      if (resource->desires() && !resource->held) Encode(resource.get());
    }
    if (call_->composite != nullptr) EncodeComposite();
    if (call_->context != nullptr && TouchedBelow(call_->context->root())) {
      context_ = sdk::Emit(call_->context, nullptr, nullptr);
    }
    if (call_->output != nullptr && Touched(call_->output->root()) &&
        IsObject(call_->output)) {
      output_ = sdk::Emit(call_->output, nullptr, nullptr);
    }
    if (!call_->options.waiting_condition.empty() && !is_operation_) {
      Compare();
    }
  }

  void Apply(CallResult* result) {
    for (Encoded& encoded : encoded_) ApplyResource(&encoded);
    for (const auto& [name, resource] : call_->composed) {
      if (resource->held) result->held_names.emplace_back(name);
      if ((resource->held || resource->removed) &&
          resource->before != nullptr) {
        response_->mutable_desired()->mutable_resources()->erase(name);
      }
    }
    result->held = static_cast<int>(result->held_names.size());
    ApplyComposite(result->held > 0);
    if (context_.has_value()) {
      response_->clear_context();
      response_->add_context(*std::move(context_));
    }
    if (output_.has_value()) response_->add_output(*std::move(output_));
    result->kept = static_cast<int>(kept_.size());
    AddReports(result->held > 0);
    result->kept_fields = std::move(kept_);
  }

 private:
  // The bytes of a resource that this call changes; without them, its Struct
  // stays.
  struct Encoded {
    ComposedResource* resource;
    absl::optional<std::string> bytes;
    absl::optional<lazy::Ready> ready;
  };

  void Decide(ComposedResource* resource) {
    if (!resource->desires()) return;
    Node* const root = resource->desired->root();
    for (const auto& [key, value] : resource->connection_details) {
      not_emitted_.push_back(
          absl::StrCat(PathOf(root), ".connection_details.", SpellKey(key)));
    }
    Drop(ChildOf(root, "status"));
    CheckKind(*resource);
    resource->waits = WaitsOf(root);
    const bool waits =
        std::any_of(resource->waits.begin(), resource->waits.end(), CanCome);
    resource->held =
        resource->seen == nullptr && (waits || !DependenciesMet(*resource));
    if (resource->seen == nullptr || resource->waits.empty()) return;
    // An object of unknown fields cannot keep those that the resource has.
    const bool fatal =
        resource->on_lost.value_or(call_->options.on_lost) == OnLost::kFatal ||
        root->awaited != nullptr;
    for (const Wait& wait : resource->waits) {
      if (!fatal) break;
      std::vector<std::string> sources;
      for (const Node* const source : wait.sources) {
        sources.push_back(SourceName(source));
      }
      std::sort(sources.begin(), sources.end());
      lost_.push_back(absl::StrCat(FieldName(wait.target), " (waits for ",
                                   absl::StrJoin(sources, ", "), ")"));
    }
  }

  // An object of another kind would leave the existing one behind.
  void CheckKind(const ComposedResource& resource) {
    for (const auto& [key, declared] :
         {std::pair("apiVersion", resource.api_version),
          std::pair("kind", resource.kind)}) {
      Node* const field = ChildOf(resource.desired->root(), key);
      const Node* const shown = Touched(field) ? Peek(field) : nullptr;
      if (shown == nullptr || shown->kind != Kind::kText) continue;
      for (const absl::string_view wanted :
           {absl::string_view(declared), EarlierText(resource, key)}) {
        if (wanted.empty() || shown->text == wanted) continue;
        call_->Fatal(absl::StrCat(PathOf(field),
                                  ": cannot change, it is another already"));
      }
    }
  }

  // Forgets what the function must not set.
  void Drop(Node* node) {
    if (!Touched(node)) return;
    AddSet(node, &not_emitted_);
    StartNode(node, Kind::kUnset);
  }

  bool IsObject(const Document* document) {
    Node* const root = const_cast<Document*>(document)->root();
    const Node* const shown = Peek(root);
    if (shown == nullptr || shown->kind == Kind::kObject) return true;
    call_->Fatal(absl::StrCat(PathOf(root), ": must be an object, is ",
                              KindName(shown->kind)));
    return false;
  }

  // apiVersion and kind, where nothing set them: without declared ones, those
  // of earlier steps.
  static void FillIn(const ComposedResource& resource) {
    for (const auto& [key, declared] :
         {std::pair("apiVersion", resource.api_version),
          std::pair("kind", resource.kind)}) {
      Node* const field = ChildOf(resource.desired->root(), key);
      const Node* const shown = Peek(field);
      if (shown != nullptr && shown->kind == Kind::kText) continue;
      const std::string text =
          declared.empty() ? std::string(EarlierText(resource, key)) : declared;
      if (!text.empty()) {
        function::Value(function::internal::Ref(field)) = text;
      }
    }
  }

  // Its Struct; nothing where that stays as it came.
  absl::optional<std::string> BytesOf(const ComposedResource& resource) {
    if (!TouchedBelow(resource.desired->root())) return absl::nullopt;
    std::vector<const Node*> kept;
    std::string bytes = sdk::Emit(
        resource.desired,
        resource.seen == nullptr ? nullptr : resource.observed->root(), &kept);
    if (resource.seen == nullptr) return bytes;
    for (const Node* const field : kept) kept_.push_back(FieldName(field));
    return bytes;
  }

  void Encode(ComposedResource* resource) {
    Encoded encoded;
    encoded.resource = resource;
    if (resource->named || Touched(resource->desired->root())) {
      if (!IsObject(resource->desired)) return;
      FillIn(*resource);
      encoded.bytes = BytesOf(*resource);
    }
    if (resource->ready.has_value()) {
      encoded.ready = ReadyOf(*resource, *resource->ready);
    } else if (call_->auto_ready && resource->named &&
               (resource->before == nullptr ||
                resource->before->ready() == lazy::READY_UNSPECIFIED)) {
      encoded.ready = ReadyOf(*resource, Ready::kObserved);
    }
    encoded_.push_back(std::move(encoded));
  }

  void EncodeComposite() {
    ComposedResource* const composite = call_->composite.get();
    Node* const root = composite->desired->root();
    if (root->removed || root->hides_base || root->awaited != nullptr ||
        (root->kind != Kind::kUnset && root->kind != Kind::kObject)) {
      // All that earlier steps desire beside the status stays.
      not_emitted_.push_back(PathOf(root));
      root->hides_base = false;
      root->awaited = nullptr;
      if (root->kind != Kind::kObject) StartNode(root, Kind::kUnset);
    }
    for (Node* const child : root->children) {
      if (child->key != "status" && child->key != "apiVersion" &&
          child->key != "kind") {
        Drop(child);
      }
    }
    Node* const there = is_operation_ ? nullptr : composite->observed->root();
    // A status that is cleared leaves an earlier step's composite.
    if (Touched(ChildOf(root, "status")) &&
        (composite->desired->base != nullptr ||
         !sdk::Emit(composite->desired, there, nullptr).empty())) {
      for (const absl::string_view key : {"apiVersion", "kind"}) {
        CopyNode(ChildOf(root, key), ChildOf(composite->observed->root(), key));
      }
      composite_ = sdk::Emit(composite->desired, there, nullptr);
    }
    if (composite->ready.has_value()) {
      composite_ready_ = ReadyOf(*composite, *composite->ready);
    }
    for (const auto& [key, value] : composite->connection_details) {
      if (!value.origin().error.empty()) {
        call_->Fatal(absl::StrCat(PathOf(root), ".connection_details.",
                                  SpellKey(key), ": ", value.origin().error));
      }
    }
  }

  // Whether the observed composite has the condition that this call reports.
  void Compare() {
    const std::string& type = call_->options.waiting_condition;
    if (!call_->CheckText(type, "the type of the waiting condition")) return;
    const bool waits =
        std::any_of(call_->composed.begin(), call_->composed.end(),
                    [](const auto& entry) { return entry.second->held; });
    lazy::Condition& condition = condition_.emplace();
    condition.set_type(type);
    condition.set_status(waits ? lazy::STATUS_CONDITION_FALSE
                               : lazy::STATUS_CONDITION_TRUE);
    condition.set_reason(waits ? "Waiting" : "Complete");
    if (waits) condition.set_message(report_.dependencies);
    condition.set_target(lazy::TARGET_COMPOSITE);
    Node* const known = ConditionOf(call_->Composite()->observed, type);
    if (known != nullptr && StatusOf(known) == (waits ? "False" : "True") &&
        TextAt(known, "reason") == condition.reason() &&
        TextAt(known, "message") == condition.message()) {
      report_.dependencies.clear();
    }
  }

  void ApplyResource(Encoded* encoded) {
    const ComposedResource& resource = *encoded->resource;
    if (!encoded->bytes.has_value() &&
        (!encoded->ready.has_value() ||
         (resource.before != nullptr &&
          resource.before->ready() == *encoded->ready))) {
      return;
    }
    lazy::Resource& out =
        (*response_->mutable_desired()->mutable_resources())[resource.name];
    if (encoded->ready.has_value()) out.set_ready(*encoded->ready);
    if (!encoded->bytes.has_value()) return;
    out.clear_resource();
    out.add_resource(*std::move(encoded->bytes));
  }

  void ApplyComposite(bool waits) {
    const ComposedResource* const composite = call_->composite.get();
    const auto out = [this] {
      return response_->mutable_desired()->mutable_composite();
    };
    if (composite_.has_value()) {
      out()->clear_resource();
      out()->add_resource(*std::move(composite_));
    }
    if (composite_ready_.has_value()) {
      out()->set_ready(*composite_ready_);
    } else if (waits && !is_operation_) {
      out()->set_ready(lazy::READY_FALSE);
    }
    if (composite == nullptr) return;
    for (const auto& [key, value] : composite->connection_details) {
      switch (value.origin().presence) {
        case Presence::kValue:
          (*out()->mutable_connection_details())[key] = value.raw();
          break;
        case Presence::kNull:
          out()->mutable_connection_details()->erase(key);
          break;
        case Presence::kFinal:
          break;
        case Presence::kAwaited: {
          if (composite->seen == nullptr || value.origin().optional) break;
          const auto& seen = composite->seen->connection_details();
          const auto kept = seen.find(key);
          if (kept == seen.end()) break;
          (*out()->mutable_connection_details())[key] = kept->second;
          break;
        }
      }
    }
  }

  void AddReports(bool waits) {
    AddResult(lazy::SEVERITY_NORMAL, "Dependencies",
              std::move(report_.dependencies), response_);
    std::sort(kept_.begin(), kept_.end());
    AddResult(lazy::SEVERITY_WARNING, "KeptObserved", Bounded("", kept_, ", "),
              response_);
    AddResult(lazy::SEVERITY_WARNING, "NeverResolves",
              std::move(report_.never_resolves), response_);
    AddResult(lazy::SEVERITY_WARNING, "NotDesired",
              std::move(report_.not_desired), response_);
    std::sort(not_emitted_.begin(), not_emitted_.end());
    AddResult(lazy::SEVERITY_WARNING, "NotEmitted",
              Bounded("", not_emitted_, ", "), response_);
    if (condition_.has_value()) *response_->add_conditions() = *condition_;
  }

  Call* const call_;
  lazy::RunFunctionRequest* const request_;
  lazy::RunFunctionResponse* const response_;
  const bool is_operation_;
  WaitReport report_;
  std::vector<std::string> not_emitted_, lost_, kept_;
  std::vector<Encoded> encoded_;
  absl::optional<std::string> composite_, context_, output_;
  absl::optional<lazy::Ready> composite_ready_;
  absl::optional<lazy::Condition> condition_;
};

// Adds the requirements, also to a FATAL response. Returns whether the runner
// has yet to answer one.
bool AddRequirements(Call* call) {
  bool pending = false;
  const bool advertises = call->Advertises();
  for (const auto& [name, requirement] : call->requirements) {
    pending |= requirement->state == function::State::kPending;
    if (!requirement->selector.has_value()) continue;
    auto& all = *call->response->mutable_requirements();
    (*all.mutable_resources())[name] = *requirement->selector;
    if (!advertises) {
      (*MutableExtraResources(&all))[name] = *requirement->selector;
    }
  }
  for (const auto& [name, schema] : call->schemas) {
    pending |= schema->state == function::State::kPending;
    if (!schema->selector.has_value()) continue;
    (*call->response->mutable_requirements()->mutable_schemas())[name] =
        *schema->selector;
  }
  return pending;
}

}  // namespace

void Emit(Call* call, CallResult* result) {
  lazy::RunFunctionRequest* const request = call->request;
  lazy::RunFunctionResponse* const response = call->response;
  absl::Duration ttl = call->ttl.value_or(call->options.ttl);
  if (call->CheckTtl(ttl)) ttl = std::min(ttl, call->ttl_at_most);
  Emission emission(call);
  if (!call->fatal()) emission.Prepare();

  const bool pending = AddRequirements(call);
  response->mutable_meta()->set_tag(request->meta().tag());
  // Both messages are on one arena, so that nothing is copied.
  if (request->has_desired()) {
    response->unsafe_arena_set_allocated_desired(
        request->unsafe_arena_release_desired());
  }
  response->mutable_context()->Swap(request->mutable_context());
  bool has_ttl = (!pending || call->Advertises()) && !call->no_ttl;
  if (call->fatal()) {
    has_ttl = has_ttl && call->options.ttl_on_fatal;
    AddResult(lazy::SEVERITY_FATAL, "", call->error, response);
  } else {
    emission.Apply(result);
  }
  if (has_ttl) {
    auto* const field = response->mutable_meta()->mutable_ttl();
    field->set_seconds(absl::IDivDuration(ttl, absl::Seconds(1), &ttl));
    field->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(ttl)));
  }
}

}  // namespace fncache::sdk
