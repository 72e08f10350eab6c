// SPDX-License-Identifier: Apache-2.0
#include "proxy/daemon.h"

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/common/certificates.h"
#include "tests/proxy/loopback.h"
#include "tests/proxy/start_daemon.h"

namespace fncache::proxy {
namespace {

class DaemonTest : public ::testing::Test {
 protected:
  settings::DaemonOptions Options() {
    settings::DaemonOptions options;
    settings::FunctionOptions function;
    function.listen = "127.0.0.1:0";
    function.upstream = function_.target();
    options.functions.push_back(function);
    options.admin = "127.0.0.1:0";
    options.cache_memory = 16 << 20;
    options.drain = absl::Seconds(20);
    return options;
  }
  static std::unique_ptr<Daemon> Start(settings::DaemonOptions options) {
    auto daemon = StartDaemon(std::move(options), {});
    EXPECT_TRUE(daemon.ok()) << daemon.status();
    return daemon.ok() ? *std::move(daemon) : nullptr;
  }

  TestFunction function_;
};

TEST_F(DaemonTest, ServesAndStops) {
  const auto daemon = Start(Options());
  ASSERT_NE(daemon, nullptr);
  EXPECT_TRUE(daemon->ready());
  TestCall call(Connect(daemon->addresses()[0]), "/t.T/Count");
  std::string answer;
  EXPECT_TRUE(call.Unary("abc", &answer).ok());
  EXPECT_EQ(answer, "1 3");
  daemon->Drain();
  EXPECT_FALSE(daemon->ready());
}

TEST_F(DaemonTest, EachFunctionHasItsListenerAndUpstream) {
  TestFunction other;
  settings::DaemonOptions options = Options();
  options.functions.push_back(options.functions[0]);
  options.functions[1].name = "other";
  options.functions[1].upstream = other.target();
  const auto daemon = Start(std::move(options));
  ASSERT_NE(daemon, nullptr);
  ASSERT_EQ(daemon->addresses().size(), 2u);
  TestCall call(Connect(daemon->addresses()[1]), "/t.T/Count");
  std::string answer;
  EXPECT_TRUE(call.Unary("abc", &answer).ok());
  EXPECT_EQ(other.calls, 1);
  EXPECT_EQ(function_.calls, 0);
}

TEST_F(DaemonTest, PortInUseFailsTheStartNamingIt) {
  const auto first = Start(Options());
  ASSERT_NE(first, nullptr);
  settings::DaemonOptions options = Options();
  options.functions[0].listen = first->addresses()[0];
  const auto second = StartDaemon(std::move(options), {});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find(first->addresses()[0]),
            absl::string_view::npos)
      << second.status();
}

TEST_F(DaemonTest, MissingCertificatesFailTheStartNamingTheFile) {
  ::fncache::testing::TempDir empty;
  settings::DaemonOptions options = Options();
  options.tls_dir = empty.path();
  const auto daemon = StartDaemon(std::move(options), {});
  ASSERT_FALSE(daemon.ok());
  EXPECT_NE(daemon.status().message().find(empty.File("tls.crt")),
            absl::string_view::npos)
      << daemon.status();
}

TEST_F(DaemonTest, DrainLetsUnaryCallsFinishAndThenCancelsStreams) {
  const auto daemon = Start(Options());
  ASSERT_NE(daemon, nullptr);
  const auto channel = Connect(daemon->addresses()[0]);
  TestCall stream(channel, "/t.T/Echo");
  std::string back;
  ASSERT_TRUE(stream.Start());
  ASSERT_TRUE(stream.Write("a"));
  ASSERT_TRUE(stream.Read(&back));
  TestCall unary(channel, "/t.T/Hang");
  ASSERT_TRUE(unary.Start());
  ASSERT_TRUE(unary.Write("x"));
  ASSERT_TRUE(unary.HalfClose());
  ASSERT_TRUE(Eventually([&] { return function_.half_closed == 1; }));
  const absl::Time start = absl::Now();
  std::thread stop([&] { daemon->Drain(); });
  ASSERT_TRUE(Eventually([&] { return !daemon->ready(); }));
  // The stream lives while the unary call does.
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(stream.Write("b"));
    ASSERT_TRUE(stream.Read(&back));
  }
  unary.context().TryCancel();
  unary.Finish();
  EXPECT_FALSE(stream.Finish().ok());
  stop.join();
  EXPECT_LT(absl::Now() - start, absl::Seconds(15));
}

TEST_F(DaemonTest, CallsLeftWhenTheDrainEndsAreCancelled) {
  settings::DaemonOptions options = Options();
  options.drain = absl::Milliseconds(200);
  const auto daemon = Start(std::move(options));
  ASSERT_NE(daemon, nullptr);
  TestCall unary(Connect(daemon->addresses()[0]), "/t.T/Hang");
  ASSERT_TRUE(unary.Start());
  ASSERT_TRUE(unary.Write("x"));
  ASSERT_TRUE(unary.HalfClose());
  ASSERT_TRUE(Eventually([&] { return function_.half_closed == 1; }));
  daemon->Drain();
  EXPECT_FALSE(unary.Finish().ok());
  EXPECT_TRUE(Eventually([&] { return function_.running == 0; }));
}

TEST_F(DaemonTest, CacheDirectoryInUseIsWaitedForThenNamed) {
  ::fncache::testing::TempDir dir;
  settings::DaemonOptions options = Options();
  options.cache_dir = dir.path();
  auto first = Start(options);
  ASSERT_NE(first, nullptr);
  // A stop that comes during the wait ends it.
  Daemon::Extras extras;
  std::atomic<int> asked{0};
  extras.cancelled = [&] { return ++asked > 1; };
  const auto second = StartDaemon(options, std::move(extras));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kCancelled);
  // The predecessor leaves: the successor starts.
  std::thread leaving([&] { first = nullptr; });
  EXPECT_NE(Start(options), nullptr);
  leaving.join();
}

}  // namespace
}  // namespace fncache::proxy
