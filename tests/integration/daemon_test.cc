// SPDX-License-Identifier: Apache-2.0
// The life of the daemon as people run it: starts that work, starts that must
// not, restarts over the same directory, graceful stops.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/mutex.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "proto/function_v1.pb.h"
#include "tests/common/deaf_server.h"
#include "tests/common/eventually.h"
#include "tests/common/long_form.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

using apiextensions::fn::proto::v1::FunctionRunnerService;
using apiextensions::fn::proto::v1::RunFunctionRequest;
using apiextensions::fn::proto::v1::RunFunctionResponse;

// Waits until a sample of the daemon's metrics is at least `value`.
::testing::AssertionResult Reaches(const std::string& admin,
                                   const std::string& name, double value) {
  const absl::Time until = absl::Now() + kPatience;
  double last = -1;
  while (absl::Now() < until) {
    last = Sample(HttpGet(admin, "/metrics"), name);
    if (last >= value) return ::testing::AssertionSuccess();
    std::this_thread::yield();
  }
  return ::testing::AssertionFailure() << name << " is " << last;
}

std::unique_ptr<FunctionRunnerService::Stub> StubFor(const std::string& at) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return FunctionRunnerService::NewStub(grpc::CreateCustomChannel(
      at, grpc::InsecureChannelCredentials(), arguments));
}

struct Answer {
  grpc::Status status;
  RunFunctionResponse response;
  std::string cache_status;
};

Answer Call(FunctionRunnerService::Stub* stub, const std::string& name,
            absl::Duration timeout = kPatience, bool wait = true) {
  RunFunctionRequest request;
  request.mutable_meta()->set_tag("tag of " + name);
  auto& fields = *request.mutable_observed()
                      ->mutable_composite()
                      ->mutable_resource()
                      ->mutable_fields();
  fields["kind"].set_string_value("XR");
  (*fields["metadata"].mutable_struct_value()->mutable_fields())["name"]
      .set_string_value(name);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  context.set_wait_for_ready(wait);
  Answer answer;
  answer.status = stub->RunFunction(&context, request, &answer.response);
  const auto found = context.GetServerInitialMetadata().find("cache-status");
  if (found != context.GetServerInitialMetadata().end()) {
    answer.cache_status.assign(found->second.data(), found->second.size());
  }
  return answer;
}

