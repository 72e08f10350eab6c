// SPDX-License-Identifier: Apache-2.0
// The outcomes of the limits, with real calls through a proxy: hits continue,
// and no connection takes what others need, while functions hang.
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/http2_server.h"
#include "tests/proxy/serving/scripted.h"
#include "tests/proxy/transport/raw_call.h"

namespace fncache::proxy::limits {
namespace {

using ::fncache::testing::Http2Frame;
using ::fncache::testing::Http2Header;
using ::fncache::testing::Http2Ok;
using ::fncache::testing::Http2Server;
using serving::CachingProxy;
using serving::Caller;
using serving::CallerPtr;
using serving::Response;
using serving::ScriptedFunction;
using serving::ScriptedStore;
using transport::CallData;
using transport::CallHead;
using transport::ConnectTo;
using transport::Greeting;
using transport::MessageHead;
using transport::SendAll;

constexpr size_t kBudget = 8 << 20;

// A request of this size, with a key of its own.
std::string Request(int i, size_t size) {
  const std::string name = absl::StrCat("n", i, "-");
  return serving::Request(name + std::string(size - name.size(), 'x'),
                          absl::StrCat("t", i));
}

// A proxy in front of a function that answers when the test says so.
class PressureTest : public ::testing::Test {
 protected:
  ~PressureTest() override {
    for (const CallerPtr& caller : callers_) caller->context.TryCancel();
    for (const CallerPtr& caller : callers_) caller->Wait();
    proxy_.Stop();
  }
  static CallerPtr Ask(const std::shared_ptr<grpc::Channel>& channel,
                       const std::string& request) {
    auto caller = std::make_shared<Caller>();
    caller->context.set_deadline(
        absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    caller->Start(channel, kRunFunctionV1, request);
    return caller;
  }
  void Fill(const std::string& request) {
    auto caller = Ask(Connect(proxy_.target()), request);
    function_.Next()->Answer(Response("t", "hello", 3600).SerializeAsString());
    EXPECT_TRUE(caller->Wait().ok());
  }
  // On a connection of its own.
  void Send(const std::string& request) {
    callers_.push_back(Ask(Connect(proxy_.target()), request));
  }
  void ExpectHit(const std::string& request) {
    auto hit = Ask(Connect(proxy_.target()), request);
    const grpc::Status status = hit->Wait();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_THAT(hit->cache_status(), ::testing::HasSubstr("; hit"));
  }

  ScriptedFunction function_;
  ScriptedStore store_;
  CachingProxy proxy_{function_.target(), {}, &store_, 2, false, kBudget};
  std::vector<CallerPtr> callers_;
};

TEST_F(PressureTest, LargeHitsContinueWhileLargeMissesWait) {
  const std::string large = Request(-1, 130'000);
  Fill(large);
  for (int i = 0; i < 56; ++i) Send(Request(i, 130'000));
  ASSERT_TRUE(
      Eventually([&] { return proxy_.inflight().waiting() > 900'000; }));
  ExpectHit(large);
}

TEST_F(PressureTest, LargeHitsContinueWhileCallersShareOneCall) {
  const std::string large = Request(-1, 130'000);
  Fill(large);
  const std::string same = Request(1, 130'000);
  for (int i = 0; i < 12; ++i) Send(same);
  ASSERT_TRUE(
      Eventually([&] { return proxy_.inflight().reading() > 11 * 130'000; }));
  ExpectHit(large);
}

TEST_F(PressureTest, MissesThatWaitCountOnTheirConnection) {
  const int connection = ConnectTo(proxy_.listener().port());
  ASSERT_TRUE(SendAll(connection, Greeting()));
  for (uint32_t i = 0; i < 900 && proxy_.inflight().refused() == 0; ++i) {
    const std::string body = Request(static_cast<int>(i), 20'000);
    const std::string message = MessageHead(body.size()) + body;
    std::string bytes =
        CallHead(1 + 2 * i, kRunFunctionV1, Http2Header("te", "trailers"));
    for (size_t at = 0; at < message.size(); at += 16384) {
      bytes += CallData(1 + 2 * i, message.substr(at, 16384),
                        at + 16384 >= message.size());
    }
    ASSERT_TRUE(SendAll(connection, bytes));
    ASSERT_TRUE(Eventually([&] {
      const Budget& budget = proxy_.inflight();
      return budget.running() + budget.waiting() > i * size_t{20'000} ||
             budget.refused() > 0;
    }));
  }
  EXPECT_GT(proxy_.inflight().waiting(), 0u);
  EXPECT_GT(proxy_.inflight().refused(), 0u);
  EXPECT_GE(proxy_.inflight().free(), kBudget / 2 - 100'000);
  close(connection);
  EXPECT_TRUE(Eventually([&] { return proxy_.inflight().waiting() == 0; }));
  EXPECT_TRUE(Eventually([&] { return proxy_.inflight().reading() == 0; }));
}

// It may be looked up, but its connection leaves no memory in which it could
// wait.
TEST_F(PressureTest, AJoinedCallBeyondItsCapIsRefusedAndLeavesItsFlight) {
  const std::string same = Request(1, 130'000);
  Send(same);
  Send(Request(2, 20'000));
  ASSERT_TRUE(Eventually([&] { return proxy_.flights().callers == 2; }));
  const auto channel = Connect(proxy_.target());
  const auto left = [&] {
    const Budget& budget = proxy_.inflight();
    return static_cast<int64_t>(budget.free()) -
           static_cast<int64_t>(budget.reading());
  };
  for (size_t i = 3; left() > 130'000; ++i) {
    callers_.push_back(Ask(channel, Request(2, 20'000)));
    ASSERT_TRUE(Eventually([&] { return proxy_.flights().callers == i; }));
  }
  const size_t callers = proxy_.flights().callers;
  auto joined = Ask(channel, same);
  EXPECT_EQ(joined->Wait().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(proxy_.inflight().refused(), 1u);
  EXPECT_EQ(proxy_.flights().callers, callers);
  // From another connection it may.
  Send(same);
  EXPECT_TRUE(
      Eventually([&] { return proxy_.flights().callers == callers + 1; }));
}

// One larger than all caps waits, as the one that is beyond.
TEST_F(PressureTest, AMissThatIsLargerThanACapWaits) {
  const std::string large = Request(1, 7 << 20);
  auto leader = Ask(Connect(proxy_.target()), large);
  ASSERT_TRUE(
      Eventually([&] { return proxy_.inflight().running() > (7 << 20); }));
  auto waits = Ask(Connect(proxy_.target()), Request(2, 7 << 20));
  ASSERT_TRUE(
      Eventually([&] { return proxy_.inflight().waiting() > (7 << 20); }));
  EXPECT_GT(proxy_.inflight().free(), kBudget - 100'000);
  function_.Next()->Answer(Response("t1", "hello", 3600).SerializeAsString());
  EXPECT_TRUE(leader->Wait().ok());
  function_.Next()->Answer(Response("t2", "hello", 3600).SerializeAsString());
  EXPECT_TRUE(waits->Wait().ok());
  EXPECT_TRUE(Eventually([&] {
    return proxy_.inflight().reading() == 0 && proxy_.inflight().running() == 0;
  }));
}

// A request that is a little larger than the bytes that may come without a
// grant may be complete while it waits for one.
TEST_F(PressureTest, ACompleteRequestDoesNotWaitForAGrant) {
  const std::string same = Request(1, 65'000);
  Send(same);
  ASSERT_TRUE(Eventually([&] { return proxy_.inflight().running() > 65'000; }));
  std::vector<int> connections;
  const auto begin = [&](size_t size, const std::string& start, bool whole) {
    connections.push_back(ConnectTo(proxy_.listener().port()));
    std::string bytes =
        Greeting() + CallHead(1, kRunFunctionV1, Http2Header("te", "trailers"));
    const std::string message = MessageHead(size) + start;
    for (size_t at = 0; at < message.size(); at += 16384) {
      bytes += CallData(1, message.substr(at, 16384),
                        whole && at + 16384 >= message.size());
    }
    EXPECT_TRUE(SendAll(connections.back(), bytes));
  };
  const std::string some(10'000, 'x');
  // One goes beyond, and four have almost all that may be granted.
  size_t sum = 4 << 20;
  begin(sum, some, false);
  ASSERT_TRUE(Eventually([&] { return proxy_.inflight().reading() > sum; }));
  for (const size_t more : {500'000, 270'000, 139'000, 68'000}) {
    begin(more, some, false);
    sum += more;
    ASSERT_TRUE(Eventually([&] { return proxy_.inflight().reading() > sum; }));
  }
  begin(same.size(), same, /*whole=*/true);
  ASSERT_TRUE(Eventually([&] { return proxy_.flights().callers == 2; }));
  EXPECT_FALSE(proxy_.inflight().OthersWait(Budget::Quota::kReading));
  // The next one goes beyond when the first has left.
  close(connections[0]);
  begin(2 << 20, some, false);
  EXPECT_TRUE(Eventually([&] {
    return proxy_.inflight().reading() > sum - (4 << 20) + (2 << 20);
  }));
  for (size_t i = 1; i < connections.size(); ++i) close(connections[i]);
}

// A function may send its headers and read nothing: the request stays in
// memory.
TEST(PressureUpstreamTest, WhatTheFunctionHasNotReadIsCounted) {
  const std::string grpc =
      Http2Ok() + Http2Header("content-type", "application/grpc");
  Http2Server function({{Http2Frame::kHeaders, Http2Frame::kEndHeaders, grpc}},
                       /*early=*/true, std::string("\0\4\0\0\0\0", 6));
  ScriptedStore store;
  CachingProxy proxy(function.target(), {}, &store, 2, false, kBudget);
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  std::vector<CallerPtr> callers;
  for (int i = 0; i < 8; ++i) {
    channels.push_back(Connect(proxy.target()));
    auto caller = std::make_shared<Caller>();
    caller->Start(channels.back(), kRunFunctionV1, Request(i, 1 << 20));
    callers.push_back(caller);
  }
  EXPECT_TRUE(Eventually([&] { return function.blocks().size() >= 5; }));
  EXPECT_TRUE(Eventually([&] { return proxy.inflight().waiting() > 0; }));
  EXPECT_GT(proxy.inflight().running(), 5u << 20);
  for (const auto& one : callers) one->context.TryCancel();
  for (const auto& one : callers) one->Wait();
  proxy.Stop();
}

// As soon as it has read it, the request is not counted any more.
TEST(PressureUpstreamTest, WhatTheFunctionHasReadIsNotCounted) {
  const std::string grpc =
      Http2Ok() + Http2Header("content-type", "application/grpc");
  Http2Server function(
      {{Http2Frame::kHeaders, Http2Frame::kEndHeaders, grpc},
       {Http2Frame::kWindowUpdate, 0, transport::BigEndian(1 << 20)}},
      /*early=*/true, std::string("\0\4\0\0\0\0", 6));
  ScriptedStore store;
  CachingProxy proxy(function.target(), {}, &store, 1, false, kBudget);
  auto caller = std::make_shared<Caller>();
  caller->Start(Connect(proxy.target()), kRunFunctionV1, Request(1, 60'000));
  EXPECT_TRUE(Eventually([&] { return function.blocks().size() == 1; }));
  EXPECT_TRUE(Eventually([&] { return proxy.inflight().running() < 1000; }));
  caller->context.TryCancel();
  caller->Wait();
  proxy.Stop();
}

// A function whose answers begin with 64 KB of 1 MiB, and stop.
std::vector<Http2Frame> StoppingAnswer(const std::string& type) {
  std::vector<Http2Frame> answer = {
      {Http2Frame::kHeaders, Http2Frame::kEndHeaders,
       Http2Ok() + Http2Header("content-type", type)},
      {Http2Frame::kData, 0, MessageHead(1 << 20) + std::string(16'000, 'a')}};
  for (int i = 0; i < 3; ++i) {
    answer.push_back({Http2Frame::kData, 0, std::string(16'000, 'a')});
  }
  return answer;
}

class StoppingAnswerTest : public ::testing::TestWithParam<const char*> {};

TEST_P(StoppingAnswerTest, IsEndedWhileAMissWaits) {
  Http2Server function(StoppingAnswer(GetParam()));
  ScriptedStore store;
  CachingProxy proxy(function.target(), {}, &store, 1, false, 64 << 10);
  const absl::Time start = absl::Now();
  auto stalls = std::make_shared<Caller>();
  stalls->Start(Connect(proxy.target()), kRunFunctionV1, Request(1, 100));
  ASSERT_TRUE(
      Eventually([&] { return proxy.inflight().running() > (60 << 10); }));
  auto waits = std::make_shared<Caller>();
  waits->Start(Connect(proxy.target()), kRunFunctionV1, Request(2, 100));
  ASSERT_TRUE(Eventually([&] { return proxy.inflight().misses_wait(); }));
  const grpc::Status status = stalls->Wait();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("stopped coming"));
  EXPECT_GE(absl::Now() - start, absl::Seconds(10));
  EXPECT_TRUE(Eventually([&] { return !proxy.inflight().misses_wait(); }));
  waits->context.TryCancel();
  waits->Wait();
  proxy.Stop();
}
INSTANTIATE_TEST_SUITE_P(All, StoppingAnswerTest,
                         ::testing::Values("application/grpc", "text/plain"),
                         [](const auto& info) {
                           return info.index == 0 ? "Grpc" : "AnotherType";
                         });

// Answers that wait for memory are others, too. Three have almost all that may
// run. The function gets two more calls together, of which one goes beyond.
TEST(PressureUpstreamTest, AnAnswerThatStopsIsEndedWhileAnotherAnswerWaits) {
  Http2Server function(StoppingAnswer("application/grpc"));
  ScriptedStore store;
  CachingProxy proxy(function.target(), {}, &store, 1, false, 256 << 10);
  std::vector<CallerPtr> callers;
  for (int i = 0; i < 3; ++i) {
    callers.push_back(std::make_shared<Caller>());
    callers.back()->Start(Connect(proxy.target()), kRunFunctionV1,
                          Request(i, 100));
    ASSERT_TRUE(Eventually([&] {
      return proxy.inflight().running() == (i + 1) * size_t{64'000};
    }));
  }
  EXPECT_FALSE(proxy.inflight().OthersWait(Budget::Quota::kRunning));
  const int connection = ConnectTo(proxy.listener().port());
  std::string bytes = Greeting();
  for (uint32_t i = 0; i < 2; ++i) {
    const std::string body = Request(10 + static_cast<int>(i), 100);
    bytes +=
        CallHead(1 + 2 * i, kRunFunctionV1, Http2Header("te", "trailers")) +
        CallData(1 + 2 * i, MessageHead(body.size()) + body, true);
  }
  ASSERT_TRUE(SendAll(connection, bytes));
  ASSERT_TRUE(Eventually(
      [&] { return proxy.inflight().running() == size_t{5 * 64'000}; }));
  EXPECT_TRUE(proxy.inflight().OthersWait(Budget::Quota::kRunning));
  EXPECT_FALSE(proxy.inflight().misses_wait());
  EXPECT_TRUE(Eventually([&] { return proxy.inflight().running() < 200'000; }));
  for (const auto& one : callers) one->context.TryCancel();
  for (const auto& one : callers) one->Wait();
  close(connection);
  EXPECT_TRUE(Eventually([&] {
    return proxy.inflight().running() == 0 &&
           !proxy.inflight().OthersWait(Budget::Quota::kRunning);
  }));
  proxy.Stop();
}

}  // namespace
}  // namespace fncache::proxy::limits
