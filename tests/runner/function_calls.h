// SPDX-License-Identifier: Apache-2.0
// Calls through a FunctionClient that a test waits for.
#ifndef FNCACHE_TESTS_RUNNER_FUNCTION_CALLS_H_
#define FNCACHE_TESTS_RUNNER_FUNCTION_CALLS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "runner/client/function_client.h"

namespace fncache::runner {

// Far beyond what anything here takes, on any machine.
inline absl::Time Soon() { return absl::Now() + absl::Minutes(2); }

// Keeps the results of calls, in the order of their ends. Thread-safe.
class Results {
 public:
  client::FunctionCaller::Done Done() {
    return [this](client::CallResult result) {
      MutexLock lock(&mutex_);
      results_.push_back(std::move(result));
      changed_.SignalAll();
    };
  }
  std::vector<client::CallResult> Wait(size_t count) {
    MutexLock lock(&mutex_);
    while (results_.size() < count) {
      if (changed_.WaitWithTimeout(&mutex_, absl::Minutes(3))) {
        ADD_FAILURE() << "only " << results_.size() << " calls ended";
        break;
      }
    }
    return results_;
  }
  size_t size() {
    MutexLock lock(&mutex_);
    return results_.size();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<client::CallResult> results_ ABSL_GUARDED_BY(mutex_);
};

inline client::CallResult Call(
    client::FunctionClient* client, const std::string& function,
    const apiextensions::fn::proto::v1::RunFunctionRequest& request,
    absl::Time deadline) {
  Results results;
  client->Call(function, request, deadline, results.Done());
  return results.Wait(1).at(0);
}

// One of "fn" with the tag "t".
inline client::CallResult Call(client::FunctionClient* client,
                               absl::Time deadline = Soon()) {
  apiextensions::fn::proto::v1::RunFunctionRequest request;
  request.mutable_meta()->set_tag("t");
  return Call(client, "fn", request, deadline);
}

}  // namespace fncache::runner

#endif  // FNCACHE_TESTS_RUNNER_FUNCTION_CALLS_H_
