// SPDX-License-Identifier: Apache-2.0
// The calls of a load to its functions: Callers calls them over several
// connections, and Reach detects functions without a connection.
#ifndef FNCACHE_RUNNER_LOAD_CALLERS_H_
#define FNCACHE_RUNNER_LOAD_CALLERS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/mutex.h"
#include "runner/client/function_caller.h"
#include "runner/client/function_client.h"
#include "runner/load/results.h"

namespace fncache::runner::load {

// A function is not reached if calls find no connection to it for this long.
// The replacement of a pod takes less.
inline constexpr absl::Duration kUnreached = absl::Seconds(10);

// Several clients, round robin: a connection each for every function.
// Thread-safe once all clients are added.
class Callers : public client::FunctionCaller {
 public:
  void Add(std::unique_ptr<client::FunctionClient> client);
  void Call(const std::string& function,
            const apiextensions::fn::proto::v1::RunFunctionRequest& request,
            absl::Time deadline, Done done) override;

  // Ends all calls, also those to come.
  void Cancel();

  // The functions that calls of any client have found no connection to for
  // kUnreached.
  std::vector<UnreachedResults> FindUnreached();

  // From now on calls of `function` go to the function that the clients know as
  // `name`.
  void Upgrade(const std::string& function, const std::string& name);

 private:
  std::vector<std::unique_ptr<client::FunctionClient>> clients_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> has_upgrades_{false};
  Mutex mutex_;
  std::map<std::string, std::string> upgraded_ ABSL_GUARDED_BY(mutex_);
};

// Finds functions that are not reached, at most once a second. Used by one
// thread at a time.
class Reach {
 public:
  // `warn` (may be null) gets one sentence for each of them, once.
  Reach(Callers* callers, std::function<void(const std::string&)> warn);

  // The functions that are not reached now.
  const std::vector<UnreachedResults>& Look();

 private:
  Callers* const callers_;
  const std::function<void(const std::string&)> warn_;
  int64_t looked_ = 0;
  std::vector<UnreachedResults> unreached_;
  std::set<std::string> warned_;  // targets
};

}  // namespace fncache::runner::load

#endif  // FNCACHE_RUNNER_LOAD_CALLERS_H_
