// SPDX-License-Identifier: Apache-2.0
// The process of a function: its flags, its end, its log.
#include "tests/sdk/serve/process.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/common/certificates.h"
#include "tests/common/eventually.h"
#include "tests/common/loopback_socket.h"
#include "tests/common/temp_dir.h"
#include "tests/sdk/serve/serving.h"

namespace fncache::sdk::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

TEST(ProcessTest, SigtermAndSigintEndItWithCodeZero) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Process process(kPlain);
    EXPECT_TRUE(Call(process.address()).ok());
    process.Signal(signal);
    EXPECT_EQ(process.Wait(), 0);
    EXPECT_TRUE(process.Logs("stopped"));
  }
}

TEST(ProcessTest, CallInFlightFinishesAfterSigterm) {
  Process process(kPlain, {"HELLO_SLEEP_MS=500"});
  const std::string address = process.address();
  std::thread caller([&] { EXPECT_TRUE(Call(address).ok()); });
  EXPECT_TRUE(HasCall(process));
  process.Signal(SIGTERM);
  caller.join();
  EXPECT_EQ(process.Wait(), 0);
}

TEST(ProcessTest, CallIsCancelledAfterTheDrain) {
  for (const bool deaf : {false, true}) {
    std::vector<std::string> flags = kPlain;
    flags.insert(flags.end(), {"--drain", "100ms"});
    std::vector<std::string> environment = {"HELLO_SLEEP_MS=3600000"};
    if (deaf) environment.push_back("HELLO_DEAF=1");
    Process process(flags, environment);
    const std::string address = process.address();
    std::thread caller([&] { EXPECT_FALSE(Call(address).ok()); });
    EXPECT_TRUE(HasCall(process));
    process.Signal(SIGTERM);
    EXPECT_EQ(process.Wait(), 0);
    caller.join();
    EXPECT_EQ(absl::StrContains(process.Err(), "left behind"), deaf);
  }
}

TEST(ProcessTest, SecondSignalEndsItAtOnce) {
  Process process(kPlain, {"HELLO_SLEEP_MS=3600000", "HELLO_DEAF=1"});
  const std::string address = process.address();
  std::thread caller([&] { EXPECT_FALSE(Call(address).ok()); });
  EXPECT_TRUE(HasCall(process));
  process.Signal(SIGTERM);
  ASSERT_TRUE(process.Logs("stopping"));
  process.Signal(SIGTERM);
  EXPECT_EQ(process.Wait(), 1);
  caller.join();
}

TEST(ProcessTest, MayOpenAsManyFilesAsAllowed) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit fewer = before;
  fewer.rlim_cur = before.rlim_max / 2;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &fewer), 0);
  const Process process(kPlain);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  process.address();
  rlimit its = {};
  ASSERT_EQ(prlimit(process.pid(), RLIMIT_NOFILE, nullptr, &its), 0);
  EXPECT_EQ(its.rlim_cur, before.rlim_max);
}

TEST(ProcessTest, FailedStartIsOneLineAndCodeOne) {
  const testing::LoopbackSocket taken;
  taken.Listen(1);
  const std::vector<std::vector<std::string>> cases = {
      {"--insecure", "--address", taken.target()},
      {"--insecure", "--address", "192.0.2.1:9443"},
      {"--insecure", "--address", "unix:/nonexistent/function.sock"},
      {"--tls-certs-dir", "/nonexistent", "--address", "127.0.0.1:0"},
      {"--tls-server-certs-dir", "/nonexistent", "--address", "127.0.0.1:0"},
  };
  for (const auto& flags : cases) {
    Process process(flags);
    EXPECT_EQ(process.Wait(), 1) << flags[1];
    EXPECT_THAT(process.Err(),
                MatchesRegex("function-hello: [^\n]*(listen on|/nonexistent)"
                             "[^\n]*\n"));
  }
}

TEST(ProcessTest, WrongFlagsAreCodeTwo) {
  const struct {
    std::vector<std::string> flags;
    const char* said;
  } cases[] = {
      {{"--insecur"}, "unknown flag --insecur; did you mean --insecure?"},
      {{"extra"}, "unexpected argument extra"},
      {{}, "--insecure or --tls-certs-dir DIR is needed"},
      {{"--insecure", "--address", "nonsense"}, "--address: \"nonsense\""},
      {{"--insecure", "--address", "[::1:0"}, "--address: \"[::1:0\""},
      {{"--insecure", "--address", "::1]:0"}, "--address: \"::1]:0\""},
      {{"--insecure", "--address", "127.0.0.1:+5"}, "is not accepted"},
      {{"--insecure", "--address", "127.0.0.1:0 "}, "is not accepted"},
      {{"--insecure", "--metrics-address", "nonsense"},
       "--metrics-address: \"nonsense\""},
      {{"--insecure", "--metrics-address", "127.0.0.1:65536"},
       "accepted: HOST:PORT or :PORT, the port from 0 to 65535"},
      {{"--insecure", "--metrics-address", "127.0.0.1:"}, "is not accepted"},
      {{"--insecure", "--address", ":65536"}, "the port from 0 to 65535"},
      {{"--insecure", "--network", "udp"}, "--network"},
      {{"--insecure", "--max-recv-message-size", "0"}, "1 to 2047"},
      {{"--insecure", "--threads", "x"}, "--threads"},
      {{"--insecure", "--ttl", "-1s"}, "accepted: a duration such as"},
      {{"--insecure", "--drain", "soon"}, "accepted: a duration such as"},
      {{"--insecure", "--depends", "maybe"}, "--depends"},
      {{"--insecure", "--graph", "maybe"}, "--graph"},
      {{"--insecure", "--log-format", "xml"}, "--log-format"},
  };
  for (const auto& one : cases) {
    Process process(one.flags);
    EXPECT_EQ(process.Wait(), 2) << one.said;
    EXPECT_THAT(process.Err(), HasSubstr(one.said));
    EXPECT_THAT(process.Err(), StartsWith("function-hello: "));
    EXPECT_THAT(process.Err(), HasSubstr("see function-hello --help\n"));
  }
}

