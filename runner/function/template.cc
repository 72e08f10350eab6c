// SPDX-License-Identifier: Apache-2.0
#include "runner/function/template.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/field_path.h"
#include "common/nearest.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "runner/function/expression.h"
#include "text/object.h"

namespace fncache::runner::function {

using google::protobuf::ListValue;
using google::protobuf::Struct;
using google::protobuf::Value;

namespace {

namespace fn = ::apiextensions::fn::proto::v1;

constexpr char kApiVersion[] = "function.fncache.dev/v1alpha1";
constexpr char kKind[] = "Template";

absl::Status Bad(absl::string_view where, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", why));
}

// An object of the input with a known set of fields. Refers to the input.
class Object {
 public:
  static absl::StatusOr<Object> Of(const Struct& fields, std::string where,
                                   absl::Span<const absl::string_view> known) {
    std::set<absl::string_view> unknown;  // sorted: the message never varies
    for (const auto& field : fields.fields()) {
      if (std::find(known.begin(), known.end(), field.first) == known.end()) {
        unknown.insert(field.first);
      }
    }
    if (!unknown.empty()) {
      return Bad(PathBelow(where, *unknown.begin()),
                 absl::StrCat(
                     "no such field",
                     DidYouMean(*unknown.begin(), {known.begin(), known.end()}),
                     "; accepted: ", absl::StrJoin(known, ", ")));
    }
    return Object(fields, std::move(where));
  }

  static absl::StatusOr<Object> Of(const Value& value, std::string where,
                                   absl::Span<const absl::string_view> known) {
    if (value.kind_case() != Value::kStructValue) {
      return Bad(where, "must be an object");
    }
    return Of(value.struct_value(), std::move(where), known);
  }

  const std::string& where() const { return where_; }
  std::string where(absl::string_view field) const {
    return PathBelow(where_, field);
  }
  // Returns null if the field is absent; an explicit null counts as absent.
  const Value* Find(const std::string& field) const {
    const Value* const found = text::Find(*fields_, {field});
    return found == nullptr || text::IsNull(*found) ? nullptr : found;
  }

  // The field expanded, of whatever type; it must be there.
  absl::StatusOr<Value> Get(const std::string& field,
                            const Scope& scope) const {
    const Value* value = Find(field);
    if (value == nullptr) return Bad(where(field), "is needed");
    return Expand(*value, scope, where(field));
  }

  // The field expanded; it must be there and become text that is not empty.
  absl::StatusOr<std::string> Text(const std::string& field,
                                   const Scope& scope) const {
    auto value = Get(field, scope);
    if (!value.ok()) return value.status();
    if (value->kind_case() != Value::kStringValue ||
        value->string_value().empty()) {
      return Bad(where(field), "must be text, and not empty");
    }
    return std::move(*value->mutable_string_value());
  }

  // "" if absent.
  absl::StatusOr<std::string> OptionalText(const std::string& field,
                                           const Scope& scope) const {
    if (Find(field) == nullptr) return std::string();
    return Text(field, scope);
  }

  // The field expanded, which must become an object.
  absl::StatusOr<Struct> Fields(const std::string& field,
                                const Scope& scope) const {
    auto value = Get(field, scope);
    if (!value.ok()) return value.status();
    if (value->kind_case() != Value::kStructValue) {
      return Bad(where(field), "must be an object");
    }
    return std::move(*value->mutable_struct_value());
  }

  // The items of a field that must be a list; none if it is absent.
  absl::StatusOr<std::vector<const Value*>> Items(
      const std::string& field) const {
    std::vector<const Value*> items;
    const Value* list = Find(field);
    if (list == nullptr) return items;
    if (list->kind_case() != Value::kListValue) {
      return Bad(where(field), "must be a list");
    }
    for (const Value& item : list->list_value().values()) {
      items.push_back(&item);
    }
    return items;
  }

 private:
  Object(const Struct& fields, std::string where)
      : fields_(&fields), where_(std::move(where)) {}

