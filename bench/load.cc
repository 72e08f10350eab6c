// SPDX-License-Identifier: Apache-2.0
// `load`: the benchmark's load client. See `load --help`.
//
// The engine is that of `fncache load --request` (runner/load/raw_load.h). This
// program adds what a benchmark needs besides: requests that it makes itself, a
// key of its own for each call, a check of every answer, the CPU time of the
// server, and one line of JSON.
#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "bench/answer_check.h"
#include "bench/load_workload.h"
#include "bench/process_cpu.h"
#include "bench/random.h"
#include "bench/request_encoding.h"
#include "bench/request_generator.h"
#include "bench/stamp.h"
#include "common/command_line.h"
#include "common/duration.h"
#include "common/file.h"
#include "http2/slice.h"
#include "proto/function_v1.pb.h"
#include "runner/load/measure.h"
#include "runner/load/raw_load.h"
#include "runner/load/results.h"
#include "runner/load/schedule.h"

namespace fncache::bench {
namespace {

using runner::load::Outcome;

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr size_t kMaxResponse = size_t{64} << 20;
constexpr uint64_t kSeed = 1;
// Open loop: calls at once at most.
constexpr uint64_t kMostOutstanding = 1000;
// A run ends after this number of errors.
constexpr uint64_t kTooManyErrors = 100;
// The first answers are sampled, then one of as many.
constexpr uint64_t kSampled = 64;
constexpr uint64_t kMostZipfKeys = 1'000'000;

constexpr char kFooter[] = R"(
Closed loop: --streams calls at once on each of --connections connections.
Open loop: --rate calls a second in all. A call's latency counts from when it
was due, also if it had to wait for one of 1,000 others to end.

Every answer is checked: status 0, one message of the announced length, with
--expect-response a body of that length. The first 64 answers, then one of 64,
are compared with it byte for byte but for meta, and a hit must have its
caller's tag.

With --stamped, the answers are those of stamping_function. Each must have the
stamp of its call's key, and must have been made within that time before the
call, and not before --not-before.

Server CPU is the user and system time of the processes between the ends of the
measured window.

Exit codes: 0 when all answers were right; 1 when any was not, or the run could
not be made; 2 for options that do not fit.)";

struct Command {
  std::vector<std::string> targets, pids;
  std::string shape = "17k", response = "13k";
  std::string duration = "5s", warmup = "0s", patience = "20s", ttl = "1h";
  std::string expect_response, write_request, write_response;
  std::string stamped = "0s";
  uint64_t connections = 1, streams = 1, rate = 0, calls = 0;
  uint64_t keys = 64, first_key = 0, first_drift = 0, seed = kSeed;
  uint64_t not_before = 0;
  bool sequential = false, zipf = false, drift = false;
};

int Complain(absl::string_view message, int code) {
  std::fprintf(stderr, "load: %s\n", std::string(message).c_str());
  return code;
}

std::string WhyNoDuration(const std::string& text) {
  const auto duration = ParseGoDuration(text);
  if (duration.ok() && *duration >= absl::ZeroDuration()) return "";
  return absl::StrCat("accepted: ", kDurationForm);
}

// The exit code, if there is nothing else to do.
absl::optional<int> Parse(int argc, char** argv, Command* to) {
  CommandLine line(
      "Puts load on a server of the function protocol and prints one JSON\n"
      "object about it.",
      "load");
  const auto option = [&](const char* name, auto* target, const char* type,
                          const char* help) {
    return line.AddOption(name, target, help).TypeName(type);
  };
  const auto duration = [&](const char* name, std::string* target,
                            const char* help) {
    option(name, target, "DURATION", help).ShowDefault().Check(&WhyNoDuration);
  };
  const auto number = [&](const char* name, uint64_t* target, uint64_t least,
                          uint64_t most, const char* help) {
    const auto why_not = [=](const std::string& given) -> std::string {
      uint64_t value = 0;
      const bool whole = absl::SimpleAtoi(given, &value);
      if (whole && value >= least && value <= most) return "";
      return absl::StrCat("accepted: a whole number from ", least, " to ",
                          most);
    };
    option(name, target, "N", help).ShowDefault().Check(why_not);
  };
  option("--target", &to->targets, "HOST:PORT",
         "Where a server listens. Connections use repeated ones round robin")
      .Repeats();
  number("--connections", &to->connections, 1, 50000, "How many connections");
  number("--streams", &to->streams, 1, 10000,
         "Closed loop: calls at once on each of them");
  number("--rate", &to->rate, 0, 10'000'000,
         "Open loop: calls a second in all. 0: closed loop");
  duration("--warmup", &to->warmup, "Load before the measured window");
  duration("--duration", &to->duration, "The measured window");
  number("--calls", &to->calls, 0, UINT64_MAX,
         "The measured window in calls. 0: by --duration");
  duration("--patience", &to->patience, "How long a call may take");
  option("--server-pid", &to->pids, "PID",
         "Measure the CPU time of this process too")
      .Repeats();
  option("--shape", &to->shape, "SHAPE", "small, 4k, 17k, 130k or 1m")
      .ShowDefault()
      .OneOf({"small", "4k", "17k", "130k", "1m"});
  number("--keys", &to->keys, 1, UINT64_MAX, "How many keys to ask for");
  number("--first-key", &to->first_key, 0, UINT64_MAX, "The first of them");
  line.AddFlag("--sequential", &to->sequential,
               "Ask for them in order. Default: at random");
  line.AddFlag("--zipf", &to->zipf,
               "Ask for key number K (from 1) 1/K times as often as for the "
               "first one");
  number("--seed", &to->seed, 0, UINT64_MAX, "Decides what is random");
  line.AddFlag("--drift", &to->drift,
               "Each call has a drift of its own: a version and a time");
  number("--first-drift", &to->first_drift, 0, UINT64_MAX,
         "With --drift: the first of them");
  option("--expect-response", &to->expect_response, "FILE",
         "The message that every answer must be, but for meta");
  duration("--stamped", &to->stamped,
           "Check stamps: the longest lifetime of an answer. 0s: no check");
  number("--not-before", &to->not_before, 0, INT64_MAX,
         "With --stamped: the least time of a stamp, in Unix nanoseconds");
  option("--write-request", &to->write_request, "FILE",
         "Write the request of --first-key as one gRPC message");
  option("--write-response", &to->write_response, "FILE",
         "Write an answer, without a gRPC prefix");
  option("--response", &to->response, "SHAPE", "Of the answer: 13k or small")
      .ShowDefault()
      .OneOf({"13k", "small"});
  duration("--ttl", &to->ttl, "Of the answer");
  line.Footer(kFooter);
  switch (line.Parse(argc, argv)) {
    case CommandLine::Outcome::kHelp:
      std::fputs(line.Help().c_str(), stdout);
      return 0;
    case CommandLine::Outcome::kError:
      return Complain(line.error(), kUsage);
    case CommandLine::Outcome::kParsed:
      break;
  }
  if (to->targets.empty() && to->write_request.empty() &&
      to->write_response.empty()) {
    return Complain("--target: needed, as HOST:PORT", kUsage);
  }
  if (to->drift && !HasDrift(ShapeOf(to->shape).value())) {
    return Complain("--drift: accepted with --shape 17k, 130k or 1m", kUsage);
  }
  if (to->zipf && (to->sequential || to->keys > kMostZipfKeys)) {
    return Complain(absl::StrCat("--zipf: accepted without --sequential, for "
                                 "at most ",
                                 kMostZipfKeys, " keys"),
                    kUsage);
  }
  return absl::nullopt;
}

absl::Duration Parsed(const std::string& duration) {
  return ParseGoDuration(duration).value();
}

// One megabyte in as many encodings would be half a gigabyte.
WorkloadOptions Messages(const Command& command) {
  WorkloadOptions options;
  options.shape = ShapeOf(command.shape).value();
  options.seed = kSeed;
  options.orders = options.shape == Shape::k1M     ? 1
                   : options.shape == Shape::k130K ? 4
                                                   : 8;
  return options;
}

// The drift of call number `n`. Absent: the request's own.
absl::optional<uint64_t> DriftOf(const Command& command, uint64_t n) {
  if (!command.drift) return absl::nullopt;
  return command.first_drift + n;
}

absl::Status WriteFiles(const Command& command) {
  absl::Status status;
  if (!command.write_request.empty()) {
    WorkloadOptions one = Messages(command);
    one.orders = 1;
    Random random(kSeed);
    status = WriteTextFile(
        command.write_request,
        Workload(one).Framed(command.first_key, DriftOf(command, 0), &random));
  }
  if (!command.write_response.empty()) {
    status.Update(WriteTextFile(
        command.write_response,
        EncodeShuffled(MakeAnswer(AnswerShapeOf(command.response).value(),
                                  kSeed, Parsed(command.ttl)),
                       kSeed)));
  }
  return status;
}

// The requests and the failures of a run. All its calls use it.
struct Run {
  explicit Run(const Command& command)
      : command(command),
        workload(Messages(command)),
        lifetime(Parsed(command.stamped)),
        random(command.seed) {
    if (command.zipf) zipf.emplace(command.keys);
  }

