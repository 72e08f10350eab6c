// SPDX-License-Identifier: Apache-2.0
// The engine protocol: a RenderRequest's bytes in, a RenderResponse's bytes and
// an exit code out, as Crossplane's command line expects of the engine that it
// runs (`BINARY internal render`).
//
// Blocking. Thread-safe.
#ifndef FNCACHE_RUNNER_RENDER_ENGINE_PROTOCOL_H_
#define FNCACHE_RUNNER_RENDER_ENGINE_PROTOCOL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "runner/client/function_caller.h"
#include "runner/client/function_client.h"

namespace fncache::runner::render {

// The exit codes that the command line distinguishes.
inline constexpr int kEngineFailed = 1;  // nothing on stdout
inline constexpr int kEngineFatal = 3;   // a step's FATAL result; some output
inline constexpr int kEngineUsage = 80;

struct EngineAnswer {
  int exit_code = 0;
  std::string output;   // of stdout, with exit codes 0 and 3
  std::string message;  // what is wrong, unless the exit code is 0
};

// Makes the caller of the functions that a request lists.
using CallerFactory =
    std::function<absl::StatusOr<std::unique_ptr<client::FunctionCaller>>(
        std::vector<client::FunctionTarget>)>;

// Renders what `request` asks for, with calls that end by `deadline`.
EngineAnswer AnswerRenderRequest(absl::string_view request, absl::Time deadline,
                                 const CallerFactory& make_caller,
                                 Clock* clock);

}  // namespace fncache::runner::render

#endif  // FNCACHE_RUNNER_RENDER_ENGINE_PROTOCOL_H_
