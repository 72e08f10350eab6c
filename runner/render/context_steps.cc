// SPDX-License-Identifier: Apache-2.0
#include "runner/render/context_steps.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "text/object.h"

namespace fncache::runner::render {

using google::protobuf::Struct;
using google::protobuf::Value;

namespace {

using apiextensions::fn::proto::v1::RunFunctionRequest;
using apiextensions::fn::proto::v1::RunFunctionResponse;

constexpr char kSeed[] = "Seed";
constexpr char kCapture[] = "Capture";

engine::PipelineStep Step(const char* name, const char* mode) {
  engine::PipelineStep step;
  step.name = name;
  step.function = kContextFunction;
  Value input;
  text::SetText(input.mutable_struct_value(), {"mode"}, mode);
  step.input = std::move(input);
  return step;
}

}  // namespace

engine::Composition WithContextSteps(engine::Composition composition, bool seed,
                                     bool capture) {
  if (seed) {
    composition.steps.insert(composition.steps.begin(), Step(kSeedStep, kSeed));
  }
  if (capture) composition.steps.push_back(Step(kCaptureStep, kCapture));
  return composition;
}

ContextSteps::ContextSteps(client::FunctionCaller* functions,
                           google::protobuf::Struct values)
    : functions_(functions), values_(std::move(values)) {}

void ContextSteps::Call(const std::string& function,
                        const RunFunctionRequest& request, absl::Time deadline,
                        Done done) {
  if (function == kContextFunction) {
    done(Answer(request));
  } else {
    functions_->Call(function, request, deadline, std::move(done));
  }
}

client::CallResult ContextSteps::Answer(const RunFunctionRequest& request) {
  client::CallResult result;
  RunFunctionResponse& response = result.response;
  response.mutable_meta()->set_tag(request.meta().tag());
  if (request.has_desired()) *response.mutable_desired() = request.desired();

  const std::string& mode = text::FindText(request.input(), {"mode"});
  if (mode == kSeed) {
    Struct* const context = response.mutable_context();
    *context = request.context();
    for (const auto& [key, value] : values_.fields()) {
      (*context->mutable_fields())[key] = value;
    }
    return result;
  }
  if (mode == kCapture) {
    absl::optional<Struct> captured;
    if (request.has_context()) captured = request.context();
    MutexLock lock(&mutex_);
    captured_ = std::move(captured);
    return result;
  }
  result.response.Clear();
  result.status = absl::InvalidArgumentError(
      absl::StrCat("rpc error: code = InvalidArgument desc = unsupported mode ",
                   "\"", mode, "\""));
  return result;
}

absl::optional<google::protobuf::Struct> ContextSteps::captured() const {
  MutexLock lock(&mutex_);
  return captured_;
}

}  // namespace fncache::runner::render
