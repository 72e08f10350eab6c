// SPDX-License-Identifier: Apache-2.0
#include "runner/render/engine_protocol.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/mutex.h"
#include "common/status.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "nlohmann/json.hpp"
#include "proto/render.pb.h"
#include "runner/client/parse.h"
#include "runner/engine/composition.h"
#include "runner/engine/document_schemas.h"
#include "runner/engine/engine.h"
#include "runner/render/operations.h"
#include "text/json.h"
#include "text/typed_object.h"

namespace fncache::runner::render {
namespace {

using crossplane::render::v1alpha1::CompositeInput;
using crossplane::render::v1alpha1::RenderRequest;
using crossplane::render::v1alpha1::RenderResponse;
using google::protobuf::RepeatedPtrField;
using google::protobuf::Struct;

constexpr char kRenderComposite[] = "cannot render composite resource: ";

EngineAnswer Failed(std::string message) {
  EngineAnswer answer;
  answer.exit_code = kEngineFailed;
  answer.message = std::move(message);
  return answer;
}

EngineAnswer Refused(absl::string_view what) {
  return Failed(std::string(OperationRefused(what).message()));
}

engine::EngineInput::Objects Objects(RepeatedPtrField<Struct>* from) {
  return std::make_shared<const std::vector<Struct>>(
      std::make_move_iterator(from->begin()),
      std::make_move_iterator(from->end()));
}

absl::StatusOr<engine::Composition> ToComposition(const Struct& composition) {
  constexpr char kWhat[] = "cannot convert composition from protobuf";
  const auto object = text::ReadTypedJson(text::ObjectType::kComposition,
                                          text::FromStruct(composition));
  if (!object.ok()) {
    return Prefixed(absl::StrCat(kWhat, ": cannot unmarshal JSON to object"),
                    object.status());
  }
  auto parsed = engine::ParseComposition(text::ToStruct(*object));
  if (!parsed.ok()) return Prefixed(kWhat, parsed.status());
  return parsed;
}

absl::StatusOr<engine::EngineInput> ToEngineInput(CompositeInput* input) {
  engine::EngineInput engine;
  engine.composite = std::move(*input->mutable_composite_resource());
  engine.observed = Objects(input->mutable_observed_resources());
  engine.required = Objects(input->mutable_required_resources());
  engine.credentials = Objects(input->mutable_credentials());
  if (input->has_composite_resource_definition()) {
    engine.definition = std::make_shared<const Struct>(
        std::move(*input->mutable_composite_resource_definition()));
  }
  auto composition = ToComposition(input->composition());
  if (!composition.ok()) {
    const absl::Status before = engine::CheckComposite(engine);
    return before.ok() ? composition.status() : before;
  }
  engine.composition =
      std::make_shared<const engine::Composition>(*std::move(composition));
  // Without documents too: it still refuses what is no apiVersion.
  engine.schemas = engine::MakeDocumentSchemasOfStructs(
      *Objects(input->mutable_required_schemas()));
  return engine;
}

engine::EngineOutcome RenderNow(engine::EngineInput input, absl::Time deadline,
                                client::FunctionCaller* caller, Clock* clock) {
  engine::EngineOptions options;
  options.deadline = deadline;
  Mutex mutex;
  CondVar changed;
  bool done = false;
  engine::EngineOutcome outcome;
  engine::Render(std::move(input), options, caller, clock, nullptr,
                 [&](engine::EngineOutcome result) {
                   MutexLock lock(&mutex);
                   outcome = std::move(result);
                   done = true;
                   changed.Signal();
                 });
  MutexLock lock(&mutex);
  while (!done) changed.Wait(&mutex);
  return outcome;
}

EngineAnswer RenderComposite(CompositeInput* input, absl::Time deadline,
                             const CallerFactory& make_caller, Clock* clock) {
  std::vector<client::FunctionTarget> functions;
  for (auto& function : *input->mutable_functions()) {
    functions.push_back({std::move(*function.mutable_name()),
                         std::move(*function.mutable_address())});
  }
  auto engine_input = ToEngineInput(input);
  if (!engine_input.ok()) {
    return Failed(
        absl::StrCat(kRenderComposite, engine_input.status().message()));
  }
  const auto caller = make_caller(std::move(functions));
  if (!caller.ok()) {
    return Failed(absl::StrCat(
        kRenderComposite,
        "cannot connect to functions: ", caller.status().message()));
  }
  engine::EngineOutcome outcome =
      RenderNow(*std::move(engine_input), deadline, caller->get(), clock);
  EngineAnswer answer;
  if (!outcome.status.ok()) {
    answer = Failed(std::string(outcome.status.message()));
    if (!outcome.fatal) return answer;
    answer.exit_code = kEngineFatal;
  }
  RenderResponse response;
  response.mutable_meta();
  *response.mutable_composite() = std::move(outcome.output);
  if (!response.SerializeToString(&answer.output)) {
    return Failed("cannot marshal render response: it is too large");
  }
  return answer;
}

}  // namespace

EngineAnswer AnswerRenderRequest(absl::string_view request, absl::Time deadline,
                                 const CallerFactory& make_caller,
                                 Clock* clock) {
  if (request.size() > std::numeric_limits<int>::max()) {
    return Failed("cannot unmarshal render request: it is too large");
  }
  google::protobuf::io::ArrayInputStream bytes(
      request.data(), static_cast<int>(request.size()));
  RenderRequest message;
  if (!client::ParseNested(&bytes, &message)) {
    return Failed(
        "cannot unmarshal render request: proto: cannot parse invalid "
        "wire-format data");
  }
  switch (message.input_case()) {
    case RenderRequest::kComposite:
      return RenderComposite(message.mutable_composite(), deadline, make_caller,
                             clock);
    case RenderRequest::kOperation:
      return Refused("operation");
    case RenderRequest::kCronOperation:
      return Refused("cron operation");
    case RenderRequest::kWatchOperation:
      return Refused("watch operation");
    case RenderRequest::INPUT_NOT_SET:
      break;
  }
  return Failed(
      "render request must set exactly one of: composite, operation, "
      "cron_operation, watch_operation");
}

}  // namespace fncache::runner::render