  const Struct* fields_;
  std::string where_;
};

// The keys, sorted so that, of several faults, the error is always the same.
std::vector<std::string> Keys(const Struct& fields) {
  std::vector<std::string> keys;
  for (const auto& field : fields.fields()) keys.push_back(field.first);
  std::sort(keys.begin(), keys.end());
  return keys;
}

// Objects are merged field by field, anything else replaces.
void Merge(const Struct& from, Struct* to) {
  for (const auto& field : from.fields()) {
    Value& target = (*to->mutable_fields())[field.first];
    if (field.second.kind_case() == Value::kStructValue &&
        target.kind_case() == Value::kStructValue) {
      Merge(field.second.struct_value(), target.mutable_struct_value());
    } else {
      target = field.second;
    }
  }
}

// Renders one input. Single use; the first error ends it.
class Renderer {
 public:
  Renderer(const fn::RunFunctionRequest& request,
           fn::RunFunctionResponse* response)
      : request_(request),
        scope_{request, absl::nullopt},
        response_(response) {}

  absl::Status Render() {
    const auto input = Object::Of(request_.input(), "",
                                  {"apiVersion", "kind", "metadata", "spec"});
    if (!input.ok()) return input.status();
    absl::Status status = Expect(*input, "apiVersion", kApiVersion);
    if (status.ok()) status = Expect(*input, "kind", kKind);
    if (!status.ok()) return status;
    if (input->Find("spec") == nullptr) return Bad("spec", "is needed");
    const auto spec =
        Object::Of(*input->Find("spec"), "spec",
                   {"requirements", "resources", "status", "connectionDetails",
                    "context", "conditions", "results"});
    if (!spec.ok()) return spec.status();

    bool settled = false;
    status = Requirements(*spec, &settled);
    if (!status.ok() || !settled) return status;
    using Step = absl::Status (Renderer::*)(const Object&);
    for (const Step step :
         {&Renderer::Resources, &Renderer::Status, &Renderer::ConnectionDetails,
          &Renderer::Context, &Renderer::Conditions, &Renderer::Results}) {
      status = (this->*step)(*spec);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status Expect(const Object& object, const std::string& field,
                             absl::string_view wanted) {
    const Value* value = object.Find(field);
    if (value == nullptr || value->string_value() != wanted) {
      return Bad(object.where(field), absl::StrCat("must be ", wanted));
    }
    return absl::OkStatus();
  }

  // Sets `*settled` if the request brings everything that is required.
  absl::Status Requirements(const Object& spec, bool* settled) {
    *settled = true;
    const Value* requirements = spec.Find("requirements");
    if (requirements == nullptr) return absl::OkStatus();
    const std::string where = spec.where("requirements");
    if (requirements->kind_case() != Value::kStructValue) {
      return Bad(where, "must be an object: a selector for each name");
    }
    for (const std::string& name : Keys(requirements->struct_value())) {
      const auto selector =
          Selector(requirements->struct_value().fields().at(name),
                   PathBelow(where, name));
      if (!selector.ok()) return selector.status();
      (*response_->mutable_requirements()->mutable_resources())[name] =
          *selector;
      if (request_.required_resources().count(name) == 0) *settled = false;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<fn::ResourceSelector> Selector(const Value& value,
                                                std::string where) {
    const auto object = Object::Of(
        value, std::move(where),
        {"apiVersion", "kind", "matchName", "matchLabels", "namespace"});
    if (!object.ok()) return object.status();
    fn::ResourceSelector selector;
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
      for (const std::string& key : Keys(*labels)) {
        const Value& label = labels->fields().at(key);
        if (label.kind_case() != Value::kStringValue) {
          return Bad(PathBelow(object->where("matchLabels"), key),
                     "must be text");
        }
        (*selector.mutable_match_labels()->mutable_labels())[key] =
            label.string_value();
      }
    }
    if (object->Find("namespace") != nullptr) {
      text = object->Text("namespace", scope_);
      if (!text.ok()) return text.status();
      selector.set_namespace_(*text);
    }
    return selector;
  }

  absl::Status Resources(const Object& spec) {
    const auto items = spec.Items("resources");
    if (!items.ok()) return items.status();
    for (size_t i = 0; i < items->size(); ++i) {
      const auto object =
          Object::Of(*(*items)[i], PathOfElement("spec.resources", i),
                     {"name", "count", "base", "ready"});
      if (!object.ok()) return object.status();
      const absl::Status status = Repeat(*object);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Repeat(const Object& object) {
    if (object.Find("count") == nullptr) return Resource(object, scope_);
    const auto count = Count(object);
    if (!count.ok()) return count.status();
    for (int index = 0; index < *count; ++index) {
      const absl::Status status = Resource(object, {request_, index});
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int> Count(const Object& object) {
    const auto value = object.Get("count", scope_);
    if (!value.ok()) return value.status();
    if (value->kind_case() == Value::kListValue &&
        value->list_value().values_size() <= kMaxRenderedResources) {
      return value->list_value().values_size();
    }
    const double number = value->number_value();
    if (value->kind_case() != Value::kNumberValue ||
        !(number >= 0 && number <= kMaxRenderedResources) ||
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
    auto base = object.Fields("base", scope);
    if (!base.ok()) return base.status();
    for (const char* field : {"apiVersion", "kind"}) {
      if (text::FindText(*base, {field}).empty()) {
        return Bad(PathBelow(object.where("base"), field),
                   "is needed, as text");
      }
    }
    const auto ready = Ready(object, scope, *name);
    if (!ready.ok()) return ready.status();
    fn::Resource resource;
    *resource.mutable_resource() = *std::move(base);
    resource.set_ready(*ready);
    (*response_->mutable_desired()->mutable_resources())[*name] =
        std::move(resource);
    return absl::OkStatus();
  }

  absl::StatusOr<fn::Ready> Ready(const Object& object, const Scope& scope,
                                  const std::string& name) {
    if (object.Find("ready") == nullptr) return ObservedReady(name);
    const auto value = object.Get("ready", scope);
    if (!value.ok()) return value.status();
    if (value->kind_case() == Value::kBoolValue) {
      return value->bool_value() ? fn::READY_TRUE : fn::READY_FALSE;
    }
    if (value->string_value() == "observed") return ObservedReady(name);
    return Bad(object.where("ready"), "must be true, false or observed");
  }

  // Returns readiness as the condition Ready of the observed resource says it.
  fn::Ready ObservedReady(const std::string& name) {
    const auto observed = request_.observed().resources().find(name);
    if (observed == request_.observed().resources().end()) {
      return fn::READY_UNSPECIFIED;
    }
    const ListValue* const conditions =
        text::FindList(observed->second.resource(), {"status", "conditions"});
    if (conditions == nullptr) return fn::READY_UNSPECIFIED;
    for (const Value& condition : conditions->values()) {
      if (text::FindText(condition.struct_value(), {"type"}) != "Ready")
        continue;
      const std::string& state =
          text::FindText(condition.struct_value(), {"status"});
      if (state == "True") return fn::READY_TRUE;
      if (state == "False") return fn::READY_FALSE;
    }
    return fn::READY_UNSPECIFIED;
  }

  absl::Status Status(const Object& spec) {
    if (spec.Find("status") == nullptr) return absl::OkStatus();
    auto status = spec.Fields("status", scope_);
    if (!status.ok()) return status.status();
    auto& desired = *response_->mutable_desired()
                         ->mutable_composite()
                         ->mutable_resource()
                         ->mutable_fields();
    // The runner wants to know whose status this is.
    const Struct& observed = request_.observed().composite().resource();
    for (const char* field : {"apiVersion", "kind"}) {
      const Value* const found = text::Find(observed, {field});
      if (found != nullptr && desired.count(field) == 0) {
        desired[field] = *found;
      }
    }
    Merge(*status, desired["status"].mutable_struct_value());
    return absl::OkStatus();
  }

  absl::Status ConnectionDetails(const Object& spec) {
    if (spec.Find("connectionDetails") == nullptr) return absl::OkStatus();
    const auto details = spec.Fields("connectionDetails", scope_);
    if (!details.ok()) return details.status();
    for (const std::string& key : Keys(*details)) {
      const Value& value = details->fields().at(key);
      if (value.kind_case() != Value::kStringValue) {
        return Bad(PathBelow("spec.connectionDetails", key), "must be text");
      }
      (*response_->mutable_desired()
            ->mutable_composite()
            ->mutable_connection_details())[key] = value.string_value();
    }
    return absl::OkStatus();
  }

  absl::Status Context(const Object& spec) {
    if (spec.Find("context") == nullptr) return absl::OkStatus();
    const auto context = spec.Fields("context", scope_);
    if (!context.ok()) return context.status();
    for (const auto& field : context->fields()) {
      (*response_->mutable_context()->mutable_fields())[field.first] =
          field.second;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<fn::Target> Target(const Object& object) {
    const auto text = object.Text("target", scope_);
    if (!text.ok()) return text.status();
    if (*text == "Composite") return fn::TARGET_COMPOSITE;
    if (*text == "CompositeAndClaim") return fn::TARGET_COMPOSITE_AND_CLAIM;
    return Bad(object.where("target"),
               "must be Composite or CompositeAndClaim");
  }

  absl::Status Conditions(const Object& spec) {
    const auto items = spec.Items("conditions");
    if (!items.ok()) return items.status();
    for (size_t i = 0; i < items->size(); ++i) {
      const auto object =
          Object::Of(*(*items)[i], PathOfElement("spec.conditions", i),
                     {"type", "status", "reason", "message", "target"});
      if (!object.ok()) return object.status();
      const absl::Status status = Condition(*object);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Condition(const Object& object) {
    fn::Condition* condition = response_->add_conditions();
    auto text = object.Text("type", scope_);
    if (!text.ok()) return text.status();
    condition->set_type(*text);
    text = object.Text("reason", scope_);
    if (!text.ok()) return text.status();
    condition->set_reason(*text);
    const auto state = object.Get("status", scope_);
    if (!state.ok()) return state.status();
    // YAML reads an unquoted True as a boolean.
    const bool boolean = state->kind_case() == Value::kBoolValue;
    if (boolean ? state->bool_value() : state->string_value() == "True") {
      condition->set_status(fn::STATUS_CONDITION_TRUE);
    } else if (boolean || state->string_value() == "False") {
      condition->set_status(fn::STATUS_CONDITION_FALSE);
    } else if (state->string_value() == "Unknown") {
      condition->set_status(fn::STATUS_CONDITION_UNKNOWN);
    } else {
      return Bad(object.where("status"), "must be True, False or Unknown");
    }
    if (object.Find("message") != nullptr) {
      text = object.Text("message", scope_);
      if (!text.ok()) return text.status();
      condition->set_message(*text);
    }
    if (object.Find("target") != nullptr) {
      const auto target = Target(object);
      if (!target.ok()) return target.status();
      condition->set_target(*target);
    }
    return absl::OkStatus();
  }

  absl::Status Results(const Object& spec) {
    const auto items = spec.Items("results");
    if (!items.ok()) return items.status();
    for (size_t i = 0; i < items->size(); ++i) {
      const auto object =
          Object::Of(*(*items)[i], PathOfElement("spec.results", i),
                     {"severity", "message", "reason", "target"});
      if (!object.ok()) return object.status();
      const absl::Status status = Result(*object);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Result(const Object& object) {
    fn::Result* result = response_->add_results();
    auto text = object.Text("message", scope_);
    if (!text.ok()) return text.status();
    result->set_message(*text);
    text = object.OptionalText("severity", scope_);
    if (!text.ok()) return text.status();
    if (text->empty() || *text == "Normal") {
      result->set_severity(fn::SEVERITY_NORMAL);
    } else if (*text == "Warning") {
      result->set_severity(fn::SEVERITY_WARNING);
    } else if (*text == "Fatal") {
      result->set_severity(fn::SEVERITY_FATAL);
    } else {
      return Bad(object.where("severity"), "must be Normal, Warning or Fatal");
    }
    if (object.Find("reason") != nullptr) {
      text = object.Text("reason", scope_);
      if (!text.ok()) return text.status();
      result->set_reason(*text);
    }
    if (object.Find("target") != nullptr) {
      const auto target = Target(object);
      if (!target.ok()) return target.status();
      result->set_target(*target);
    }
    return absl::OkStatus();
  }

  const fn::RunFunctionRequest& request_;
  const Scope scope_;
  fn::RunFunctionResponse* const response_;
  std::set<std::string> rendered_;
};

}  // namespace

absl::Status RenderTemplate(const fn::RunFunctionRequest& request,
                            fn::RunFunctionResponse* response) {
  return Renderer(request, response).Render();
}

}  // namespace fncache::runner::function