TEST(ProcessTest, HelpNamesEveryFlag) {
  Process process({"--help"});
  EXPECT_EQ(process.Wait(), 0);
  const std::string help = process.Out();
  for (const char* flag :
       {"--address", "--network", "-d, --debug", "--insecure",
        "--tls-certs-dir", "--tls-server-certs-dir", "TLS_SERVER_CERTS_DIR",
        "--max-recv-message-size", "--metrics-address", "--ttl", "--depends",
        "--graph", "--log-format", "--drain", "--threads", "--version",
        "Exit codes"}) {
    EXPECT_THAT(help, HasSubstr(flag));
  }
  for (const auto line : absl::StrSplit(help, '\n')) {
    EXPECT_LE(line.size(), 82u) << line;
  }
}

TEST(ProcessTest, VersionIsPrinted) {
  Process process({"--version"});
  EXPECT_EQ(process.Wait(), 0);
  EXPECT_THAT(process.Out(),
              MatchesRegex("function-hello \\(SDK of fncache [0-9.]+\\)\n"));
}

TEST(ProcessTest, CertificatesComeFromTheEnvironment) {
  const testing::Pem authority =
      MakeCertificate(testing::CrossplaneAuthority(), nullptr);
  const testing::CertificateDir dir(
      MakeCertificate(testing::CrossplaneServer(), &authority),
      authority.certificate);
  const std::string set = "TLS_SERVER_CERTS_DIR=" + dir.path();
  {
    Process process({"--address", "127.0.0.1:0", "--metrics-address="}, {set});
    EXPECT_FALSE(Call(process.address()).ok());
  }
  {
    Process process(kPlain, {set});
    EXPECT_TRUE(Call(process.address()).ok());
  }
  Process process({"--tls-certs-dir=/nonexistent"}, {set});
  EXPECT_EQ(process.Wait(), 1);
}

TEST(ProcessTest, UnixSocketsAreServed) {
  const testing::TempDir dir;
  const std::string path = dir.path() + "/function.sock";
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--address", "unix:" + path},
        {"--network", "unix", "--address", path}}) {
    std::vector<std::string> all = {"--insecure", "--metrics-address="};
    all.insert(all.end(), flags.begin(), flags.end());
    Process process(all);
    EXPECT_EQ(process.address(), "unix:" + path);
    EXPECT_TRUE(Call("unix:" + path).ok());
  }
}

TEST(ProcessTest, LogIsZapsJson) {
  Process process(kPlain);
  (void)process.address();
  EXPECT_THAT(process.Err(), StartsWith("{\"level\":\"info\",\"ts\":"));
  const auto line = process.Line("listening");
  EXPECT_TRUE(line["ts"].is_number());
  EXPECT_NEAR(line["ts"].get<double>(), absl::ToUnixSeconds(absl::Now()), 600);
}

TEST(ProcessTest, DebugLogsCallsAsText) {
  std::vector<std::string> flags = kPlain;
  flags.push_back("-d");
  flags.insert(flags.end(), {"--log-format", "json"});
  Process json(flags);
  EXPECT_TRUE(Call(json.address()).ok());
  EXPECT_TRUE(json.Logs("call"));
  EXPECT_EQ(json.Field("call", "level"), "debug");

  Process text({"--insecure", "--debug", "--metrics-address=", "--address",
                "127.0.0.1:0"});
  EXPECT_TRUE(Eventually([&] {
    return absl::StrContains(text.Err(), " info listening address=");
  }));
}

TEST(ProcessTest, TakenMetricsAddressIsOneWarning) {
  const testing::LoopbackSocket taken;
  taken.Listen(1);
  std::vector<std::string> flags = kPlain;
  flags.back() = taken.target();
  Process process(flags);
  EXPECT_TRUE(Call(process.address()).ok());
  EXPECT_EQ(process.Field("no metrics", "level"), "warn");
}

TEST(ProcessTest, IdleProcessHasTwentyMegabytes) {
  Process process(kPlain);
  EXPECT_TRUE(Call(process.address()).ok());
  EXPECT_GT(process.Status("VmRSS"), 1000);
#if !defined(FNCACHE_ASAN) && !defined(FNCACHE_TSAN)
  EXPECT_LE(process.Status("VmRSS"), 20 << 10);
#endif
}

}  // namespace
}  // namespace fncache::sdk::serve
