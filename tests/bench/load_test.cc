// SPDX-License-Identifier: Apache-2.0
// `load` as people run it: a real process against real servers.
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/process_cpu.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/deaf_server.h"
#include "tests/common/eventually.h"
#include "tests/integration/process.h"
#include "tests/proxy/serving/scripted.h"

namespace fncache::bench {
namespace {

using ::fncache::testing::DeafServer;
using ::fncache::testing::Process;
using ::fncache::testing::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Arguments = std::vector<std::string>;

std::unique_ptr<Process> Start(const char* program, Arguments arguments) {
  return std::make_unique<Process>(
      std::move(arguments), Process::Environment{},
      absl::StrCat(FNCACHE_BENCH_PROGRAMS, "/", program));
}

struct Ended {
  int code;
  std::string out;
  std::string err;
};

Ended End(Process* process) {
  Ended ended;
  ended.code = process->Wait();
  ended.out = process->Stdout();
  ended.err = process->Stderr();
  return ended;
}

Ended Load(Arguments arguments) {
  return End(Start("load", std::move(arguments)).get());
}

// The number behind `"name": ` in a report; -1 if there is none.
double Number(const std::string& report, const std::string& name) {
  const std::string key = absl::StrCat("\"", name, "\": ");
  const size_t at = report.find(key);
  if (at == std::string::npos) return -1;
  const size_t start = at + key.size();
  double value = -1;
  if (!absl::SimpleAtod(
          report.substr(start, report.find_first_of(",}", start) - start),
          &value)) {
    return -1;
  }
  return value;
}

class LoadTest : public ::testing::Test {
 protected:
  LoadTest() {
    EXPECT_EQ(Load({"--write-response", answer_}).code, 0);
    EXPECT_EQ(Load({"--write-response", small_, "--response", "small"}).code,
              0);
  }

  // The instant function, answering with the bytes of `file`.
  std::string StartLimit(const std::string& file) {
    limit_ =
        Start("limit_server", {"--listen", "127.0.0.1:0", "--response", file});
    EXPECT_TRUE(limit_->WaitForStderr("listening on "));
    return limit_->Listening().at(0);
  }

  // The daemon in front of the function at `upstream`.
  std::string StartDaemon(const std::string& upstream,
                          const Arguments& more = {}) {
    Arguments arguments = {"serve",   "--insecure", "--listen",   "127.0.0.1:0",
                           "--admin", "",           "--upstream", upstream};
    arguments.insert(arguments.end(), more.begin(), more.end());
    daemon_ = std::make_unique<Process>(arguments);
    EXPECT_TRUE(daemon_->WaitForStderr("listening on "));
    return daemon_->Listening().at(0);
  }