  uint64_t KeyOf(uint64_t n) {
    const uint64_t keys = command.keys;
    return command.first_key + (command.sequential ? n % keys
                                : zipf.has_value() ? zipf->Pick(&random)
                                                   : random.Below(keys));
  }

  const Command& command;
  const Workload workload;
  const absl::Duration lifetime;  // of answers with stamps; zero = others
  absl::optional<Zipf> zipf;
  absl::optional<std::string> body;  // of every answer
  Random random;
  void Fail(const std::string& why, uint64_t times = 1) {
    failed += times;
    failures[why] += times;
  }

  uint64_t begun = 0;
  uint64_t failed = 0;
  std::map<std::string, uint64_t> failures;  // why, and how often
  bool lost = false;                         // a server, or its answers
};

class Call final : public runner::load::RawCall {
 public:
  explicit Call(Run* run) : run_(*run) {}

  absl::Span<http2::Slice> Begin() override {
    const uint64_t n = run_.begun++;
    key_ = run_.KeyOf(n);
    const bool stamped = run_.lifetime > absl::ZeroDuration();
    answer_.Reset(stamped || n < kSampled || n % kSampled == 0);
    if (stamped) {
      least_ = std::max(
          absl::FromUnixNanos(static_cast<int64_t>(run_.command.not_before)),
          absl::Now() - run_.lifetime);
    }
    body_ = run_.workload.Message(key_, DriftOf(run_.command, n), &run_.random,
                                  &slots_);
    return absl::MakeSpan(body_);
  }

