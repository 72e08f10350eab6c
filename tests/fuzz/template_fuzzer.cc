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
#include "runner/function/template.h"
#include "runner/function/template_responder.h"

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 8192) return 0;
  RunFunctionRequest request;
  if (!google::protobuf::util::JsonStringToMessage(
           std::string(reinterpret_cast<const char*>(data), size), &request)
           .ok()) {
    return 0;
  }
  const fncache::runner::function::TemplateResponder responder({});
  RunFunctionResponse response, again;
  Check(responder.Respond(request, &response).ok());
  Check(responder.Respond(request, &again).ok());
  Check(Bytes(response) == Bytes(again));

  Check(response.meta().tag() == request.meta().tag());
  Check(response.meta().ttl().seconds() == 60);
  for (const auto& resource : request.desired().resources()) {
    Check(response.desired().resources().contains(resource.first));
  }
  if (!request.has_input()) return 0;
  RunFunctionResponse rendered;
  const absl::Status fault =
      fncache::runner::function::RenderTemplate(request, &rendered);
  if (fault.ok()) return 0;
  RunFunctionResponse wanted;
  *wanted.mutable_meta() = response.meta();
  if (request.has_desired()) *wanted.mutable_desired() = request.desired();
  if (request.has_context()) *wanted.mutable_context() = request.context();
  auto* result = wanted.add_results();
  result->set_severity(apiextensions::fn::proto::v1::SEVERITY_FATAL);
  result->set_message(std::string(fault.message()));
  Check(Bytes(response) == Bytes(wanted));
  return 0;
}