class DaemonTest : public ::testing::Test {
 protected:
  // A function behind the daemon, with more arguments.
  void StartFunction(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {
        "function", "--listen", "127.0.0.1:0", "--insecure", "--ttl", "1h"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    function_ = std::make_unique<Process>(arguments);
    ASSERT_TRUE(function_->WaitForStderr("listening on "));
  }

  std::vector<std::string> Arguments(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {
        "serve",   "--insecure",  "--listen",   "127.0.0.1:0",
        "--admin", "127.0.0.1:0", "--upstream", function_->Listening().at(0)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // A daemon that listens; its function address and admin address are set.
  std::unique_ptr<Process> StartDaemon(std::vector<std::string> more = {}) {
    auto daemon = std::make_unique<Process>(Arguments(std::move(more)));
    EXPECT_TRUE(daemon->WaitForStderr("listening on ", 2));
    for (const std::string& address : daemon->Listening()) {
      int status = 0;
      HttpGet(address, "/healthz", &status);
      (status == 200 ? admin_ : address_) = address;
    }
    stub_ = StubFor(address_);
    return daemon;
  }

  std::unique_ptr<Process> function_;
  std::string address_;
  std::string admin_;
  std::unique_ptr<FunctionRunnerService::Stub> stub_;
};

TEST_F(DaemonTest, RestartAfterKillServesHitsAtOnce) {
  StartFunction();
  TempDir dir;
  const std::vector<std::string> disk = {"--cache-dir", dir.path() + "/cache",
                                         "--generation", "g1"};
  auto daemon = StartDaemon(disk);
  for (int i = 0; i < 20; ++i) {
    const Answer answer = Call(stub_.get(), absl::StrCat("xr-", i));
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    EXPECT_EQ(answer.cache_status, "fncache; fwd=miss; stored; detail=new");
  }
  ASSERT_TRUE(Reaches(admin_, "fncache_tier_entries{tier=\"disk\"}", 20));
  daemon->Signal(SIGKILL);
  EXPECT_EQ(daemon->Wait(), 128 + SIGKILL);

  daemon = StartDaemon(disk);
  for (int i = 0; i < 20; ++i) {
    const Answer answer = Call(stub_.get(), absl::StrCat("xr-", i));
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    EXPECT_TRUE(absl::StartsWith(answer.cache_status, "fncache; hit; ttl="))
        << answer.cache_status;
    EXPECT_EQ(answer.response.meta().tag(), absl::StrCat("tag of xr-", i));
  }
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->Wait(), 0);

  // Another build of the function does not know those answers; the first one
  // finds them again.
  daemon =
      StartDaemon({"--cache-dir", dir.path() + "/cache", "--generation", "g2"});
  EXPECT_EQ(Call(stub_.get(), "xr-0").cache_status,
            "fncache; fwd=miss; stored; detail=new");
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->Wait(), 0);
  daemon = StartDaemon(disk);
  EXPECT_TRUE(absl::StartsWith(Call(stub_.get(), "xr-0").cache_status,
                               "fncache; hit; ttl="));
}

TEST_F(DaemonTest, SecondProcessOnTheDirectoryWaitsThenGivesUp) {
  StartFunction();
  TempDir dir;
  const std::vector<std::string> disk = {
      "--cache-dir", dir.path(), "--generation", "g", "--drain", "0s"};
  auto daemon = StartDaemon(disk);
  Process second(Arguments(disk));
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_TRUE(absl::StrContains(second.Stderr(), dir.path()))
      << second.Stderr();
  EXPECT_TRUE(second.Listening().empty()) << "it listened before it had the "
                                             "directory";
}

TEST_F(DaemonTest, SuccessorTakesTheDirectoryOver) {
  StartFunction();
  TempDir dir;
  const std::vector<std::string> disk = {"--cache-dir", dir.path(),
                                         "--generation", "g"};
  auto first = StartDaemon(disk);
  ASSERT_TRUE(Call(stub_.get(), "a").status.ok());
  Process second(Arguments(disk));
  first->Signal(SIGTERM);
  EXPECT_EQ(first->Wait(), 0);
  ASSERT_TRUE(second.WaitForStderr("listening on ", 2));
}

// Calls of two functions, by a path and by an abstract name.
TEST_F(DaemonTest, CallersComeOverUnixSockets) {
  StartFunction();
  Process second(
      {"function", "--listen", "127.0.0.1:0", "--insecure", "--ttl", "1h"});
  ASSERT_TRUE(second.WaitForStderr("listening on "));
  const TempDir dir;
  const std::string path = dir.File("f.sock");
  const std::string abstract = absl::StrCat("unix-abstract:", dir.File("g"));
  WriteFile(dir.File("f.yaml"),
            absl::StrCat("functions:\n- {name: f, listen: 'unix:", path,
                         "', upstream: '", function_->Listening().at(0),
                         "'}\n- {name: g, listen: '", abstract,
                         "', upstream: '", second.Listening().at(0), "'}\n"));
  const std::vector<std::string> arguments = {
      "serve",   "--insecure", "--config",       dir.File("f.yaml"),
      "--admin", "",           "--admin-socket", ""};
  // A predecessor that was killed leaves its socket, which is taken over.
  for (const int signal : {SIGKILL, SIGTERM}) {
    Process daemon(arguments);
    ASSERT_TRUE(daemon.WaitForStderr("listening on ", 2));
    EXPECT_EQ(daemon.Listening(),
              (std::vector<std::string>{"unix:" + path, abstract}));
    for (const std::string& target :
         {"unix:" + path, "unix://" + path, abstract}) {
      const auto stub = StubFor(target);
      const Answer first = Call(stub.get(), target);
      EXPECT_TRUE(first.status.ok()) << first.status.error_message();
      EXPECT_EQ(first.response.meta().tag(), "tag of " + target);
      EXPECT_TRUE(absl::StartsWith(Call(stub.get(), target).cache_status,
                                   "fncache; hit; ttl="));
    }
    // A second daemon leaves the socket of a running one alone.
    Process other(arguments);
    EXPECT_EQ(other.Wait(), 1);
    EXPECT_TRUE(absl::StrContains(
        other.Stderr(),
        absl::StrCat("cannot listen on unix:", path,
                     ": the address is in use: another process listens there")))
        << other.Stderr();
    EXPECT_TRUE(Call(StubFor("unix:" + path).get(), "still there").status.ok());
    daemon.Signal(signal);
    EXPECT_EQ(daemon.Wait(), signal == SIGKILL ? 128 + SIGKILL : 0);
    EXPECT_EQ(access(path.c_str(), F_OK) == 0, signal == SIGKILL);
  }
}

TEST_F(DaemonTest, TakenPortEndsTheStartAndIsNamed) {
  StartFunction();
  auto daemon = StartDaemon();
  Process second({"serve", "--insecure", "--listen", address_, "--admin", "",
                  "--upstream", function_->Listening().at(0)});
  EXPECT_EQ(second.Wait(), 1);
  EXPECT_TRUE(absl::StrContains(second.Stderr(), address_)) << second.Stderr();
  Process third({"serve", "--insecure", "--listen", "127.0.0.1:0", "--admin",
                 admin_, "--upstream", function_->Listening().at(0)});
  EXPECT_EQ(third.Wait(), 1);
  EXPECT_TRUE(absl::StrContains(third.Stderr(), admin_)) << third.Stderr();
}

TEST_F(DaemonTest, WrongCommandLinesExitWith2AndNameTheSetting) {
  TempDir dir;
  const struct {
    std::vector<std::string> arguments;
    std::string named;
  } cases[] = {
      {{"serve", "--upstream", "x:1"}, "insecure"},
      {{"serve", "--insecure"}, "upstream"},
      {{"serve", "--insecure", "--upstream", "x:1", "--nonsense", "1"},
       "nonsense"},
      {{"serve", "--insecure", "--upstream", "x:1", "--ttl-max", "soon"},
       "ttl"},
      {{"serve", "--insecure", "--upstream", "x:1", "--ttl-margin", "1.5"},
       "ttl"},
      {{"serve", "--insecure", "--upstream", "x:1", "--mask", "observed"},
       "mask"},
      {{"serve", "--insecure", "--upstream", "x:1", "--cache-dir", dir.path()},
       "generation"},
      {{"serve", "--insecure", "--upstream", "x:1", "--mode", "rehearse"},
       "mode"},
      {{"serve", "--insecure", "--upstream", "x:1", "--key", "name"}, "key"},
      {{"serve", "--insecure", "--tls-dir", dir.path(), "--upstream", "x:1"},
       "insecure"},
      {{"nonsense"}, "nonsense"},
  };
  for (const auto& wrong : cases) {
    Process process(wrong.arguments);
    EXPECT_EQ(process.Wait(), 2) << absl::StrJoin(wrong.arguments, " ");
    EXPECT_TRUE(absl::StrContains(process.Stderr(), wrong.named))
        << process.Stderr();
  }
  Process missing({"serve", "--config", dir.path() + "/none.yaml"});
  EXPECT_EQ(missing.Wait(), 1);
  EXPECT_TRUE(absl::StrContains(missing.Stderr(), "none.yaml"));
}

TEST_F(DaemonTest, GracefulStopLetsTheCallInFlightFinish) {
  StartFunction({"--cost", "sleep=2s"});
  auto daemon = StartDaemon();
  Answer answer;
  std::thread caller([&] { answer = Call(stub_.get(), "slow"); });
  ASSERT_TRUE(
      Reaches(admin_, "fncache_flights{function_name=\"function\"}", 1));
  int ready = 0;
  HttpGet(admin_, "/readyz", &ready);
  EXPECT_EQ(ready, 200);
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->Wait(), 0);
  caller.join();
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.response.meta().tag(), "tag of slow");
}

