// SPDX-License-Identifier: Apache-2.0
// Runs a function of the SDK on a message.
#ifndef FNCACHE_TESTS_RUNNER_FUNCTION_RESPOND_H_
#define FNCACHE_TESTS_RUNNER_FUNCTION_RESPOND_H_

#include <string>

#include "absl/status/statusor.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "runner/client/parse.h"
#include "runner/function/template_function.h"
#include "sdk/compose/run.h"

namespace fncache::runner::function {

// The response, or how the call ends. `*hint`, if given, gets the hint.
inline absl::StatusOr<apiextensions::fn::proto::v1::RunFunctionResponse>
TryRespond(const ::fncache::function::Function& function,
           const apiextensions::fn::proto::v1::RunFunctionRequest& request,
           std::string* hint = nullptr) {
  sdk::CallInfo info;
  info.depends = hint != nullptr;
  const auto options = FunctionOptions();
  const sdk::CallResult result =
      sdk::Run(function, options, request.SerializeAsString(), info);
  if (!result.status.ok()) return result.status;
  if (hint != nullptr) *hint = result.depends;
  apiextensions::fn::proto::v1::RunFunctionResponse response;
  google::protobuf::io::ArrayInputStream stream(
      result.response.data(), static_cast<int>(result.response.size()));
  EXPECT_TRUE(client::ParseNested(&stream, &response));
  return response;
}

inline apiextensions::fn::proto::v1::RunFunctionResponse Respond(
    const ::fncache::function::Function& function,
    const apiextensions::fn::proto::v1::RunFunctionRequest& request) {
  auto response = TryRespond(function, request);
  EXPECT_TRUE(response.ok()) << response.status();
  return response.ok() ? *std::move(response)
                       : apiextensions::fn::proto::v1::RunFunctionResponse();
}

}  // namespace fncache::runner::function

#endif  // FNCACHE_TESTS_RUNNER_FUNCTION_RESPOND_H_