  // Blocks until the server has worked for what some `calls` calls take.
  void WaitForWork(int calls) const {
#if defined(FNCACHE_ASAN) || defined(FNCACHE_TSAN)
    constexpr int64_t kCallNanos = 200'000;
#else
    constexpr int64_t kCallNanos = 20'000;
#endif
    const int64_t start = ProcessCpu(limit_->pid()).value();
    const absl::Time until = absl::Now() + ::fncache::testing::kPatience;
    while (ProcessCpu(limit_->pid()).value() - start < calls * kCallNanos) {
      ASSERT_LT(absl::Now(), until);
      // Yielding all the time it would wait longest where others work.
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  TempDir dir_;
  const std::string answer_ = dir_.path() + "/answer.bin";
  const std::string small_ = dir_.path() + "/small.bin";
  std::unique_ptr<Process> limit_;
  std::unique_ptr<Process> daemon_;
};

TEST_F(LoadTest, ARightServerPassesAndIsMeasured) {
  const std::string target = StartLimit(answer_);
  const Ended ended =
      Load({"--target", target, "--shape", "17k", "--connections", "3",
            "--streams", "5", "--calls", "1000", "--expect-response", answer_,
            "--server-pid", absl::StrCat(limit_->pid())});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
  EXPECT_EQ(Number(ended.out, "calls"), 1000);
  EXPECT_EQ(Number(ended.out, "errors"), 0);
  EXPECT_GT(Number(ended.out, "rate"), 0);
  EXPECT_GT(Number(ended.out, "p50"), 0);
  EXPECT_GE(Number(ended.out, "p99.9"), Number(ended.out, "p50"));
  EXPECT_EQ(Number(ended.out, "none"), 1000);
  EXPECT_GT(Number(ended.out, "server_cpu_us_per_call"), 0);
  EXPECT_GT(Number(ended.out, "client_cpu_us_per_call"), 0);
}

TEST_F(LoadTest, WrongBytesFail) {
  // The same length, another byte.
  std::ifstream in(answer_, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const size_t at = bytes.rfind("bucket-");
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 'B';
  const std::string wrong = dir_.path() + "/wrong.bin";
  std::ofstream(wrong, std::ios::binary) << bytes;
  const std::string target = StartLimit(wrong);

  Ended ended = Load({"--target", target, "--shape", "small", "--calls", "50",
                      "--expect-response", answer_});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err,
              HasSubstr("50 of 50 calls: an answer with other bytes"));
  EXPECT_EQ(Number(ended.out, "errors"), 50);
  EXPECT_EQ(Number(ended.out, "calls"), 0);

  // Another length: found in every answer, also in those that are not sampled.
  ended = Load({"--target", target, "--shape", "small", "--calls", "90",
                "--expect-response", small_});
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(Number(ended.out, "errors"), 90);
}

TEST_F(LoadTest, ARunWithManyErrorsEnds) {
  const std::string target = StartLimit(answer_);
  const absl::Time began = absl::Now();
  const Ended ended =
      Load({"--target", target, "--shape", "small", "--streams", "64",
            "--duration", "60s", "--expect-response", small_});
  EXPECT_EQ(ended.code, 1);
  EXPECT_LT(absl::Now() - began, absl::Seconds(50));
  EXPECT_THAT(ended.err, HasSubstr("its body should have"));
}

// Through the real daemon: each key misses once and hits ever after, with the
// tag of its caller, in whatever order its maps come.
TEST_F(LoadTest, TheDaemonsMissesAndHitsAreReported) {
  for (const char* key : {"content", "tag"}) {
    SCOPED_TRACE(key);
    const std::string target = StartDaemon(StartLimit(answer_), {"--key", key});
    const auto calls = [&](const char* keys, const char* count,
                           Arguments more) {
      Arguments all = {
          "--target", target, "--shape",           "4k",    "--keys",    keys,
          "--calls",  count,  "--expect-response", answer_, "--streams", "10"};
      all.insert(all.end(), more.begin(), more.end());
      const Ended ended = Load(all);
      EXPECT_EQ(ended.code, 0) << ended.err;
      return ended.out;
    };
    EXPECT_EQ(Number(calls("100", "100", {"--sequential"}), "miss"), 100);
    EXPECT_EQ(Number(calls("100", "1000", {}), "hit"), 1000);
    // New keys are misses again.
    EXPECT_EQ(
        Number(calls("100", "100", {"--sequential", "--first-key", "100"}),
               "miss"),
        100);
    EXPECT_EQ(Number(calls("200", "200", {"--sequential"}), "hit"), 200);
  }
}

// The daemon is asked for one key with other drift each time: all are misses,
// until they are hits across drift.
TEST_F(LoadTest, DriftIsAnotherOneInEachCall) {
  const std::string upstream = StartLimit(answer_);
  const auto calls = [&](const std::string& target, const char* first) {
    const Ended ended =
        Load({"--target", target, "--keys", "1", "--calls", "50", "--drift",
              "--first-drift", first, "--expect-response", answer_});
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ended.out;
  };
  std::string target = StartDaemon(upstream);
  EXPECT_EQ(Number(calls(target, "0"), "miss"), 50);
  EXPECT_EQ(Number(calls(target, "0"), "hit"), 50);
  EXPECT_EQ(Number(calls(target, "40"), "hit"), 10);
  target = StartDaemon(upstream, {"--tune", "on"});
  const absl::Time until = absl::Now() + ::fncache::testing::kPatience;
  for (int first = 0;
       Number(calls(target, absl::StrCat(first).c_str()), "hit") < 50;
       first += 50) {
    ASSERT_LT(absl::Now(), until);
  }
  target = StartDaemon(upstream, {"--tune", "on", "--tune-share", "0"});
  EXPECT_EQ(Number(calls(target, "0"), "miss"), 50);
  EXPECT_EQ(Number(calls(target, "50"), "miss"), 50);
}

TEST_F(LoadTest, ConnectionsAreSpreadOverTargets) {
  const std::string upstream = StartLimit(answer_);
  const std::string first = StartDaemon(upstream);
  const std::unique_ptr<Process> first_daemon = std::move(daemon_);
  const std::string second = StartDaemon(upstream);
  // The same key, once with each.
  const Ended ended =
      Load({"--target", first, "--target", second, "--connections", "2",
            "--keys", "1", "--calls", "2", "--shape", "small"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(Number(ended.out, "miss"), 2);
}

TEST_F(LoadTest, StampsShowWhatAnAnswerIsFor) {
  const auto function = Start("stamping_function", {"--ttl", "1h"});
  ASSERT_TRUE(function->WaitForStderr("listening on "));
  const std::string daemon = StartDaemon(function->Listening().at(0));
  const auto ask = [](const std::string& target, Arguments more) {
    more.insert(more.end(), {"--target", target, "--shape", "4k", "--keys",
                             "20", "--zipf", "--calls", "200"});
    return Load(std::move(more));
  };
  Ended ended = ask(daemon, {"--stamped", "1h", "--seed", "7"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_GT(Number(ended.out, "hit"), 0);
  // These answers were made before.
  ended = ask(daemon, {"--stamped", "1h", "--seed", "7", "--not-before",
                       absl::StrCat(absl::GetCurrentTimeNanos())});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("an answer that is too old"));
  ended = ask(StartLimit(answer_), {"--stamped", "1h"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("an answer without a stamp"));
  function->Signal(SIGTERM);
  EXPECT_EQ(function->Wait(), 0);
  EXPECT_THAT(function->Stderr(), HasSubstr("stopped runs="));
}

// The server is stopped for a while in the middle of an open loop: all calls
// that were due meanwhile must show it, also those that had to wait.
TEST_F(LoadTest, AnOpenLoopCountsFromTheDueTime) {
  const std::string target = StartLimit(answer_);
  // The first connection costs the server some work once, which is not
  // measured.
  ASSERT_EQ(Load({"--target", target, "--shape", "small", "--calls", "1"}).code,
            0);
  const auto load = Start("load", {"--target", target, "--shape", "small",
                                   "--rate", "5000", "--calls", "7500"});
  // For half a second of 1.5, somewhere within. 2,500 calls are due then, of
  // which the client begins 1,000.
  WaitForWork(500);
  limit_->Signal(SIGSTOP);
  absl::SleepFor(absl::Milliseconds(500));
  limit_->Signal(SIGCONT);
  const Ended ended = End(load.get());
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(Number(ended.out, "calls"), 7500);
  // 2,500 calls of 7,500 took up to 500 ms, and half of it on average.
  EXPECT_GT(Number(ended.out, "p90"), 200'000);
  EXPECT_GT(Number(ended.out, "p99"), 400'000);
  // The client sleeps while calls wait: half a second of a core would be 67 us.
  EXPECT_LT(Number(ended.out, "client_cpu_us_per_call"), 60);
}

TEST_F(LoadTest, AnOpenLoopKeepsItsRate) {
  const std::string target = StartLimit(answer_);
  const Ended ended =
      Load({"--target", target, "--shape", "small", "--rate", "1000",
            "--warmup", "200ms", "--duration", "1s", "--connections", "2"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NEAR(Number(ended.out, "calls"), 1000, 1);
}

// A call without an answer within --patience ends the run.
TEST_F(LoadTest, AServerThatDoesNotReadIsGivenUp) {
  const DeafServer server;
  const Ended ended =
      Load({"--target", server.target(), "--shape", "1m", "--streams", "64",
            "--patience", "500ms", "--duration", "1s"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err,
              HasSubstr("calls: connection lost: no answer in time"));
}

TEST_F(LoadTest, CallsThatOutliveTheDurationAreWaitedForAndDoNotCount) {
  // The third call follows an answer within the duration, for which a busy
  // machine may need a longer one.
  for (absl::Duration duration = absl::Milliseconds(500);
       duration < absl::Seconds(10); duration *= 2) {
    proxy::serving::ScriptedFunction function;
    const auto load = Start(
        "load", {"--target", function.target(), "--shape", "small", "--streams",
                 "2", "--duration", absl::FormatDuration(duration)});
    const auto first = function.Next(), second = function.Next();
    ASSERT_NE(first, nullptr);
    ASSERT_NE(second, nullptr);
    first->Answer("");
    if (!Eventually([&] { return function.calls() == 3; }, duration)) continue;
    const auto third = function.Next();
    ASSERT_NE(third, nullptr);
    // The duration has begun before these calls.
    absl::SleepFor(2 * duration);
    second->Answer("");
    third->Answer("");
    const Ended ended = End(load.get());
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(Number(ended.out, "calls"), 1);
    if (Number(ended.out, "seconds") < 1.8 * absl::ToDoubleSeconds(duration)) {
      return;
    }
  }
  FAIL() << "the time of calls beyond the duration counts";
}

// Two of eight calls at once fail, and no other is ever answered.
TEST_F(LoadTest, EveryKindOfFailureIsReported) {
  proxy::serving::ScriptedFunction function;
  const auto load =
      Start("load", {"--target", function.target(), "--shape", "small",
                     "--streams", "8", "--patience", "3s", "--duration", "1s"});
  for (int i = 0; i < 2; ++i) {
    const proxy::serving::FunctionCallPtr call = function.Next();
    ASSERT_NE(call, nullptr);
    call->Fail(grpc::Status(grpc::StatusCode::ABORTED, "no more of this"));
  }
  const Ended ended = End(load.get());
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err,
              AllOf(HasSubstr("2 of 10 calls: gRPC status 10"),
                    HasSubstr("no more of this"),
                    HasSubstr("connection lost: no answer in time")));
}

TEST_F(LoadTest, NoServerIsAnErrorInWords) {
  const Ended ended = Load({"--target", "127.0.0.1:1", "--shape", "small"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, StartsWith("load: cannot connect to 127.0.0.1:1"));
}

TEST_F(LoadTest, ALostServerIsAnErrorInWords) {
  const std::string target = StartLimit(answer_);
  const auto load = Start("load", {"--target", target, "--shape", "small",
                                   "--rate", "100", "--duration", "60s"});
  WaitForWork(10);
  limit_->Signal(SIGKILL);
  const Ended ended = End(load.get());
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, AllOf(HasSubstr(target), Not(HasSubstr("{"))));
}

TEST_F(LoadTest, UsageErrorsExitWith2) {
  for (const Arguments& arguments : std::vector<Arguments>{
           {"--connections", "0"},  {"--connections", "50001"},
           {"--streams", "0"},      {"--streams", "-1"},
           {"--rate", "-1"},        {"--rate", "0.5"},
           {"--rate", "x"},         {"--calls", "-1"},
           {"--duration", "5"},     {"--warmup", "-1s"},
           {"--patience", "soon"},  {"--shape", "5k"},
           {"--keys", "0"},         {"--keys", "1.5"},
           {"--first-key", "-1"},   {"--drift", "--shape", "4k"},
           {"--first-drift", "-1"}, {"--zipf", "--sequential"},
           {"--stamped", "soon"},   {"--response", "4k"},
           {"--ttl", "soon"}}) {
    Arguments all = arguments;
    all.insert(all.end(), {"--target", "127.0.0.1:1"});
    const Ended ended = Load(all);
    EXPECT_EQ(ended.code, 2) << arguments[1];
    EXPECT_THAT(ended.err,
                AllOf(StartsWith("load: "), HasSubstr(arguments[0])));
    EXPECT_EQ(ended.out, "");
  }
  EXPECT_THAT(Load({}).err, StartsWith("load: --target: needed"));
  EXPECT_THAT(Load({"--targets", "a:1"}).err, HasSubstr("--targets"));
  Ended ended = Load({"--target", "127.0.0.1:1", "--server-pid", "0"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("there is no process"));
  ended = Load({"--help"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.out, HasSubstr("--expect-response"));
  ended = Load({"--write-request", dir_.path() + "/no/such/folder"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("cannot write"));
}

TEST_F(LoadTest, AWrittenRequestIsTheKeysOwn) {
  const std::string file = dir_.path() + "/framed.bin";
  ASSERT_EQ(
      Load({"--write-request", file, "--shape", "4k", "--first-key", "255"})
          .code,
      0);
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  ASSERT_GT(bytes.size(), 4000u);
  EXPECT_EQ(bytes[0], 0);
  EXPECT_EQ(static_cast<size_t>(static_cast<unsigned char>(bytes[3])) * 256 +
                static_cast<unsigned char>(bytes[4]),
            bytes.size() - 5);
  EXPECT_THAT(bytes, HasSubstr("00000000000000ff"));
}

}  // namespace
}  // namespace fncache::bench
