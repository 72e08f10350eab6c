// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "fncache/function/testing.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "nlohmann/json.hpp"
#include "runner/client/parse.h"
#include "runner/testing/call_state.h"
#include "runner/testing/messages.h"
#include "sdk/compose/run.h"
#include "text/json.h"
#include "text/kubernetes_yaml.h"

// extra_resources is deprecated, and old runners have nothing else.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fncache::function::testing {

namespace proto = apiextensions::fn::proto::v1;
using google::protobuf::Struct;

namespace {

std::string Text(std::string_view text) { return std::string(text); }

text::Json ParseJson(const std::string& what, std::string_view yaml) {
  absl::StatusOr<text::Json> json =
      text::ParseKubernetesYaml({yaml.data(), yaml.size()});
  if (!json.ok()) {
    throw std::invalid_argument(
        absl::StrCat(what, ": ", json.status().message()));
  }
  return *std::move(json);
}

Struct ParseObject(const std::string& what, std::string_view yaml) {
  const text::Json json = ParseJson(what, yaml);
  if (!json.is_object()) {
    throw std::invalid_argument(absl::StrCat(what, ": must be an object"));
  }
  return text::ToStruct(json);
}

std::string Named(const char* method, std::string_view name) {
  return absl::StrCat(method, "(\"", Text(name), "\")");
}

}  // namespace

Call::Call(Function function) : state_(std::make_unique<CallState>()) {
  state_->function = std::move(function);
  state_->request.mutable_meta()->set_tag("test");
  capabilities({Capability::kCapabilities, Capability::kRequiredResources,
                Capability::kCredentials, Capability::kConditions,
                Capability::kRequiredSchemas});
}
Call::Call(const Call& other)
    : state_(std::make_unique<CallState>(*other.state_)) {}
Call& Call::operator=(const Call& other) {
  state_ = std::make_unique<CallState>(*other.state_);
  return *this;
}
Call::Call(Call&&) noexcept = default;
Call& Call::operator=(Call&&) noexcept = default;
Call::~Call() = default;

Call& Call::options(const Options& options) {
  state_->options = options;
  return *this;
}

Call& Call::composite(std::string_view yaml) {
  *state_->request.mutable_observed()->mutable_composite()->mutable_resource() =
      ParseObject("composite()", yaml);
  return *this;
}

Call& Call::observed(std::string_view name, std::string_view yaml) {
  auto& all = *state_->request.mutable_observed()->mutable_resources();
  *all[Text(name)].mutable_resource() =
      ParseObject(Named("observed", name), yaml);
  return *this;
}

Call& Call::connection_details(std::string_view name,
                               std::map<std::string, std::string> details) {
  proto::State& observed = *state_->request.mutable_observed();
  proto::Resource& of = name.empty()
                            ? *observed.mutable_composite()
                            : (*observed.mutable_resources())[Text(name)];
  for (auto& [key, value] : details) {
    (*of.mutable_connection_details())[key] = std::move(value);
  }
  return *this;
}

Call& Call::desired(std::string_view name, std::string_view yaml) {
  auto& all = *state_->request.mutable_desired()->mutable_resources();
  *all[Text(name)].mutable_resource() =
      ParseObject(Named("desired", name), yaml);
  return *this;
}

Call& Call::desired_composite(std::string_view yaml) {
  *state_->request.mutable_desired()->mutable_composite()->mutable_resource() =
      ParseObject("desired_composite()", yaml);
  return *this;
}

Call& Call::required(std::string_view name,
                     const std::vector<std::string>& yaml) {
  proto::Resources items;
  for (const std::string& item : yaml) {
    *items.add_items()->mutable_resource() =
        ParseObject(Named("required", name), item);
  }
  (*state_->request.mutable_required_resources())[Text(name)] =
      std::move(items);
  return *this;
}

Call& Call::schema(std::string_view name, std::string_view yaml) {
  proto::Schema& schema =
      (*state_->request.mutable_required_schemas())[Text(name)];
  schema.Clear();
  if (!yaml.empty()) {
    *schema.mutable_openapi_v3() = ParseObject(Named("schema", name), yaml);
  }
  return *this;
}