TEST_F(DaemonTest, ReadinessEndsAsSoonAsDrainingStarts) {
  StartFunction();
  // A second signal within 200 ms is the first one. A busy machine may deliver
  // it later, and then the daemon exits at once.
  bool same = false;
  for (int attempt = 0; attempt < 20 && !same; ++attempt) {
    auto daemon = StartDaemon({"--drain-delay", "1h"});
    daemon->Signal(SIGTERM);
    int ready = 200;
    EXPECT_TRUE(Eventually([&] {
      HttpGet(admin_, "/readyz", &ready);
      return ready != 200;
    }));
    EXPECT_EQ(ready, 503);
    daemon->Signal(SIGTERM);
    absl::SleepFor(absl::Milliseconds(300));
    // Still accepting, for as long as drain_delay says.
    same = Call(stub_.get(), "late").status.ok();
    // Another signal exits at once.
    if (same) daemon->Signal(SIGTERM);
    EXPECT_EQ(daemon->Wait(), 128 + SIGTERM);
    EXPECT_TRUE(absl::StrContains(daemon->Stderr(), "second signal"));
  }
  EXPECT_TRUE(same);
}

TEST_F(DaemonTest, SignalsThatMeanNothingAreIgnoredWithALine) {
  StartFunction();
  auto daemon = StartDaemon();
  for (const int signal : {SIGHUP, SIGUSR1, SIGUSR2}) daemon->Signal(signal);
  EXPECT_TRUE(Call(stub_.get(), "still there").status.ok());
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->Wait(), 0);
  EXPECT_TRUE(absl::StrContains(daemon->Stderr(), "ignored a signal"));
}

