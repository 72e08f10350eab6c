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
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/request_generator.h"
#include "bench/stamp.h"
#include "common/command_line.h"
#include "common/duration.h"
#include "proto/function_v1.pb.h"
#include "runner/function/responder.h"
#include "runner/function/server.h"

namespace fncache::bench {
namespace {

class StampingResponder final : public runner::function::Responder {
 public:
  explicit StampingResponder(absl::Duration ttl)
      : answer_(MakeAnswer(AnswerShape::k13K, /*seed=*/1, ttl)) {}

  absl::Status Respond(const Request& request,
                       Answer* response) const override {
    *response = answer_;
    response->mutable_meta()->set_tag(request.meta().tag());
    const auto& composite = request.observed().composite().resource().fields();
    const auto metadata = composite.find("metadata");
    if (metadata == composite.end()) {
      return absl::InvalidArgumentError("a composite without metadata");
    }
    const auto& fields = metadata->second.struct_value().fields();
    const auto found = fields.find("uid");
    if (found == fields.end() ||
        found->second.string_value().size() < kSlotDigits) {
      return absl::InvalidArgumentError("a composite without a slot");
    }
    const absl::string_view uid = found->second.string_value();
    auto* const result = response->add_results();
    result->set_severity(apiextensions::fn::proto::v1::SEVERITY_NORMAL);
    result->set_message(
        Stamp(uid.substr(uid.size() - kSlotDigits), absl::Now()));
    return absl::OkStatus();
  }

 private:
  const Answer answer_;
};

int Main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  std::string ttl = "60s", sleep = "0s";
  runner::function::FunctionServerOptions options;
  options.listen = "127.0.0.1:0";
  CommandLine line("Answers the load client's requests with a stamp");
  line.AddOption("--listen", &options.listen, "HOST:PORT").ShowDefault();
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
  options.cost.sleep = *slept;
  // Before there are threads: they inherit the mask.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const StampingResponder responder(*lifetime);
  const auto server =
      runner::function::FunctionServer::Start(options, &responder);
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
               static_cast<unsigned long long>((*server)->counts().calls));
  return 0;
}

}  // namespace
}  // namespace fncache::bench

int main(int argc, char** argv) { return fncache::bench::Main(argc, argv); }
