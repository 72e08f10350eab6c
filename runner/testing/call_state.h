// SPDX-License-Identifier: Apache-2.0
// The messages behind a Call and an Answer.
#ifndef FNCACHE_RUNNER_TESTING_CALL_STATE_H_
#define FNCACHE_RUNNER_TESTING_CALL_STATE_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "fncache/function/context.h"
#include "fncache/function/testing.h"
#include "proto/function_v1.pb.h"

namespace fncache::function::testing {

struct CallState {
  Function function;
  Options options;
  // Without extra_resources, which Request() makes of required_resources.
  apiextensions::fn::proto::v1::RunFunctionRequest request;
  std::vector<
      std::pair<std::string, apiextensions::fn::proto::v1::ResourceSelector>>
      bootstrap;
  std::vector<
      std::pair<std::string, apiextensions::fn::proto::v1::SchemaSelector>>
      bootstrap_schemas;
};

struct AnswerState {
  absl::Status status;
  std::string bytes;
  apiextensions::fn::proto::v1::RunFunctionResponse response;
  std::string depends;  // the hint, "" for none
  std::vector<std::string> held;
  std::vector<std::string> kept;
};

// The request as this runner sends it.
apiextensions::fn::proto::v1::RunFunctionRequest Request(const CallState& call);

// Runs the function. `request`: the bytes of a RunFunctionRequest.
std::shared_ptr<const AnswerState> Run(const CallState& call,
                                       std::string request);

}  // namespace fncache::function::testing

#endif  // FNCACHE_RUNNER_TESTING_CALL_STATE_H_