size_t CountOf(const std::string& text, absl::string_view words) {
  return std::vector<absl::string_view>(absl::StrSplit(text, words)).size() - 1;
}

// Not how the last connection ended, but what connecting again meets: one line
// for each reason, and one when it is over.
TEST_F(DaemonTest, ADeadFunctionIsToldWithWhatKeepsItUnreachable) {
  for (const int signal : {SIGKILL, SIGTERM}) {
    StartFunction();
    const std::string upstream = function_->Listening().at(0);
    auto daemon = StartDaemon();
    ASSERT_TRUE(Call(stub_.get(), "alive").status.ok());
    function_->Signal(signal);
    function_->Wait();
    ASSERT_TRUE(daemon->WaitForStderr("cannot reach the function"));
    EXPECT_TRUE(absl::StrContains(daemon->Stderr(), "Connection refused"))
        << daemon->Stderr();
    // A server that does not speak HTTP/2 listens on its address.
    Process other({"serve", "--insecure", "--listen", "127.0.0.1:0", "--admin",
                   upstream, "--upstream", "127.0.0.1:1"});
    ASSERT_TRUE(daemon->WaitForStderr("cannot reach the function", 2));
    // The page has the last reason of any worker.
    const absl::Time until = absl::Now() + kPatience;
    while (!absl::StrContains(HttpGet(admin_, "/statusz"),
                              "the peer speaks HTTP/1")) {
      ASSERT_LT(absl::Now(), until);
    }
    other.Signal(SIGKILL);
    other.Wait();
    function_ = std::make_unique<Process>(std::vector<std::string>{
        "function", "--listen", upstream, "--insecure", "--ttl", "1h"});
    ASSERT_TRUE(daemon->WaitForStderr("the function is reachable"));
    daemon->Signal(SIGTERM);
    EXPECT_EQ(daemon->Wait(), 0);
    EXPECT_EQ(CountOf(daemon->Stderr(), "cannot reach the function"), 2)
        << daemon->Stderr();
    EXPECT_EQ(CountOf(daemon->Stderr(), "the function is reachable"), 1)
        << daemon->Stderr();
  }
}

TEST_F(DaemonTest, TheAccessLogGoesOnInANewFileAfterSigusr1) {
  StartFunction();
  const TempDir dir;
  const std::string file = dir.File("access.log");
  auto daemon =
      StartDaemon({"--log-access", "all", "--log-access-file", file,
                   "--log-access-format", "json", "--log-access-sample", "1"});
  EXPECT_TRUE(Call(stub_.get(), "before").status.ok());
  ASSERT_TRUE(Reaches(admin_, "fncache_access_log_lines_total", 1));
  ASSERT_EQ(std::rename(file.c_str(), (file + ".1").c_str()), 0);
  daemon->Signal(SIGUSR1);
  ASSERT_TRUE(daemon->WaitForStderr("reopened the access log"));
  EXPECT_TRUE(Call(stub_.get(), "after").status.ok());
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->Wait(), 0);
  EXPECT_TRUE(absl::StrContains(ReadFile(file + ".1"),
                                "\"outcome\":\"miss\",\"reason\":\"new\""));
  const std::string after = ReadFile(file);
  EXPECT_EQ(std::count(after.begin(), after.end(), '\n'), 1) << after;
  EXPECT_TRUE(absl::StrContains(after, "\"status\":\"OK\"}\n")) << after;
}

