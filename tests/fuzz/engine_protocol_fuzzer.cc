// SPDX-License-Identifier: Apache-2.0
// The engine protocol over any input: bytes are a RenderRequest. A fake answers
// for its functions, with requirements, results and resources taken from their
// requests. For any bytes, the command line can read the answer.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "proto/function_v1.pb.h"
#include "proto/render.pb.h"
#include "runner/client/parse.h"
#include "runner/render/engine_protocol.h"

namespace {

namespace fn = apiextensions::fn::proto::v1;
using fncache::runner::client::CallResult;
using fncache::runner::client::FunctionCaller;
using fncache::runner::client::FunctionTarget;
using fncache::runner::render::AnswerRenderRequest;
using fncache::runner::render::EngineAnswer;

void Check(bool holds) {
  if (!holds) std::abort();
}

// Answers with the step's input, where that is a response in parts, else with
// what earlier steps want.
class Fake : public FunctionCaller {
 public:
  void Call(const std::string& function, const fn::RunFunctionRequest& request,
            absl::Time deadline, Done done) override {
    CallResult result;
    fn::RunFunctionResponse& response = result.response;
    if (request.has_desired()) *response.mutable_desired() = request.desired();
    if (request.has_context()) *response.mutable_context() = request.context();
    for (const auto& field : request.input().fields()) {
      Obey(field.first, field.second, request, &response);
    }
    if (function.empty()) result.status = absl::InternalError("no name");
    done(std::move(result));
  }

 private:
  static void Obey(const std::string& name,
                   const google::protobuf::Value& value,
                   const fn::RunFunctionRequest& request,
                   fn::RunFunctionResponse* response) {
    if (name == "desired") {
      for (const auto& resource : value.struct_value().fields()) {
        fn::Resource& desired =
            (*response->mutable_desired()->mutable_resources())[resource.first];
        *desired.mutable_resource() = resource.second.struct_value();
        desired.set_ready(fn::READY_TRUE);
      }
    } else if (name == "composite") {
      *response->mutable_desired()->mutable_composite()->mutable_resource() =
          value.struct_value();
    } else if (name == "context") {
      *response->mutable_context() = value.struct_value();
    } else if (name == "results") {
      for (const auto& entry : value.list_value().values()) {
        fn::Result* const result = response->add_results();
        result->set_message(entry.string_value());
        result->set_severity(
            static_cast<fn::Severity>(result->message().size() % 5));
      }
    } else if (name == "conditions") {
      for (const auto& entry : value.list_value().values()) {
        fn::Condition* const condition = response->add_conditions();
        condition->set_type(entry.string_value());
        condition->set_status(
            static_cast<fn::Status>(condition->type().size() % 4));
      }
    } else if (name == "require") {
      // Another one for each call: it settles only where the list ends.
      const int have = static_cast<int>(request.required_resources_size());
      for (int i = 0; i <= have && i < value.list_value().values_size(); ++i) {
        fn::ResourceSelector& selector =
            (*response->mutable_requirements()
                  ->mutable_resources())[std::to_string(i)];
        selector.set_api_version("v1");
        selector.set_kind(value.list_value().values(i).string_value());
        selector.mutable_match_labels();
      }
    } else if (name == "schema") {
      fn::SchemaSelector& selector =
          (*response->mutable_requirements()->mutable_schemas())["s"];
      selector.set_api_version(value.string_value());
      selector.set_kind("Foo");
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 16384) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  fncache::SimulatedClock clock(absl::FromUnixSeconds(1800000000));
  const auto answer = [&] {
    return AnswerRenderRequest(
        bytes, absl::InfiniteFuture(),
        [](const std::vector<FunctionTarget>&)
            -> absl::StatusOr<std::unique_ptr<FunctionCaller>> {
          return std::make_unique<Fake>();
        },
        &clock);
  };
  const EngineAnswer first = answer();
  if (first.exit_code == fncache::runner::render::kEngineFailed) {
    Check(first.output.empty());
    Check(!first.message.empty());
    return 0;
  }
  Check(first.exit_code == 0 ||
        first.exit_code == fncache::runner::render::kEngineFatal);
  Check(first.message.empty() == (first.exit_code == 0));
  crossplane::render::v1alpha1::RenderResponse response;
  google::protobuf::io::ArrayInputStream stream(
      first.output.data(), static_cast<int>(first.output.size()));
  Check(fncache::runner::client::ParseNested(&stream, &response));
  Check(response.has_meta());
  Check(response.has_composite());
  if (first.exit_code != 0) {
    Check(response.composite().composed_resources_size() == 0);
  }
  return 0;
}