  void OnBody(absl::string_view bytes) override { answer_.OnData(bytes); }

  std::string End(std::string error, Outcome outcome) override {
    if (error.empty()) {
      // A function answers with a tag of its own, a cache with the caller's.
      absl::optional<std::string> tag;
      if (answer_.sampled() &&
          (outcome == Outcome::kHit || outcome == Outcome::kStaleHit ||
           outcome == Outcome::kCollapsed)) {
        tag = run_.workload.TagOf(key_);
      }
      absl::Status status = answer_.Check(run_.body, tag);
      if (status.ok() && run_.lifetime > absl::ZeroDuration()) {
        status = CheckStamp(answer_.message(), key_, least_);
      }
      error = std::string(status.message());
    }
    if (!error.empty()) run_.Fail(error);
    return error;
  }

 private:
  Run& run_;
  uint64_t key_ = 0;
  absl::Time least_;  // of the stamp
  Workload::Slots slots_;
  Workload::Slices body_;
  AnswerCheck answer_;
};

// The CPU time that servers have used, in nanoseconds.
absl::StatusOr<int64_t> ServerCpu(const Command& command) {
  int64_t sum = 0;
  for (const std::string& text : command.pids) {
    pid_t pid = 0;
    const auto cpu = ProcessCpu(absl::SimpleAtoi(text, &pid) ? pid : 0);
    if (!cpu.ok()) return cpu.status();
    sum += *cpu;
  }
  return sum;
}

std::string Report(const runner::load::LoadResults& results, uint64_t calls,
                   uint64_t errors, int64_t server_cpu) {
  const auto& latency = results.pipelines.latency;
  std::map<std::string, uint64_t> outcomes;
  for (const auto& one : results.calls) outcomes[one.outcome] += one.count;
  const auto member = [](std::string* to, const auto& outcome) {
    absl::StrAppend(to, "\"", outcome.first, "\": ", outcome.second);
  };
  const double each = 1.0 / static_cast<double>(std::max<uint64_t>(calls, 1));
  return absl::StrFormat(
      R"({"calls": %d, "errors": %d, "seconds": %.6f, "rate": %.2f, )"
      R"("latency_us": {"p50": %.3f, "p90": %.3f, "p99": %.3f, )"
      R"("p99.9": %.3f, "max": %.3f, "mean": %.3f}, "cache_status": {%s}, )"
      R"("server_cpu_us_per_call": %.4f, "client_cpu_us_per_call": %.4f})",
      calls, errors, results.duration,
      static_cast<double>(calls) / std::max(results.duration, 1e-9),
      latency.p50 * 1e6, latency.p90 * 1e6, latency.p99 * 1e6,
      latency.p999 * 1e6, latency.max * 1e6, latency.mean * 1e6,
      absl::StrJoin(outcomes, ", ", member),
      static_cast<double>(server_cpu) / 1e3 * each,
      results.generator.cpu * results.duration * 1e6 * each);
}

int Load(const Command& command) {
  Run run(command);
  if (!command.expect_response.empty()) {
    const auto message = ReadSmallFile(command.expect_response, kMaxResponse);
    if (!message.ok()) return Complain(message.status().message(), kFailed);
    const auto meta = MetaBytes(*message);
    if (!meta.ok() || *meta > message->size()) {
      return Complain(absl::StrCat(command.expect_response, ": no answer"),
                      kFailed);
    }
    run.body = message->substr(*meta);
  }

  runner::load::RawOptions options;
  options.targets = command.targets;
  options.make_call = [&run] { return std::make_unique<Call>(&run); };
  options.connections = static_cast<int>(command.connections);
  options.concurrency = options.connections * static_cast<int>(command.streams);
  options.steady = options.wait_when_full = true;
  absl::optional<runner::load::Schedule> schedule;
  if (command.rate > 0) {
    options.schedule = &schedule.emplace(static_cast<double>(command.rate));
  }
  options.max_in_flight = kMostOutstanding;
  options.total = command.calls;
  options.warmup = Parsed(command.warmup);
  options.duration =
      command.calls > 0 ? absl::InfiniteDuration() : Parsed(command.duration);
  options.timeout = Parsed(command.patience);
  options.stop = [&run] { return run.lost || run.failed >= kTooManyErrors; };
  options.on_lost = [&run](const std::string& why) {
    run.lost = true;
    run.Fail(absl::StrCat("connection lost: ", why));
  };
  absl::StatusOr<int64_t> before = ServerCpu(command), after = 0;
  if (!before.ok()) return Complain(before.status().message(), kFailed);
  options.on_start = [&] { before = ServerCpu(command); };
  options.on_end = [&] { after = ServerCpu(command); };

  runner::load::Measure measure;
  absl::Status status = RunRawLoad(options, &measure);
  status.Update(before.status());
  status.Update(after.status());
  if (!status.ok()) return Complain(status.message(), kFailed);
  runner::load::LoadResults results;
  measure.Fill(&results);
  // Errors of connections are among these, too.
  for (const auto& error : results.errors) {
    if (run.failures.count(error.message) == 0) {
      run.Fail(error.message, error.count);
    }
  }
  const uint64_t calls = results.pipelines.count - results.pipelines.errors;
  std::printf("%s\n",
              Report(results, calls, run.failed, *after - *before).c_str());
  for (const auto& [why, count] : run.failures) {
    Complain(absl::StrCat(count, " of ", run.begun, " calls: ", why), kFailed);
  }
  if (run.failed > 0) return kFailed;
  if (calls == 0) {
    return Complain("no call ended in the measured window", kFailed);
  }
  return 0;
}

int Main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  Command command;
  const absl::optional<int> code = Parse(argc, argv, &command);
  if (code.has_value()) return *code;
  const absl::Status status = WriteFiles(command);
  if (!status.ok()) return Complain(status.message(), kFailed);
  return command.targets.empty() ? 0 : Load(command);
}

}  // namespace
}  // namespace fncache::bench

int main(int argc, char** argv) { return fncache::bench::Main(argc, argv); }