// Log and access log go to a pipe without a reader: calls, commands and the
// stop continue.
TEST_F(DaemonTest, AStderrThatNobodyReadsHoldsNothingUp) {
  StartFunction();
  const TempDir dir;
  const std::string pipe = dir.File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  ASSERT_GT(fcntl(reader, F_SETPIPE_SZ, 4096), 0);
  std::vector<std::string> arguments = {
      "-c", absl::StrCat("exec \"$0\" \"$@\" 2>", pipe), FNCACHE_BINARY};
  for (std::string& argument :
       Arguments({"--log-access", "all", "--admin-socket", dir.File("sock"),
                  "--drain", "1s"})) {
    arguments.push_back(std::move(argument));
  }
  Process daemon(arguments, {}, "/bin/sh");
  std::string said;
  while (!absl::StrContains(said, "serving fncache admin")) {
    char buffer[1024];
    const ssize_t n = read(reader, buffer, sizeof buffer);
    ASSERT_GT(n, 0);
    said.append(buffer, static_cast<size_t>(n));
  }
  for (const absl::string_view part :
       absl::StrSplit(said, "listening on ", absl::SkipEmpty())) {
    if (!absl::StartsWith(part, "127.0.0.1:")) continue;
    const std::string at(part.substr(0, part.find(' ')));
    int status = 0;
    HttpGet(at, "/healthz", &status);
    (status == 200 ? admin_ : address_) = at;
  }
  stub_ = StubFor(address_);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(Call(stub_.get(), "xr").status.ok()) << i;
  }
  // A worker has something to say, too.
  function_->Signal(SIGKILL);
  function_->Wait();
  EXPECT_EQ(Call(stub_.get(), "other", absl::Seconds(1)).status.error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Call(stub_.get(), "xr").status.ok());
  Process purge({"admin", "--socket", dir.File("sock"), "purge", "--all"});
  EXPECT_EQ(purge.Wait(), 0);
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait(), 0);
  close(reader);
}

TEST_F(DaemonTest, AnAccessLogThatCannotBeOpenedEndsTheStart) {
  StartFunction();
  Process daemon({"serve", "--insecure", "--listen", "127.0.0.1:0", "--admin",
                  "", "--upstream", "127.0.0.1:1", "--log-access", "misses",
                  "--log-access-file", "/no/such/folder/access.log"});
  EXPECT_EQ(daemon.Wait(), 1);
  EXPECT_TRUE(absl::StrContains(
      daemon.Stderr(),
      "log.access_file: cannot open /no/such/folder/access.log: "));
}

TEST_F(DaemonTest, CallsLeftWhenTheDrainEndsAreCancelled) {
  StartFunction({"--cost", "sleep=1h"});
  auto daemon = StartDaemon({"--drain", "100ms"});
  Answer answer;
  std::thread caller([&] { answer = Call(stub_.get(), "for ever"); });
  ASSERT_TRUE(
      Reaches(admin_, "fncache_flights{function_name=\"function\"}", 1));
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->Wait(), 0);
  caller.join();
  EXPECT_FALSE(answer.status.ok());
  // Nothing asked of the function may hold up its own stop.
  function_->Signal(SIGKILL);
}

TEST_F(DaemonTest, AFunctionThatDoesNotReadHoldsUpNoStop) {
  DeafServer function;
  Process daemon({"serve", "--insecure", "--listen", "127.0.0.1:0", "--admin",
                  "", "--drain", "100ms", "--upstream", function.target()});
  ASSERT_TRUE(daemon.WaitForStderr("listening on "));
  const auto stub = StubFor(daemon.Listening().at(0));
  Answer answer;
  std::thread caller(
      [&] { answer = Call(stub.get(), std::string(32 << 20, 'x')); });
  const absl::Time until = absl::Now() + kPatience;
  bool full = false;
  while (!full && absl::Now() < until) {
    full = function.Full();
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_TRUE(full);
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait(), 0);
  caller.join();
  EXPECT_FALSE(answer.status.ok());
}

