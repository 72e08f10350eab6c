// SPDX-License-Identifier: Apache-2.0
// Answers of a function, compared: as messages, without meta, with maps
// unordered, and without unstable values.
//
// Belongs to one thread.
#ifndef FNCACHE_RUNNER_PROBE_ANSWER_H_
#define FNCACHE_RUNNER_PROBE_ANSWER_H_

#include <set>
#include <string>

#include "proto/function_v1_fwd.h"
#include "runner/function/flat_message.h"

namespace fncache::runner::client {
struct CallResult;
}  // namespace fncache::runner::client

namespace fncache::runner::probe {

// The message of the first FATAL result; empty without one.
std::string FatalMessage(
    const apiextensions::fn::proto::v1::RunFunctionResponse& response);

// The function's answer to the unchanged request.
class Original {
 public:
  explicit Original(apiextensions::fn::proto::v1::RunFunctionResponse response);

  // Whether `answer` is that one, what is unstable left out. A call that failed
  // is another answer.
  bool IsSame(const client::CallResult& answer) const;
  // Another answer to the very same request: the paths in which it differs are
  // unstable from now on. Whether there were new ones.
  bool Learn(apiextensions::fn::proto::v1::RunFunctionResponse response);
  // Paths of the response, in the order of their bytes.
  const std::set<std::string>& unstable() const { return unstable_; }

 private:
  std::set<std::string> Differences(
      const apiextensions::fn::proto::v1::RunFunctionResponse& answer) const;

  std::string bytes_;
  function::FlatMessage flat_;
  std::set<std::string> unstable_;
};

}  // namespace fncache::runner::probe

#endif  // FNCACHE_RUNNER_PROBE_ANSWER_H_
