// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/listener.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/common/temp_dir.h"
#include "tests/proxy/loopback.h"

namespace fncache::proxy::transport {
namespace {

ListenerOptions At(const std::string& address, Worker* worker) {
  ListenerOptions options;
  options.address = address;
  options.workers = {worker};
  return options;
}

TEST(ListenerTest, PortInUseIsRefusedByName) {
  Worker worker(0);
  auto first = Listener::Create(At("127.0.0.1:0", &worker));
  ASSERT_TRUE(first.ok());
  const auto second = Listener::Create(At((*first)->address(), &worker));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find((*first)->address()),
            absl::string_view::npos);
}

TEST(ListenerTest, ASocketInUseIsRefusedByName) {
  const testing::TempDir dir;
  Worker worker(0);
  for (const std::string& address :
       {absl::StrCat("unix:", dir.File("f.sock")),
        absl::StrCat("unix-abstract:", dir.File("f"))}) {
    const auto first = Listener::Create(At(address, &worker));
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ((*first)->address(), address);
    const auto second = Listener::Create(At(address, &worker));
    EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(
        second.status().message(),
        absl::StrCat("cannot listen on ", address,
                     ": the address is in use: another process listens there"));
  }
}

TEST(ListenerTest, ListenerThatNeverStartedGoesQuietly) {
  Worker worker(0);
  const auto listener = Listener::Create(At("127.0.0.1:0", &worker));
  ASSERT_TRUE(listener.ok());
  EXPECT_NE((*listener)->address(), "127.0.0.1:0");
}

TEST(ListenerTest, DestructionCancelsWhatIsLeft) {
  TestFunction function;
  auto proxy = std::make_unique<TestProxy>(TestProxy::To(function.target()));
  const auto channel = Connect(proxy->target());
  TestCall call(channel, "/t.T/Stall");
  ASSERT_TRUE(call.Start());
  ASSERT_TRUE(Eventually([&] { return function.calls == 1; }));
  proxy = nullptr;
  EXPECT_FALSE(call.Finish().ok());
  EXPECT_TRUE(Eventually([&] { return function.running == 0; }));
}

TEST(ListenerTest, IdleConnectionsDoNotHoldUpAStop) {
  TestFunction function;
  TestProxy proxy(TestProxy::To(function.target()));
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 8; ++i) {
    channels.push_back(Connect(proxy.target()));
    TestCall call(channels.back(), "/t.T/Count");
    std::string answer;
    ASSERT_TRUE(call.Unary("x", &answer).ok());
  }
  const absl::Time start = absl::Now();
  proxy.listener().StopAccepting(start + absl::Seconds(60));
  proxy.listener().Join();
  EXPECT_LT(absl::Now() - start, absl::Seconds(40));
}

// A call counts as one or the other while it goes on.
TEST(ListenerTest, UnaryCallsAndStreamsAreToldApart) {
  TestFunction function;
  TestProxy proxy(TestProxy::To(function.target()));
  TestListener& listener = proxy.listener();
  const auto channel = Connect(proxy.target());
  TestCall unary(channel, "/t.T/Hang");
  ASSERT_TRUE(unary.Start());
  ASSERT_TRUE(unary.Write("x"));
  ASSERT_TRUE(unary.HalfClose());
  // Its half-close shows that it is unary, as it was taken for before.
  ASSERT_TRUE(Eventually([&] { return function.half_closed == 1; }));
  EXPECT_EQ(listener.unary(), 1);
  TestCall stream(channel, "/t.T/Echo");
  ASSERT_TRUE(stream.Start());
  for (int i = 0; i < 3; ++i) {
    std::string back;
    ASSERT_TRUE(stream.Write("x"));
    ASSERT_TRUE(stream.Read(&back));
  }
  EXPECT_EQ(listener.calls(), 2);
  EXPECT_EQ(listener.unary(), 1);

  listener.StopAccepting(absl::Now() + absl::Seconds(60));
  listener.CancelStreams();
  EXPECT_FALSE(stream.Finish().ok());
  EXPECT_TRUE(Eventually([&] { return listener.calls() == 1; }));
  EXPECT_EQ(listener.unary(), 1);
  unary.context().TryCancel();
  unary.Finish();
  listener.Join();
  EXPECT_TRUE(Eventually([&] { return function.running == 0; }));
}

// Callers come and go while the listener stops, over and over. Nothing hangs or
// aborts, and every caller with an answer got the right one.
TEST(ListenerTest, StopUnderLoadHangsNothing) {
  TestFunction function;
  for (int round = 0; round < 10; ++round) {
    auto proxy = std::make_unique<TestProxy>(TestProxy::To(function.target()));
    std::atomic<bool> stop{false};
    std::atomic<int> good{0};
    std::atomic<int> wrong{0};
    std::vector<std::thread> callers;
    for (int i = 0; i < 4; ++i) {
      callers.emplace_back([&, target = proxy->target()] {
        const auto channel = Connect(target);
        while (!stop) {
          TestCall call(channel, "/t.T/Count");
          call.context().set_deadline(std::chrono::system_clock::now() +
                                      std::chrono::seconds(5));
          std::string answer;
          if (!call.Unary("abc", &answer).ok()) continue;
          if (answer != "1 3") ++wrong;
          ++good;
        }
      });
    }
    ASSERT_TRUE(Eventually([&] { return good > 50; }));
    proxy->listener().StopAccepting(absl::Now() + absl::Seconds(5));
    proxy->listener().Join();
    stop = true;
    proxy = nullptr;
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(wrong, 0);
  }
  EXPECT_TRUE(Eventually([&] { return function.running == 0; }));
}

}  // namespace
}  // namespace fncache::proxy::transport
