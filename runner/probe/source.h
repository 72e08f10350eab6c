// SPDX-License-Identifier: Apache-2.0
// Where the request comes from that a probe sends.
//
// Blocking functions over files and functions; thread-safe.
#ifndef FNCACHE_RUNNER_PROBE_SOURCE_H_
#define FNCACHE_RUNNER_PROBE_SOURCE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/function_v1.pb.h"
#include "runner/client/function_client.h"
#include "runner/probe/additions.h"
#include "runner/probe/variation.h"
#include "runner/render/flags.h"
#include "runner/render/inputs.h"

namespace fncache::runner::probe {

// More inputs of one function than that are not looked at.
inline constexpr size_t kMostInputs = 4;

struct Source {
  std::vector<apiextensions::fn::proto::v1::RunFunctionRequest> requests;
  std::string what;     // what the requests are, for people
  Variation variation;  // of a trace
  Knowledge knowledge;  // the values in a trace
};

// A message of the function protocol in a file. InvalidArgument where it is
// none, or has nothing in it; what ReadSmallFile says.
absl::StatusOr<Source> ReadRequestFile(const std::string& path);

// The newest request of the trace for the function, and for the step unless
// that is empty, and what varied in such requests. Beside it is the smallest
// one, where that has another number of resources or conditions: what is not
// there yet is often waited for. Where the function got several inputs, it is
// these of each, but not of more than kMostInputs. NotFound names the functions
// and steps that are there; FailedPrecondition where the trace holds no
// messages.
absl::StatusOr<Source> ReadTrace(const std::string& path,
                                 const std::string& function,
                                 const std::string& step);

// Whether `path` is a trace: a folder, or a file that begins as a trace's.
bool IsTrace(const std::string& path);

// The name of the step of the pipeline that is probed: `step`, or where that is
// empty the first one of `function`. NotFound names those that are there.
absl::StatusOr<int> FindStep(const engine::Composition& composition,
                             const std::string& function,
                             const std::string& step);

// Runs the pipeline of the inputs' composite up to the step with that number:
// the last request of that step, as the runner would send it. The error is the
// pipeline's.
absl::StatusOr<Source> MakeRequest(const render::RenderFlags& flags,
                                   const render::RenderInputs& inputs, int step,
                                   client::FunctionCaller* caller);

}  // namespace fncache::runner::probe

#endif  // FNCACHE_RUNNER_PROBE_SOURCE_H_
