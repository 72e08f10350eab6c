// SPDX-License-Identifier: Apache-2.0
#include "runner/function/template.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/field_path.h"
#include "common/nearest.h"
#include "runner/function/expression.h"
#include "sdk/compose/call.h"

namespace fncache::runner::function {
namespace {

namespace fn = ::fncache::function;
namespace lazy = sdk::lazy;

using sdk::Kind;
using sdk::Node;

constexpr char kApiVersion[] = "function.fncache.dev/v1alpha1";
constexpr char kKind[] = "Template";

absl::Status Bad(absl::string_view where, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", why));
}

fn::Value ValueAt(Node* node) { return fn::Value(fn::internal::Ref(node)); }

// Nodes of the input, and of values made from it, which are never awaited.
Kind KindOf(const Node* node) {
  const Node* const shown = sdk::Peek(node);
  return shown == nullptr ? Kind::kUnset : shown->kind;
}
Kind KindOf(const fn::Value& value) { return KindOf(value.ref().get()); }
// Empty if it is no text.
absl::string_view TextOf(const Node* node) {
  return KindOf(node) == Kind::kText ? sdk::Peek(node)->text : "";
}
std::string TextOf(const fn::Value& value) {
  return std::string(TextOf(value.ref().get()));
}

// An object of the input with a known set of fields. Refers to the input.
class Object {
 public:
  static absl::StatusOr<Object> Of(Node* node, std::string where,
                                   absl::Span<const absl::string_view> known) {
    if (KindOf(node) != Kind::kObject) return Bad(where, "must be an object");
    for (const absl::string_view key : sdk::Keys(node)) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      return Bad(PathBelow(where, key),
                 absl::StrCat("no such field",
                              DidYouMean(key, {known.begin(), known.end()}),
                              "; accepted: ", absl::StrJoin(known, ", ")));
    }
    return Object(node, std::move(where));
  }

  const std::string& where() const { return where_; }
  std::string where(absl::string_view field) const {
    return PathBelow(where_, field);
  }
  // Returns null if the field is absent; an explicit null counts as absent.
  Node* Find(absl::string_view field) const {
    Node* const found = sdk::ChildOf(node_, field);
    const Kind kind = KindOf(found);
    return kind == Kind::kUnset || kind == Kind::kNull ? nullptr : found;
  }

  // The field expanded, of whatever type; it must be there.
  absl::StatusOr<fn::Value> Get(absl::string_view field,
                                const Scope& scope) const {
    Node* const value = Find(field);
    if (value == nullptr) return Bad(where(field), "is needed");
    return Expand(ValueAt(value), scope, where(field));
  }

  // The field expanded; it must be there and become text that is not empty.
  absl::StatusOr<std::string> Text(absl::string_view field,
                                   const Scope& scope) const {
    const auto value = Get(field, scope);
    if (!value.ok()) return value.status();
    std::string text = TextOf(*value);
    if (text.empty()) return Bad(where(field), "must be text, and not empty");
    return text;
  }

  // Calls `set` with the text of a field that may be absent.
  template <typename Set>
  absl::Status IfText(absl::string_view field, const Scope& scope,
                      Set set) const {
    if (Find(field) == nullptr) return absl::OkStatus();
    auto text = Text(field, scope);
    if (text.ok()) set(*std::move(text));
    return text.status();
  }

  // The field expanded, which must become an object.
  absl::StatusOr<fn::Value> Fields(absl::string_view field,
                                   const Scope& scope) const {
    auto value = Get(field, scope);
    if (value.ok() && KindOf(*value) != Kind::kObject) {
      return Bad(where(field), "must be an object");
    }
    return value;
  }

  // The items of a field that must be a list; none if it is absent.
  absl::StatusOr<std::vector<Node*>> Items(absl::string_view field) const {
    std::vector<Node*> items;
    Node* const list = Find(field);
    if (list == nullptr) return items;
    if (KindOf(list) != Kind::kList) return Bad(where(field), "must be a list");
    for (size_t i = 0, end = sdk::Size(list); i < end; ++i) {
      items.push_back(sdk::ElementOf(list, i));
    }
    return items;
  }

 private:
  Object(Node* node, std::string where)
      : node_(node), where_(std::move(where)) {}

