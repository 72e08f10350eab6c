// SPDX-License-Identifier: Apache-2.0
// Members of Context, Result, Condition and Log. Requirements and schemas are
// in requirements.cc.
#include "fncache/function/context.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/duration.h"
#include "common/field_path.h"
#include "common/log.h"
#include "common/utf8.h"
#include "sdk/compose/bounded_text.h"
#include "sdk/compose/call.h"

namespace fncache::function {
namespace {

using internal::Ref;
using sdk::Call;
using sdk::ComposedResource;
using sdk::Section;
namespace lazy = sdk::lazy;

absl::string_view Absl(std::string_view text) {
  return {text.data(), text.size()};
}

lazy::Target TargetOf(Target target) {
  return target == Target::kComposite ? lazy::TARGET_COMPOSITE
                                      : lazy::TARGET_COMPOSITE_AND_CLAIM;
}

// The desired text must be `text`; an earlier step may have set it.
bool Agrees(sdk::Node* field, absl::string_view text) {
  const sdk::Node* shown = sdk::Peek(field);
  if (shown == nullptr || shown->kind == sdk::Kind::kNull) return true;
  return shown->kind == sdk::Kind::kText && shown->text == text;
}

Result AddResult(Call* call, lazy::Severity severity, std::string_view text) {
  const bool accepted = call->CheckText(Absl(text), "the text of a result");
  lazy::Result* result = call->response->add_results();
  result->set_severity(severity);
  result->set_target(lazy::TARGET_COMPOSITE);
  if (accepted) result->set_message(std::string(text));
  return Result(call, call->response->results_size() - 1);
}

void Write(const Call* call, LogLevel level, std::string_view message,
           Log::Fields fields) {
  // Log lines are not in the response: their reads are neither noted nor FATAL.
  const sdk::WithReporter quiet(nullptr);
  std::vector<LogField> all;
  if (call->request->observed().has_composite()) {
    sdk::Node* root = const_cast<Call*>(call)->Composite()->observed->root();
    sdk::Node* metadata = sdk::ChildOf(root, "metadata");
    const std::pair<absl::string_view, sdk::Node*> known[] = {
        {"kind", sdk::ChildOf(root, "kind")},
        {"namespace", sdk::ChildOf(metadata, "namespace")},
        {"name", sdk::ChildOf(metadata, "name")}};
    for (const auto& [name, node] : known) {
      const sdk::Node* shown = sdk::Peek(node);
      if (shown != nullptr && shown->kind == sdk::Kind::kText) {
        all.emplace_back(name, shown->text);
      }
    }
  }
  for (const auto& [name, value] : fields) {
    all.emplace_back(Absl(name), Absl(value));
  }
  fncache::Log(level, Absl(message), all);
}

}  // namespace

Resource Context::composite() {
  ComposedResource* composite = call_->Composite();
  return Resource(Ref(composite->desired->root()), composite);
}

Resource Context::resource(std::string_view name, std::string_view api_version,
                           std::string_view kind) {
  ComposedResource* composed = call_->Composed(Absl(name));
  sdk::Node* root = composed->desired->root();
  const std::string path = sdk::PathOf(root);
  if (api_version.empty() || kind.empty()) {
    call_->Fatal(absl::StrCat(path, ": apiVersion and kind are needed"));
  }
  const std::pair<const char*, std::string_view> wanted[] = {
      {"apiVersion", api_version}, {"kind", kind}};
  for (const auto& [key, text] : wanted) {
    sdk::Node* field = sdk::ChildOf(root, key);
    if (!call_->CheckText(Absl(text), absl::StrCat(path, ".", key))) continue;
    if (!Agrees(field, Absl(text))) {
      call_->Fatal(absl::StrCat(sdk::PathOf(field),
                                ": cannot change, it is another already"));
    } else if (sdk::Peek(field) == nullptr) {
      Value(Ref(field)) = text;
    }
  }
  composed->named = true;
  composed->removed = false;
  composed->api_version = std::string(api_version);
  composed->kind = std::string(kind);
  return Resource(Ref(root), composed);
}

Resource Context::existing(std::string_view name) {
  ComposedResource* composed = call_->Composed(Absl(name));
  return Resource(Ref(composed->desired->root()), composed);
}

void Context::remove(std::string_view name) {
  call_->Composed(Absl(name))->removed = true;
}

void Context::auto_ready() { call_->auto_ready = true; }

Secrets Context::credentials(std::string_view name) {
  const auto& all = call_->request->credentials();
  const auto found = all.find(std::string(name));
  const bool exists = found != all.end() && found->second.has_credential_data();
  return Call::SecretsOf(
      exists ? &found->second.credential_data().data() : nullptr, [&] {
        sdk::Document* document = call_->arena->NewDocument();
        return sdk::ChildOf(sdk::ChildOf(document->root(), "credentials"),
                            Absl(name));
      });
}

Value Context::input() {
  if (call_->input == nullptr) {
    call_->input = call_->Read(Section::kInput, "", &call_->request->input());
  }
  return Value(Ref(call_->input->root()));
}

Value Context::context(std::string_view key) {
  if (!call_->CheckText(Absl(key), "a key of the context")) return Value();
  sdk::Node* set = sdk::ChildOf(call_->ContextRoot(), Absl(key));
  if (sdk::Touched(set)) return Value(Ref(set));
  return Value(Ref(sdk::ChildOf(call_->context->base->root(), Absl(key))));
}

Value internal::NewContextValue(std::string_view key) {
  Value value;
  sdk::Document* const document = value.ref().get()->document;
  document->name = document->arena()->Keep(PathBelow("context", Absl(key)));
  return value;
}

void Context::set_context(std::string_view key, const Value& value) {
  sdk::Node* from = value.ref().get();
  if (!call_->CheckText(Absl(key), "a key of the context") ||
      sdk::Look(from) == nullptr) {
    return;  // nothing to set, or not yet
  }
  sdk::Node* to = sdk::ChildOf(call_->ContextRoot(), Absl(key));
  sdk::CopyNode(to, from);
  to->hides_base = true;
}

Value Context::environment() {
  return context("apiextensions.crossplane.io/environment");
}

bool Context::advertises_capabilities() { return call_->Advertises(); }

bool Context::has_capability(Capability capability) {
  return call_->Advertises() &&
         call_->Has(static_cast<lazy::Capability>(
             static_cast<int>(capability) + lazy::CAPABILITY_CAPABILITIES));
}

Result Context::normal(std::string_view text) {
  return AddResult(call_, lazy::SEVERITY_NORMAL, text);
}

Result Context::warning(std::string_view text) {
  return AddResult(call_, lazy::SEVERITY_WARNING, text);
}

Result Context::fatal(std::string_view text) {
  call_->author_fatal = true;
  return AddResult(call_, lazy::SEVERITY_FATAL, text);
}

Condition Context::condition(std::string_view type, Status status,
                             std::string_view reason) {
  lazy::Condition* condition = call_->response->add_conditions();
  if (call_->CheckText(Absl(type), "the type of a condition")) {
    condition->set_type(std::string(type));
  }
  if (call_->CheckText(Absl(reason), "the reason of a condition")) {
    condition->set_reason(std::string(reason));
  }
  condition->set_status(status == Status::kTrue ? lazy::STATUS_CONDITION_TRUE
                        : status == Status::kFalse
                            ? lazy::STATUS_CONDITION_FALSE
                            : lazy::STATUS_CONDITION_UNKNOWN);
  condition->set_target(lazy::TARGET_COMPOSITE);
  return Condition(call_, call_->response->conditions_size() - 1);
}

void Context::fail(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
      // Peers take about 8 KiB of trailers, in which a byte may become three.
      call_->failed.Update(absl::Status(
          status.code(), sdk::Clip(WellFormedUtf8(status.message()))));
      return;
    default:
      fatal(status.message().empty()
                ? absl::StatusCodeToString(status.code())
                : sdk::Clip(WellFormedUtf8(status.message())));
  }
}