Call& Call::bootstrap(std::string_view name, std::string_view api_version,
                      std::string_view kind, const Selector& selector) {
  proto::ResourceSelector to;
  to.set_api_version(Text(api_version));
  to.set_kind(Text(kind));
  if (selector.by_name) {
    to.set_match_name(selector.name.value_or(""));
  } else {
    for (const auto& [key, value] : selector.labels) {
      (*to.mutable_match_labels()->mutable_labels())[key] = value.value_or("");
    }
  }
  if (selector.name_space_.has_value()) {
    to.set_namespace_(selector.name_space_->value_or(""));
  }
  state_->bootstrap.emplace_back(Text(name), std::move(to));
  return *this;
}

Call& Call::bootstrap_schema(std::string_view name,
                             std::string_view api_version,
                             std::string_view kind) {
  proto::SchemaSelector to;
  to.set_api_version(Text(api_version));
  to.set_kind(Text(kind));
  state_->bootstrap_schemas.emplace_back(Text(name), std::move(to));
  return *this;
}

Call& Call::credentials(std::string_view name,
                        std::map<std::string, std::string> data) {
  proto::CredentialData& to =
      *(*state_->request.mutable_credentials())[Text(name)]
           .mutable_credential_data();
  to.Clear();
  for (auto& [key, value] : data) {
    (*to.mutable_data())[key] = std::move(value);
  }
  return *this;
}

Call& Call::input(std::string_view yaml) {
  *state_->request.mutable_input() = ParseObject("input()", yaml);
  return *this;
}

Call& Call::context(std::string_view key, std::string_view yaml) {
  (*state_->request.mutable_context()->mutable_fields())[Text(key)] =
      text::ToValue(ParseJson(Named("context", key), yaml));
  return *this;
}

Call& Call::capabilities(std::vector<Capability> capabilities) {
  proto::RequestMeta& meta = *state_->request.mutable_meta();
  meta.clear_capabilities();
  // The same order, without an unspecified one.
  static_assert(static_cast<int>(Capability::kRequiredSchemas) + 1 ==
                proto::CAPABILITY_REQUIRED_SCHEMAS);
  for (const Capability capability : capabilities) {
    meta.add_capabilities(
        static_cast<proto::Capability>(static_cast<int>(capability) + 1));
  }
  return *this;
}

Answer Call::operator()() const {
  return Answer(Run(*state_, Request(*state_).SerializeAsString()));
}

proto::RunFunctionRequest Request(const CallState& call) {
  proto::RunFunctionRequest request = call.request;
  if (request.meta().capabilities().empty()) {
    request.mutable_extra_resources()->swap(
        *request.mutable_required_resources());
  }
  return request;
}

std::shared_ptr<const AnswerState> Run(const CallState& call,
                                       std::string request) {
  sdk::CallInfo info;
  info.depends = true;
  sdk::CallResult result =
      sdk::Run(call.function, call.options, std::move(request), info);
  auto state = std::make_shared<AnswerState>();
  state->status = std::move(result.status);
  state->bytes = std::move(result.response);
  state->depends = std::move(result.depends);
  state->held = std::move(result.held_names);
  state->kept = std::move(result.kept_fields);
  google::protobuf::io::ArrayInputStream in(
      state->bytes.data(), static_cast<int>(state->bytes.size()));
  if (state->status.ok() &&
      !runner::client::ParseNested(&in, &state->response)) {
    state->status = absl::InternalError("the response is no message");
  }
  return state;
}

namespace internal {

Value ParseYaml(std::string_view what, std::string_view yaml) {
  const text::Json json = ParseJson(Text(what), yaml);
  Struct holder;
  (*holder.mutable_fields())["value"] = text::ToValue(json);
  return ToValue(holder)["value"];
}

}  // namespace internal
}  // namespace fncache::function::testing
