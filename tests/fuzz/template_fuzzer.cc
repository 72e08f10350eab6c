// SPDX-License-Identifier: Apache-2.0
// The function's template over any input: bytes are a request as JSON. For any
// request, the answer renders the same twice and keeps what earlier steps want.
// On a fault it has nothing but that and the fault.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/json_util.h"
#include "proto/function_v1.pb.h"
#include "runner/function/template_function.h"
#include "sdk/compose/run.h"

namespace {

using apiextensions::fn::proto::v1::RunFunctionRequest;
using apiextensions::fn::proto::v1::RunFunctionResponse;

void Check(bool holds) {
  if (!holds) std::abort();
}

std::string Bytes(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream out(&bytes);
    google::protobuf::io::CodedOutputStream coded(&out);
    coded.SetSerializationDeterministic(true);
    Check(message.SerializeToCodedStream(&coded));
  }
  return bytes;
}

RunFunctionResponse Respond(const RunFunctionRequest& request) {
  const auto options = fncache::runner::function::FunctionOptions();
  const fncache::sdk::CallResult result =
      fncache::sdk::Run(fncache::runner::function::TemplateFunction({}),
                        options, request.SerializeAsString(), {});
  Check(result.status.ok());
  RunFunctionResponse response;
  Check(response.ParseFromString(result.response));
  return response;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 8192) return 0;
  RunFunctionRequest request;
  if (!google::protobuf::util::JsonStringToMessage(
           std::string(reinterpret_cast<const char*>(data), size), &request)
           .ok()) {
    return 0;
  }
  const RunFunctionResponse response = Respond(request);
  Check(Bytes(response) == Bytes(Respond(request)));

  Check(response.meta().tag() == request.meta().tag());
  Check(response.meta().ttl().seconds() == 60);
  for (const auto& resource : request.desired().resources()) {
    Check(response.desired().resources().contains(resource.first));
  }
  // A fault has no target; a FATAL result of the template may be beside others.
  if (!request.has_input() || response.results_size() != 1 ||
      response.results(0).severity() !=
          apiextensions::fn::proto::v1::SEVERITY_FATAL) {
    return 0;
  }
  RunFunctionResponse wanted;
  *wanted.mutable_meta() = response.meta();
  if (request.has_desired()) *wanted.mutable_desired() = request.desired();
  if (request.has_context()) *wanted.mutable_context() = request.context();
  *wanted.add_results() = response.results(0);
  // Else the template has that result.
  const std::string input = request.input().SerializeAsString();
  Check(Bytes(response) == Bytes(wanted) ||
        input.find("Fatal") != std::string::npos);
  return 0;
}
