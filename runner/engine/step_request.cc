// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/step_request.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/json_tree.h"
#include "common/status.h"
#include "google/protobuf/struct.pb.h"
#include "proto/function_v1.pb.h"
#include "text/quoted.h"

namespace fncache::runner::engine {

namespace fn = apiextensions::fn::proto::v1;
using google::protobuf::Struct;
using google::protobuf::Value;

namespace {

// The first token of the value's JSON. A parser that wants an object fails
// there and names it.
std::string FirstToken(const Value& value) {
  switch (value.kind_case()) {
    case Value::kStringValue:
      return JsonTree(value.string_value()).Dump();
    case Value::kBoolValue:
      return value.bool_value() ? "true" : "false";
    case Value::kNumberValue: {
      const double number = value.number_value();
      constexpr double kExact = 1LL << 53;
      if (number >= -kExact && number <= kExact &&
          number == static_cast<double>(static_cast<int64_t>(number))) {
        return absl::StrCat(static_cast<int64_t>(number));
      }
      return JsonTree(number).Dump();
    }
    case Value::kListValue:
      return "[";
    default:
      return "null";
  }
}

absl::Status FillInput(const PipelineStep& step,
                       fn::RunFunctionRequest* request) {
  request->clear_input();
  if (!step.input.has_value()) return absl::OkStatus();
  if (!step.input->has_struct_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot unmarshal input for Composition pipeline step ",
                     text::Quoted(step.name),
                     ": proto: syntax error (line 1:1): unexpected token ",
                     FirstToken(*step.input)));
  }
  *request->mutable_input() = step.input->struct_value();
  return absl::OkStatus();
}

absl::Status FillCredentials(const PipelineStep& step,
                             const ObjectStore& objects,
                             fn::RunFunctionRequest* request) {
  request->clear_credentials();
  for (const StepCredentials& wanted : step.credentials) {
    if (wanted.source != "Secret" || !wanted.secret_ref.has_value()) continue;
    const auto cannot_get = [&](const absl::Status& why) {
      return Prefixed(absl::StrCat("cannot get Composition pipeline step ",
                                   text::Quoted(step.name), " credential ",
                                   text::Quoted(wanted.name), " from Secret"),
                      why);
    };
    const Struct* const secret =
        objects.Get("v1", "Secret", wanted.secret_ref->secret_namespace,
                    wanted.secret_ref->name);
    if (secret == nullptr) {
      return cannot_get(absl::NotFoundError(absl::StrCat(
          "Secret ", text::Quoted(wanted.secret_ref->name), " not found")));
    }
    absl::StatusOr<std::map<std::string, std::string>> data =
        SecretData(*secret);
    if (!data.ok()) return cannot_get(data.status());
    // Set even without data. The last of two with one name counts.
    fn::CredentialData filled;
    for (auto& [key, value] : *data) {
      (*filled.mutable_data())[key] = std::move(value);
    }
    (*request->mutable_credentials())[wanted.name]
        .mutable_credential_data()
        ->Swap(&filled);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FillStep(const PipelineStep& step, const ObjectStore& objects,
                      fn::RunFunctionRequest* request) {
  const absl::Status status = FillInput(step, request);
  return status.ok() ? FillCredentials(step, objects, request) : status;
}

}  // namespace fncache::runner::engine
