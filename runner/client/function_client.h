// SPDX-License-Identifier: Apache-2.0
// FunctionClient: calls functions over gRPC as the reference runner does. All
// calls share one channel for each target, and a few threads.
//
// A call waits until the deadline for a function that is down. It uses v1
// first, and v1beta1 if v1 is unimplemented. There are no retries. An answer
// over 4 MiB is RESOURCE_EXHAUSTED.
//
// Thread-safe. The destructor cancels the calls that are left and waits until
// each `done` has returned.
#ifndef FNCACHE_RUNNER_CLIENT_FUNCTION_CLIENT_H_
#define FNCACHE_RUNNER_CLIENT_FUNCTION_CLIENT_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runner/client/function_caller.h"

namespace fncache::runner::client {

struct FunctionTarget {
  std::string name;    // as a Composition's functionRef names it
  std::string target;  // of gRPC: HOST:PORT, dns:///HOST:PORT...
};

// Of NAME=TARGET. The error says what is expected, without a flag.
absl::StatusOr<FunctionTarget> ParseFunctionTarget(absl::string_view text);

struct FunctionClientOptions {
  // The first of two with one name counts.
  std::vector<FunctionTarget> functions;
  // tls.crt, tls.key and ca.crt as the runner has them; "" = plaintext.
  std::string tls_dir;
  int threads = 2;
  // How a request becomes bytes; none = as protobuf writes it. For load whose
  // maps have another order every time. Called from any thread.
  std::function<std::string(
      const apiextensions::fn::proto::v1::RunFunctionRequest&)>
      encode;
  // Request metadata, asked for with every call, names in lower case; none =
  // no metadata. For a load that says in which phase it is. Called from any
  // thread.
  std::function<std::vector<std::pair<std::string, std::string>>()> metadata;
  // Runs the work after an answer, including decoding and `done`, on a thread
  // of its own choice; none = the thread that received the answer does that.
  // For a load: threads that only receive know when an answer arrived. It must
  // run all work, and outlive the client.
  std::function<void(std::function<void()>)> run;
  // Called first by each of `threads`; may be none.
  std::function<void()> begin_thread;
};

// A function that calls wait for, or waited for, without a connection.
struct NotConnected {
  std::string function;
  std::string target;
  std::string why;  // in plain words: `connection refused`
};

// Request metadata by which a function sends its hint (CallResult::hint), as it
// does to a daemon. No daemon takes the member for its own.
inline std::pair<std::string, std::string> AskForHint() {
  return {"cdn-loop", "fncache-runner"};
}

class FunctionClient : public FunctionCaller {
 public:
  // InvalidArgument or what ReadTlsFiles says. Connects to nothing yet: a
  // function that no step names is never contacted.
  static absl::StatusOr<std::unique_ptr<FunctionClient>> Create(
      FunctionClientOptions options);
  // The same for calls that no cache may answer (cache-control: no-store), and
  // that ask for hints.
  static absl::StatusOr<std::unique_ptr<FunctionClient>> CreateUncached(
      std::vector<FunctionTarget> functions, std::string tls_dir);
  ~FunctionClient() override;

  // Ends every call in progress, and every later one at once, as CANCELLED.
  // Waits for none.
  void Cancel();

  // The targets whose calls have found no connection for `patience` or longer,
  // each under one of its functions. It tries each of them once more for the
  // reason, which takes up to 50 ms.
  std::vector<NotConnected> FindNotConnected(absl::Duration patience);

  // A function that is not among the options' fails at once:
  // `unknown function "F" - is it listed in the render input?`.
  void Call(const std::string& function,
            const apiextensions::fn::proto::v1::RunFunctionRequest& request,
            absl::Time deadline, Done done) override;

 private:
  struct Impl;
  explicit FunctionClient(std::shared_ptr<Impl> impl);
  // Shared with the work that `run` got: that may return after the last call.
  const std::shared_ptr<Impl> impl_;
};

}  // namespace fncache::runner::client

#endif  // FNCACHE_RUNNER_CLIENT_FUNCTION_CLIENT_H_
