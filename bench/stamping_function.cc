// SPDX-License-Identifier: Apache-2.0
// stamping_function: the function behind a fleet that bench/fleet measures.
//
//   stamping_function --listen HOST:PORT --ttl DURATION --sleep DURATION
//
// It answers the load client's requests with 13 KB and a stamp (stamp.h). It
// prints "listening on HOST:PORT" on stderr. At SIGTERM it prints
// "stopped runs=N" and ends with exit code 0.
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/request_generator.h"
#include "bench/stamp.h"
#include "common/command_line.h"
#include "common/duration.h"
#include "fncache/function/serve.h"
#include "proto/function_v1.pb.h"
#include "runner/function/costly_calls.h"
#include "sdk/compose/call.h"

namespace fncache::bench {
namespace {

// The same response for all, with the tag and the stamp of the request.
function::Function StampingFunction(absl::Duration ttl) {
  auto answer = std::make_shared<const std::string>(
      MakeAnswer(AnswerShape::k13K, /*seed=*/1, ttl).SerializeAsString());
  return [answer = std::move(answer)](function::Context& ctx) {
    const auto uid =
        ctx.composite().observed()["metadata"]["uid"].as<std::string>().value();
    if (uid.size() < kSlotDigits) {
      ctx.fatal("a composite without a slot");
      return;
    }
    ctx.call()->Answer(*answer);
    ctx.normal(Stamp(uid.substr(uid.size() - kSlotDigits), absl::Now()));
  };
}

int Main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  std::string ttl = "60s", sleep = "0s";
  function::ServerOptions options;
  options.address = "127.0.0.1:0";
  options.insecure = true;
  CommandLine line("Answers the load client's requests with a stamp");
  line.AddOption("--listen", &options.address, "HOST:PORT").ShowDefault();
  line.AddOption("--ttl", &ttl, "of the answers").ShowDefault();
  line.AddOption("--sleep", &sleep, "of each call").ShowDefault();
  const absl::optional<int> code = line.ParseForMain(argc, argv);
  if (code.has_value()) return *code;
  const auto lifetime = ParseGoDuration(ttl);
  const auto slept = ParseGoDuration(sleep);
  if (!lifetime.ok() || !slept.ok()) {
    std::fprintf(stderr, "stamping_function: --ttl and --sleep: %s\n",
                 kDurationForm);
    return 2;
  }
  runner::function::CostOptions costs;
  costs.cost.sleep = *slept;
  // Before there are threads: they inherit the mask.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  runner::function::CostlyCalls calls(costs);
  options.interceptor = calls.Interceptor();
  const auto server =
      function::Server::Start(std::move(options), StampingFunction(*lifetime));
  if (!server.ok()) {
    std::fprintf(stderr, "stamping_function: %s\n",
                 std::string(server.status().message()).c_str());
    return 1;
  }
  std::fprintf(stderr, "listening on %s\n", (*server)->address().c_str());
  int signal = 0;
  sigwait(&signals, &signal);
  (*server)->Stop(absl::Seconds(1));
  std::fprintf(stderr, "stopped runs=%llu\n",
               static_cast<unsigned long long>(calls.counts().calls));
  return 0;
}

}  // namespace
}  // namespace fncache::bench

int main(int argc, char** argv) { return fncache::bench::Main(argc, argv); }
