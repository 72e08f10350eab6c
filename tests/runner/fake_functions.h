// SPDX-License-Identifier: Apache-2.0
// Functions for tests of pipelines: answer from code, at once or from threads
// of their own, and keep what they were asked.
#ifndef FNCACHE_TESTS_RUNNER_FAKE_FUNCTIONS_H_
#define FNCACHE_TESTS_RUNNER_FAKE_FUNCTIONS_H_

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/mutex.h"
#include "runner/client/function_caller.h"
#include "tests/runner/messages.h"

namespace fncache::runner {

using apiextensions::fn::proto::v1::RunFunctionRequest;
using apiextensions::fn::proto::v1::RunFunctionResponse;

// Thread-safe once its functions are set.
class FakeFunctions : public client::FunctionCaller {
 public:
  using Function = std::function<client::CallResult(const RunFunctionRequest&)>;

  struct Asked {
    std::string function;
    RunFunctionRequest request;
    absl::Time deadline;
  };

  void Set(const std::string& name, Function function) {
    functions_[name] = std::move(function);
  }

  // Answers a name's calls with `responses`, as JSON, one after the other; the
  // last once and again.
  void Answer(const std::string& name, std::vector<std::string> responses) {
    auto call = std::make_shared<size_t>(0);
    Set(name,
        [call, responses = std::move(responses)](const RunFunctionRequest&) {
          client::CallResult result;
          result.response = FromJson<RunFunctionResponse>(
              responses[std::min((*call)++, responses.size() - 1)]);
          return result;
        });
  }

  void Call(const std::string& function, const RunFunctionRequest& request,
            absl::Time deadline, Done done) override {
    {
      MutexLock lock(&mutex_);
      asked_.push_back({function, request, deadline});
    }
    done(functions_.at(function)(request));
  }

  std::vector<Asked> asked() const {
    MutexLock lock(&mutex_);
    return asked_;
  }

 private:
  std::map<std::string, Function> functions_;
  mutable Mutex mutex_;
  std::vector<Asked> asked_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace fncache::runner

#endif  // FNCACHE_TESTS_RUNNER_FAKE_FUNCTIONS_H_