  Node* node_;
  std::string where_;
};

// Renders one input. Single use; the first error ends it.
//
// Status, connection details and context are set through the Context. The
// SDK's rules for the rest are others: a template replaces a resource of
// earlier steps, which the SDK merges, and sets no targets. That is merged into
// the response as a message.
class Renderer {
 public:
  explicit Renderer(fn::Context& ctx)
      : ctx_(ctx), call_(ctx.call()), scope_{ctx, absl::nullopt} {}

  absl::Status Render() {
    const auto input = Object::Of(ctx_.input().ref().get(), "",
                                  {"apiVersion", "kind", "metadata", "spec"});
    if (!input.ok()) return input.status();
    absl::Status status = Expect(*input, "apiVersion", kApiVersion);
    if (status.ok()) status = Expect(*input, "kind", kKind);
    if (!status.ok()) return status;
    if (input->Find("spec") == nullptr) return Bad("spec", "is needed");
    const auto spec =
        Object::Of(input->Find("spec"), "spec",
                   {"requirements", "resources", "status", "connectionDetails",
                    "context", "conditions", "results"});
    if (!spec.ok()) return spec.status();

    bool settled = false;
    status = Requirements(*spec, &settled);
    if (status.ok() && settled) status = Steps(*spec);
    if (status.ok()) call_->raw_responses.push_back(more_.SerializeAsString());
    return status;
  }