TEST_F(DaemonTest, ManyFunctionsInOneDaemonKeepApart) {
  StartFunction();
  Process other({"function", "--listen", "127.0.0.1:0", "--insecure"});
  ASSERT_TRUE(other.WaitForStderr("listening on "));
  TempDir dir;
  const std::string file = dir.path() + "/fncache.yaml";
  std::ofstream(file) << "insecure: true\nadmin: ''\nfunctions:\n"
                      << "- {name: a, listen: '127.0.0.1:0', upstream: '"
                      << function_->Listening().at(0) << "'}\n"
                      << "- {name: b, listen: '127.0.0.1:0', upstream: '"
                      << other.Listening().at(0) << "'}\n";
  Process daemon({"serve", "--config", file});
  ASSERT_TRUE(daemon.WaitForStderr("listening on ", 2));
  for (const std::string& address : daemon.Listening()) {
    auto stub = StubFor(address);
    EXPECT_EQ(Call(stub.get(), "same").cache_status,
              "fncache; fwd=miss; stored; detail=new");
    EXPECT_TRUE(absl::StartsWith(Call(stub.get(), "same").cache_status,
                                 "fncache; hit; ttl="));
  }
}

// A hundred stops, each under load: every call that was accepted is answered
// or cancelled, and the exit code is 0.
// Heaps that threads have besides the process's own: 64 MiB of addresses each,
// aligned, the first part in use and the rest reserved.
int HeapsOfThreads(pid_t pid) {
  constexpr uint64_t kHeap = 64 << 20;
  std::ifstream maps(absl::StrCat("/proc/", pid, "/maps"));
  int heaps = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string line;
  while (std::getline(maps, line)) {
    unsigned long long from = 0;
    unsigned long long to = 0;
    char mode[5] = {};
    if (std::sscanf(line.c_str(), "%llx-%llx %4s", &from, &to, mode) != 3) {
      continue;
    }
    if (std::string(mode) == "rw-p" && from % kHeap == 0) {
      begin = from;
      end = to;
    } else if (std::string(mode) == "---p" && begin != 0 && from == end) {
      heaps += to == begin + kHeap;
    }
  }
  return heaps;
}

TEST_F(DaemonTest, ThreadsShareOneHeapSoThatMemoryStaysWithinItsBound) {
#if defined(FNCACHE_ASAN) || defined(FNCACHE_TSAN)
  GTEST_SKIP() << "the sanitizers have an allocator of their own";
#endif
  StartFunction();
  auto daemon = StartDaemon();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Call(stub_.get(), absl::StrCat("xr-", i)).status.ok());
  }
  EXPECT_EQ(HeapsOfThreads(daemon->pid()), 0);

  // The check sees heaps where there are any.
  Process several(Arguments({}), {{"MALLOC_ARENA_MAX", "8"}});
  ASSERT_TRUE(several.WaitForStderr("listening on ", 2));
  EXPECT_GT(HeapsOfThreads(several.pid()), 0);
}

TEST_F(DaemonTest, HeavyStopsUnderLoad) {
  StartFunction({"--cost", "sleep=2ms"});
  TempDir dir;
  const int rounds = fncache::testing::ShortOrLong(30, 100);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    std::vector<std::string> more = {"--drain", "10s"};
    if (round % 2 == 1) {
      more.insert(more.end(), {"--cache-dir", dir.path(), "--generation", "g"});
    }
    auto daemon = StartDaemon(more);
    std::atomic<bool> stop{false};
    std::atomic<int> answered{0};
    std::vector<std::thread> callers;
    for (int c = 0; c < 4; ++c) {
      callers.emplace_back([&, c] {
        for (int i = 0; !stop; ++i) {
          const std::string name = absl::StrCat("r", round, "-", c, "-", i / 2);
          const Answer answer =
              Call(stub_.get(), name, kPatience, /*wait=*/false);
          if (!answer.status.ok()) break;
          EXPECT_EQ(answer.response.meta().tag(), "tag of " + name);
          ++answered;
        }
      });
    }
    while (answered < 20) std::this_thread::yield();
    daemon->Signal(round % 3 == 0 ? SIGINT : SIGTERM);
    EXPECT_EQ(daemon->Wait(), 0);
    stop = true;
    for (std::thread& caller : callers) caller.join();
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace fncache::testing