bool Context::ok() const { return !call_->fatal() && call_->failed.ok(); }

void Context::ttl(absl::Duration ttl) {
  if (call_->CheckTtl(ttl)) call_->ttl = ttl;
}

void Context::ttl(const Field<std::string>& ttl) {
  if (!ttl.has_value()) return;
  const auto parsed = ParseGoDuration(ttl.value());
  if (parsed.ok()) return this->ttl(*parsed);
  call_->Fatal(absl::StrCat(ttl.path(), ": must be a duration such as 10m"));
}

void Context::ttl_at_most(absl::Duration ttl) {
  // An infinite limit is none.
  if (ttl == absl::InfiniteDuration() || !call_->CheckTtl(ttl)) return;
  call_->ttl_at_most = std::min(ttl, call_->ttl_at_most);
}

Value Context::output() {
  if (call_->output == nullptr) {
    call_->output = call_->Write(Section::kOutput, "", nullptr);
  }
  return Value(Ref(call_->output->root()));
}

absl::Time Context::now() {
  call_->impure = true;
  return absl::Now();
}

absl::Time Context::deadline() {
  call_->impure = true;
  return call_->info.deadline;
}

bool Context::cancelled() {
  call_->impure = true;
  return call_->info.cancelled != nullptr && call_->info.cancelled();
}

Result& Result::reason(std::string_view reason) {
  if (call_->CheckText(Absl(reason), "the reason of a result")) {
    call_->response->mutable_results(index_)->set_reason(std::string(reason));
  }
  return *this;
}

Result& Result::target(Target target) {
  call_->response->mutable_results(index_)->set_target(TargetOf(target));
  return *this;
}

Condition& Condition::message(std::string_view message) {
  if (call_->CheckText(Absl(message), "the message of a condition")) {
    call_->response->mutable_conditions(index_)->set_message(
        std::string(message));
  }
  return *this;
}

Condition& Condition::target(Target target) {
  call_->response->mutable_conditions(index_)->set_target(TargetOf(target));
  return *this;
}

void Log::debug(std::string_view message, Fields fields) const {
  Write(call_, LogLevel::kDebug, message, fields);
}

void Log::info(std::string_view message, Fields fields) const {
  Write(call_, LogLevel::kInfo, message, fields);
}

void Log::error(std::string_view message, Fields fields) const {
  Write(call_, LogLevel::kError, message, fields);
}

}  // namespace fncache::function