 private:
  absl::Status Steps(const Object& spec) {
    using Step = absl::Status (Renderer::*)(const Object&);
    for (const Step step :
         {&Renderer::Resources, &Renderer::Status, &Renderer::ConnectionDetails,
          &Renderer::Context, &Renderer::Conditions, &Renderer::Results}) {
      const absl::Status status = (this->*step)(spec);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  static absl::Status Expect(const Object& object, absl::string_view field,
                             absl::string_view wanted) {
    const Node* const value = object.Find(field);
    if (value == nullptr || TextOf(value) != wanted) {
      return Bad(object.where(field), absl::StrCat("must be ", wanted));
    }
    return absl::OkStatus();
  }

  // Sets `*settled` if the request brings everything that is required.
  absl::Status Requirements(const Object& spec, bool* settled) {
    *settled = true;
    Node* const requirements = spec.Find("requirements");
    if (requirements == nullptr) return absl::OkStatus();
    const std::string where = spec.where("requirements");
    if (KindOf(requirements) != Kind::kObject) {
      return Bad(where, "must be an object: a selector for each name");
    }
    for (const absl::string_view key : sdk::Keys(requirements)) {
      const std::string name(key);
      const auto selector =
          Selector(sdk::ChildOf(requirements, key), PathBelow(where, key));
      if (!selector.ok()) return selector.status();
      (*more_.mutable_requirements()->mutable_resources())[name] = *selector;
      if (!call_->request->required_resources().contains(name)) {
        *settled = false;
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<lazy::ResourceSelector> Selector(Node* node,
                                                  std::string where) {
    const auto object = Object::Of(
        node, std::move(where),
        {"apiVersion", "kind", "matchName", "matchLabels", "namespace"});
    if (!object.ok()) return object.status();
    lazy::ResourceSelector selector;
    auto text = object->Text("apiVersion", scope_);
    if (!text.ok()) return text.status();
    selector.set_api_version(*text);
    text = object->Text("kind", scope_);
    if (!text.ok()) return text.status();
    selector.set_kind(*text);
    const bool by_name = object->Find("matchName") != nullptr;
    if (by_name == (object->Find("matchLabels") != nullptr)) {
      return Bad(object->where(), "needs one of matchName and matchLabels");
    }
    if (by_name) {
      text = object->Text("matchName", scope_);
      if (!text.ok()) return text.status();
      selector.set_match_name(*text);
    } else {
      const auto labels = object->Fields("matchLabels", scope_);
      if (!labels.ok()) return labels.status();
      selector.mutable_match_labels();
      for (const std::string& key : labels->keys()) {
        const fn::Value label = (*labels)[key];
        if (KindOf(label) != Kind::kText) {
          return Bad(PathBelow(object->where("matchLabels"), key),
                     "must be text");
        }
        (*selector.mutable_match_labels()->mutable_labels())[key] =
            TextOf(label);
      }
    }
    const absl::Status status = object->IfText(
        "namespace", scope_,
        [&](std::string text) { selector.set_namespace_(std::move(text)); });
    if (!status.ok()) return status;
    return selector;
  }

  // Calls `each` with every item of the list that `field` is.
  template <typename Each>
  absl::Status ForEach(const Object& spec, absl::string_view field,
                       absl::Span<const absl::string_view> known, Each each) {
    const auto items = spec.Items(field);
    if (!items.ok()) return items.status();
    for (size_t i = 0; i < items->size(); ++i) {
      const auto object =
          Object::Of((*items)[i], PathOfElement(spec.where(field), i), known);
      if (!object.ok()) return object.status();
      const absl::Status status = each(*object);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Resources(const Object& spec) {
    return ForEach(spec, "resources", {"name", "count", "base", "ready"},
                   [this](const Object& object) { return Repeat(object); });
  }

  absl::Status Repeat(const Object& object) {
    if (object.Find("count") == nullptr) return Resource(object, scope_);
    const auto count = Count(object);
    if (!count.ok()) return count.status();
    for (int index = 0; index < *count; ++index) {
      const absl::Status status = Resource(object, {ctx_, index});
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int> Count(const Object& object) {
    const auto value = object.Get("count", scope_);
    if (!value.ok()) return value.status();
    const Node* const node = sdk::Peek(value->ref().get());
    double number = -1;
    if (node->kind == Kind::kList) number = static_cast<double>(node->size);
    if (node->kind == Kind::kNumber) number = node->number;
    if (!(number >= 0 && number <= kMaxRenderedResources) ||
        std::trunc(number) != number) {
      return Bad(object.where("count"),
                 absl::StrCat("must be a whole number from 0 to ",
                              kMaxRenderedResources,
                              ", or a list of at most that many items"));
    }
    return static_cast<int>(number);
  }

  absl::Status Resource(const Object& object, const Scope& scope) {
    const auto name = object.Text("name", scope);
    if (!name.ok()) return name.status();
    if (!rendered_.insert(*name).second) {
      return Bad(object.where("name"),
                 absl::StrCat("\"", *name,
                              "\" is the name of another resource already (a "
                              "repeated one needs ${index} in it)"));
    }
    if (rendered_.size() > kMaxRenderedResources) {
      return Bad("spec.resources",
                 absl::StrCat("render more than ", kMaxRenderedResources,
                              " resources"));
    }
    const auto base = object.Fields("base", scope);
    if (!base.ok()) return base.status();
    for (const char* field : {"apiVersion", "kind"}) {
      if (TextOf((*base)[field]).empty()) {
        return Bad(PathBelow(object.where("base"), field),
                   "is needed, as text");
      }
    }
    const auto ready = Ready(object, scope, *name);
    if (!ready.ok()) return ready.status();
    lazy::Resource& resource =
        (*more_.mutable_desired()->mutable_resources())[*name];
    resource.add_resource(
        sdk::Emit(base->ref().get()->document, nullptr, nullptr));
    resource.set_ready(*ready);
    return absl::OkStatus();
  }

  absl::StatusOr<lazy::Ready> Ready(const Object& object, const Scope& scope,
                                    const std::string& name) {
    bool observed = object.Find("ready") == nullptr;
    if (!observed) {
      const auto value = object.Get("ready", scope);
      if (!value.ok()) return value.status();
      if (KindOf(*value) == Kind::kBool) {
        return *value == true ? lazy::READY_TRUE : lazy::READY_FALSE;
      }
      observed = TextOf(*value) == "observed";
    }
    if (observed) return sdk::ObservedReady(call_->Composed(name)->observed);
    return Bad(object.where("ready"), "must be true, false or observed");
  }

  absl::Status Status(const Object& spec) {
    if (spec.Find("status") == nullptr) return absl::OkStatus();
    const auto status = spec.Fields("status", scope_);
    if (!status.ok()) return status.status();
    ctx_.composite()["status"].merge(*status);
    return absl::OkStatus();
  }

  absl::Status ConnectionDetails(const Object& spec) {
    if (spec.Find("connectionDetails") == nullptr) return absl::OkStatus();
    const auto details = spec.Fields("connectionDetails", scope_);
    if (!details.ok()) return details.status();
    for (const std::string& key : details->keys()) {
      const fn::Value value = (*details)[key];
      if (KindOf(value) != Kind::kText) {
        return Bad(PathBelow("spec.connectionDetails", key), "must be text");
      }
      ctx_.composite().connection_detail(key, value);
    }
    return absl::OkStatus();
  }

  absl::Status Context(const Object& spec) {
    if (spec.Find("context") == nullptr) return absl::OkStatus();
    const auto context = spec.Fields("context", scope_);
    if (!context.ok()) return context.status();
    for (const std::string& key : context->keys()) {
      ctx_.set_context(key, (*context)[key]);
    }
    return absl::OkStatus();
  }

  // Sets the target of a condition or result that has one.
  template <typename Message>
  absl::Status Target(const Object& object, Message* message) {
    if (object.Find("target") == nullptr) return absl::OkStatus();
    const auto text = object.Text("target", scope_);
    if (!text.ok()) return text.status();
    if (*text == "Composite") {
      message->set_target(lazy::TARGET_COMPOSITE);
    } else if (*text == "CompositeAndClaim") {
      message->set_target(lazy::TARGET_COMPOSITE_AND_CLAIM);
    } else {
      return Bad(object.where("target"),
                 "must be Composite or CompositeAndClaim");
    }
    return absl::OkStatus();
  }

  absl::Status Conditions(const Object& spec) {
    return ForEach(spec, "conditions",
                   {"type", "status", "reason", "message", "target"},
                   [this](const Object& object) { return Condition(object); });
  }

  absl::Status Condition(const Object& object) {
    lazy::Condition* condition = more_.add_conditions();
    auto text = object.Text("type", scope_);
    if (!text.ok()) return text.status();
    condition->set_type(*text);
    text = object.Text("reason", scope_);
    if (!text.ok()) return text.status();
    condition->set_reason(*text);
    const auto state = object.Get("status", scope_);
    if (!state.ok()) return state.status();
    // YAML reads an unquoted True as a boolean.
    const std::string name = KindOf(*state) != Kind::kBool ? TextOf(*state)
                             : *state == true              ? "True"
                                                           : "False";
    if (name == "True") {
      condition->set_status(lazy::STATUS_CONDITION_TRUE);
    } else if (name == "False") {
      condition->set_status(lazy::STATUS_CONDITION_FALSE);
    } else if (name == "Unknown") {
      condition->set_status(lazy::STATUS_CONDITION_UNKNOWN);
    } else {
      return Bad(object.where("status"), "must be True, False or Unknown");
    }
    const absl::Status status = object.IfText(
        "message", scope_,
        [&](std::string text) { condition->set_message(std::move(text)); });
    return status.ok() ? Target(object, condition) : status;
  }

  absl::Status Results(const Object& spec) {
    return ForEach(spec, "results", {"severity", "message", "reason", "target"},
                   [this](const Object& object) { return Result(object); });
  }

  absl::Status Result(const Object& object) {
    lazy::Result* result = more_.add_results();
    const auto text = object.Text("message", scope_);
    if (!text.ok()) return text.status();
    result->set_message(*text);
    std::string severity = "Normal";
    absl::Status status =
        object.IfText("severity", scope_,
                      [&](std::string text) { severity = std::move(text); });
    if (!status.ok()) return status;
    if (severity == "Normal") {
      result->set_severity(lazy::SEVERITY_NORMAL);
    } else if (severity == "Warning") {
      result->set_severity(lazy::SEVERITY_WARNING);
    } else if (severity == "Fatal") {
      result->set_severity(lazy::SEVERITY_FATAL);
    } else {
      return Bad(object.where("severity"), "must be Normal, Warning or Fatal");
    }
    status = object.IfText("reason", scope_, [&](std::string text) {
      result->set_reason(std::move(text));
    });
    return status.ok() ? Target(object, result) : status;
  }

  fn::Context& ctx_;
  sdk::Call* const call_;
  const Scope scope_;
  lazy::RunFunctionResponse more_;
  std::set<std::string> rendered_;
};

}  // namespace

absl::Status RenderTemplate(fn::Context& ctx) { return Renderer(ctx).Render(); }

}  // namespace fncache::runner::function
