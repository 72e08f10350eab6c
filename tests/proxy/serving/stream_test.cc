// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/stream.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/proxy/loopback.h"

namespace fncache::proxy::serving {
namespace {

using testing::ElementsAre;

class StreamTest : public testing::Test {
 protected:
  TestFunction function_;
  TestProxy proxy_{TestProxy::To(function_.target())};
  std::shared_ptr<grpc::Channel> channel_ = Connect(proxy_.target());
};

TEST_F(StreamTest, UnaryCallOfAnUnknownServicePasses) {
  TestCall call(channel_, "/t.T/Count");
  std::string answer;
  EXPECT_TRUE(call.Unary("hello", &answer).ok());
  EXPECT_EQ(answer, "1 5");
}

TEST_F(StreamTest, UnknownMethodGivesTheFunctionsOwnStatus) {
  TestCall call(channel_, "/other.Service/Method");
  std::string answer;
  const grpc::Status status = call.Unary("", &answer);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(status.error_message(), "no such method");
}

TEST_F(StreamTest, BidirectionalMessagesAlternate) {
  TestCall call(channel_, "/t.T/Echo");
  ASSERT_TRUE(call.Start());
  for (const std::string text : {"a", "", "bc", ""}) {
    ASSERT_TRUE(call.Write(text));
    std::string back = "?";
    ASSERT_TRUE(call.Read(&back));
    EXPECT_EQ(back, text);
  }
  ASSERT_TRUE(call.HalfClose());
  std::string none;
  EXPECT_FALSE(call.Read(&none));
  EXPECT_TRUE(call.Finish().ok());
  EXPECT_EQ(function_.half_closed, 1);
}

TEST_F(StreamTest, ClientStreamIsCountedWhole) {
  TestCall call(channel_, "/t.T/Count");
  ASSERT_TRUE(call.Start());
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(call.Write(std::string(i, 'x')));
  ASSERT_TRUE(call.HalfClose());
  std::string answer;
  ASSERT_TRUE(call.Read(&answer));
  EXPECT_EQ(answer, "1000 499500");
  EXPECT_TRUE(call.Finish().ok());
}

TEST_F(StreamTest, ServerStreamArrivesWhole) {
  TestCall call(channel_, "/t.T/Burst");
  ASSERT_TRUE(call.Start());
  ASSERT_TRUE(call.Write("1000 777"));
  ASSERT_TRUE(call.HalfClose());
  std::string message;
  int count = 0;
  while (call.Read(&message)) {
    EXPECT_EQ(message.size(), 777u);
    ++count;
  }
  EXPECT_EQ(count, 1000);
  EXPECT_TRUE(call.Finish().ok());
}

TEST_F(StreamTest, ClientThatSendsNothingIsHalfClosed) {
  TestCall call(channel_, "/t.T/Count");
  ASSERT_TRUE(call.Start());
  ASSERT_TRUE(call.HalfClose());
  std::string answer;
  ASSERT_TRUE(call.Read(&answer));
  EXPECT_EQ(answer, "0 0");
  EXPECT_TRUE(call.Finish().ok());
}

TEST_F(StreamTest, HeadersComeBeforeAnyMessage) {
  TestCall call(channel_, "/t.T/Headers");
  call.context().AddMetadata("x-head", "early");
  ASSERT_TRUE(call.Start());
  ASSERT_TRUE(call.Headers());
  EXPECT_THAT(
      TestCall::Values(call.context().GetServerInitialMetadata(), "x-head"),
      ElementsAre("early"));
  ASSERT_TRUE(call.HalfClose());
  EXPECT_TRUE(call.Finish().ok());
}

TEST_F(StreamTest, StatusKeepsMessageDetailsAndTrailersOnce) {
  TestCall call(channel_, "/t.T/Fail");
  std::string answer;
  const grpc::Status status = call.Unary("x", &answer);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(status.error_message(), "näh: 100% \n");
  EXPECT_EQ(status.error_details(), std::string("det\0ails", 8));
  const auto& trailers = call.context().GetServerTrailingMetadata();
  EXPECT_THAT(TestCall::Values(trailers, "x-why"), ElementsAre("because"));
  EXPECT_THAT(TestCall::Values(trailers, "grpc-status-details-bin"),
              ElementsAre(std::string("det\0ails", 8)));
}

TEST_F(StreamTest, FunctionThatFailsEarlyEndsACallerThatStillSends) {
  TestCall call(channel_, "/t.T/Early");
  ASSERT_TRUE(call.Start());
  while (call.Write(std::string(100000, 'x'))) {
  }
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(), "too early");
  EXPECT_TRUE(Eventually([&] { return proxy_.listener().calls() == 0; }));
}

TEST_F(StreamTest, CancellationReachesTheFunctionAndIsNoHalfClose) {
  for (int i = 0; i < 50; ++i) {
    TestCall call(channel_, "/t.T/Hang");
    ASSERT_TRUE(call.Start());
    ASSERT_TRUE(call.Write("x"));
    ASSERT_TRUE(Eventually([&] { return function_.messages == i + 1; }));
    call.context().TryCancel();
    EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::CANCELLED);
    ASSERT_TRUE(Eventually([&] { return function_.cancelled == i + 1; }));
  }
  EXPECT_TRUE(Eventually([&] { return function_.running == 0; }));
  EXPECT_TRUE(Eventually([&] { return proxy_.listener().calls() == 0; }));
}

TEST_F(StreamTest, CancelledUploadNeverLooksComplete) {
  for (int i = 0; i < 100; ++i) {
    TestCall call(channel_, "/t.T/Count");
    ASSERT_TRUE(call.Start());
    ASSERT_TRUE(call.Write("x"));
    ASSERT_TRUE(Eventually([&] { return function_.messages == i + 1; }));
    call.context().TryCancel();
    call.Finish();
    ASSERT_TRUE(Eventually([&] { return function_.running == 0; }));
  }
  EXPECT_EQ(function_.cancelled, 100);
  EXPECT_EQ(function_.half_closed, 0);
}

TEST_F(StreamTest, FunctionSeesTheCallersDeadline) {
  // A machine that stalls gets more time until the call is at the function.
  for (auto timeout = std::chrono::milliseconds(500);
       function_.calls == 0 && timeout < std::chrono::minutes(2);
       timeout *= 10) {
    TestCall call(channel_, "/t.T/Stall");
    const auto begin = std::chrono::system_clock::now();
    const auto deadline = begin + timeout;
    call.context().set_deadline(deadline);
    if (call.Start() && Eventually([&] { return function_.calls == 1; },
                                   absl::FromChrono(timeout))) {
      // The timeout is sent. It counts from each receipt, so the function's
      // deadline is later, by as long as the call took to get there at most.
      const auto took = std::chrono::system_clock::now() - begin;
      const auto later = function_.last().deadline - deadline;
      const auto rounding = std::chrono::milliseconds(20);
      EXPECT_GT(later, -rounding);
      EXPECT_LT(later, took + rounding);
    }
    EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  EXPECT_EQ(function_.calls, 1);
  EXPECT_TRUE(Eventually([&] { return function_.running == 0; }));
  EXPECT_TRUE(Eventually([&] { return proxy_.listener().calls() == 0; }));
}

TEST_F(StreamTest, CallWithoutDeadlineStaysWithoutOne) {
  TestCall call(channel_, "/t.T/Count");
  std::string answer;
  ASSERT_TRUE(call.Unary("x", &answer).ok());
  EXPECT_EQ(function_.last().deadline,
            std::chrono::system_clock::time_point::max());
}

TEST_F(StreamTest, MetadataCrossesInOrderBothWays) {
  TestCall call(channel_, "/t.T/Count");
  const std::string raw("\0\xff\x01 ,", 5);
  call.context().AddMetadata("x-head", "one");
  call.context().AddMetadata("x-head", "two");
  call.context().AddMetadata("x-head-bin", raw);
  call.context().AddMetadata("x-trail", "three");
  call.context().AddMetadata("x-trail", "four");
  call.context().AddMetadata("x-trail-bin", raw);
  call.context().AddMetadata("authorization", "Bearer secret");
  call.context().set_authority("function-x.example:9443");
  std::string answer;
  ASSERT_TRUE(call.Unary("x", &answer).ok());
  const auto& headers = call.context().GetServerInitialMetadata();
  const auto& trailers = call.context().GetServerTrailingMetadata();
  EXPECT_THAT(TestCall::Values(headers, "x-head"), ElementsAre("one", "two"));
  EXPECT_THAT(TestCall::Values(headers, "x-head-bin"), ElementsAre(raw));
  EXPECT_THAT(TestCall::Values(trailers, "x-trail"),
              ElementsAre("three", "four"));
  EXPECT_THAT(TestCall::Values(trailers, "x-trail-bin"), ElementsAre(raw));
  const auto seen = function_.last();
  EXPECT_EQ(seen.host, "function-x.example:9443");
  EXPECT_EQ(seen.metadata.find("authorization")->second, "Bearer secret");
  EXPECT_THAT(seen.metadata.find("user-agent")->second,
              testing::StartsWith("grpc-c++"));
  EXPECT_THAT(seen.metadata.find("cdn-loop")->second,
              testing::StartsWith("fncache-"));
}

TEST_F(StreamTest, LargeMetadataCrossesBetweenGoodCallsOnOneConnection) {
  const auto good = [&] {
    TestCall call(channel_, "/t.T/Count");
    std::string answer;
    return call.Unary("abc", &answer).ok() && answer == "1 3";
  };
  for (const size_t size : {12u << 10, 28u << 10}) {
    ASSERT_TRUE(good());
    TestCall call(channel_, "/t.T/Count");
    call.context().AddMetadata("x-head-big", std::string(size, 'h'));
    call.context().AddMetadata("x-trail-big", std::string(size, 't'));
    std::string answer;
    const grpc::Status status = call.Unary("abc", &answer);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_THAT(TestCall::Values(call.context().GetServerInitialMetadata(),
                                 "x-head-big"),
                ElementsAre(std::string(size, 'h')));
    EXPECT_THAT(TestCall::Values(call.context().GetServerTrailingMetadata(),
                                 "x-trail-big"),
                ElementsAre(std::string(size, 't')));
    ASSERT_TRUE(good());
  }
}

TEST_F(StreamTest, HundredMegabytesPassBothWays) {
  TestCall call(channel_, "/t.T/Echo");
  ASSERT_TRUE(call.Start());
  std::string big(100 << 20, 'x');
  big[12345678] = 'y';
  ASSERT_TRUE(call.Write(big));
  std::string back;
  ASSERT_TRUE(call.Read(&back));
  EXPECT_TRUE(back == big);
  ASSERT_TRUE(call.HalfClose());
  EXPECT_TRUE(call.Finish().ok());
}

// Messages in flight without anybody reading them are bounded by windows and
// the one message that each pump holds.
TEST_F(StreamTest, FunctionThatDoesNotReadStopsAFastSender) {
  TestCall call(channel_, "/t.T/Stall");
  ASSERT_TRUE(call.Start());
  std::atomic<int> written{0};
  std::thread sender([&] {
    const std::string message(1 << 20, 'x');
    while (written < 2000 && call.Write(message)) ++written;
  });
  // Waits until it stalls.
  int before = -1;
  absl::Time since = absl::Now();
  EXPECT_TRUE(Eventually([&] {
    if (written != before) {
      before = written;
      since = absl::Now();
    }
    return absl::Now() - since > absl::Milliseconds(500);
  }));
  EXPECT_LT(written, 64);
  call.context().TryCancel();
  sender.join();
  EXPECT_TRUE(Eventually([&] { return proxy_.listener().calls() == 0; }));
}

TEST_F(StreamTest, CallerThatDoesNotReadStopsAFastFunction) {
  TestCall call(channel_, "/t.T/Burst");
  ASSERT_TRUE(call.Start());
  ASSERT_TRUE(call.Write("2000 1000000"));
  int before = -1;
  absl::Time since = absl::Now();
  EXPECT_TRUE(Eventually([&] {
    if (function_.messages != before) {
      before = function_.messages;
      since = absl::Now();
    }
    return absl::Now() - since > absl::Milliseconds(500);
  }));
  EXPECT_LT(function_.messages, 64);
  call.context().TryCancel();
  call.Finish();
  EXPECT_TRUE(Eventually([&] { return function_.running == 0; }));
}

// The memory of relayed calls is counted, and released however they end.
class StreamRoomTest : public testing::Test {
 protected:
  explicit StreamRoomTest(size_t bound = 256 << 20) : inflight_(bound, 2) {
    transport::UpstreamOptions options = TestProxy::To(function_->target());
    options.inflight = &inflight_;
    proxy_ = std::make_unique<TestProxy>(options);
    channel_ = Connect(proxy_->target());
  }
  // Sends until windows are full; over when the call ends.
  std::thread Fill(TestCall* call) {
    return std::thread([call] {
      while (call->Write(std::string(100'000, 'x'))) {
      }
    });
  }
  bool HoldsAtLeast(size_t bytes) {
    return Eventually([&] { return inflight_.relayed() >= bytes; });
  }
  bool GivesBack() {
    return Eventually([&] { return inflight_.relayed() == 0; });
  }

  limits::Budget inflight_;
  std::unique_ptr<TestFunction> function_ = std::make_unique<TestFunction>();
  std::unique_ptr<TestProxy> proxy_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(StreamRoomTest, CompleteCallGivesBack) {
  TestCall call(channel_, "/t.T/Echo");
  ASSERT_TRUE(call.Start());
  EXPECT_TRUE(HoldsAtLeast(1));
  ASSERT_TRUE(call.Write(std::string(1 << 20, 'x')));
  std::string back;
  ASSERT_TRUE(call.Read(&back));
  ASSERT_TRUE(call.HalfClose());
  EXPECT_TRUE(call.Finish().ok());
  EXPECT_TRUE(GivesBack());
}

TEST_F(StreamRoomTest, StartIsCountedUntilTheFunctionAnswers) {
  TestCall call(channel_, "/t.T/Hang");
  ASSERT_TRUE(call.Start());
  ASSERT_TRUE(call.Write(std::string(40'000, 'x')));
  EXPECT_TRUE(HoldsAtLeast(40'000));
  // Once: while the bytes move to the function they count there, too.
  EXPECT_TRUE(Eventually([&] { return inflight_.relayed() < 80'000; }));
  call.context().TryCancel();
  EXPECT_TRUE(GivesBack());

  TestCall answered(channel_, "/t.T/Echo");
  ASSERT_TRUE(answered.Start());
  ASSERT_TRUE(answered.Write(std::string(40'000, 'x')));
  std::string back;
  ASSERT_TRUE(answered.Read(&back));
  EXPECT_TRUE(Eventually([&] { return inflight_.relayed() < 20'000; }));
}

TEST_F(StreamRoomTest, CallerThatLeavesGivesBack) {
  TestCall call(channel_, "/t.T/Stall");
  ASSERT_TRUE(call.Start());
  std::thread sender = Fill(&call);
  EXPECT_TRUE(HoldsAtLeast(64 << 10));
  call.context().TryCancel();
  sender.join();
  EXPECT_TRUE(GivesBack());
}

TEST_F(StreamRoomTest, FunctionThatIsLostGivesBack) {
  TestCall call(channel_, "/t.T/Stall");
  ASSERT_TRUE(call.Start());
  std::thread sender = Fill(&call);
  EXPECT_TRUE(HoldsAtLeast(64 << 10));
  // A call that has not reached the function waits for another one.
  EXPECT_TRUE(Eventually([&] { return function_->running == 1; }));
  function_ = nullptr;
  sender.join();
  EXPECT_FALSE(call.Finish().ok());
  EXPECT_TRUE(GivesBack());
}

TEST_F(StreamRoomTest, FunctionThatFailsGivesBack) {
  TestCall call(channel_, "/t.T/Early");
  ASSERT_TRUE(call.Start());
  Fill(&call).join();
  EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_TRUE(GivesBack());
}

TEST_F(StreamRoomTest, DeadlineGivesBack) {
  // A machine that stalls gets more time until the call fills its windows.
  bool held = false;
  for (int64_t millis = 300; !held && millis <= 30'000; millis *= 10) {
    TestCall call(channel_, "/t.T/Stall");
    call.context().set_deadline(std::chrono::system_clock::now() +
                                std::chrono::milliseconds(millis));
    if (!call.Start()) {
      call.Finish();
      continue;
    }
    std::thread sender = Fill(&call);
    held = Eventually([&] { return inflight_.relayed() >= 64 << 10; },
                      absl::Milliseconds(millis));
    sender.join();
    EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    EXPECT_TRUE(GivesBack());
  }
  EXPECT_TRUE(held);
}

TEST_F(StreamRoomTest, StopGivesBack) {
  TestCall call(channel_, "/t.T/Stall");
  ASSERT_TRUE(call.Start());
  std::thread sender = Fill(&call);
  EXPECT_TRUE(HoldsAtLeast(64 << 10));
  proxy_->listener().StopAccepting(absl::Now() + absl::Seconds(20));
  proxy_->listener().CancelStreams();
  proxy_->listener().Join();
  sender.join();
  EXPECT_FALSE(call.Finish().ok());
  EXPECT_EQ(inflight_.relayed(), 0u);
}

// The function has said all, and only the caller's stream holds it.
TEST_F(StreamRoomTest, WholeAnswerIsCountedUntilItsCallerTakesIt) {
  // A window that stays as it is.
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  TestCall call(grpc::CreateCustomChannel(
                    proxy_->target(), grpc::InsecureChannelCredentials(), args),
                "/t.T/Burst");
  ASSERT_TRUE(call.Start());
  ASSERT_TRUE(call.Write("3 40000"));
  EXPECT_TRUE(Eventually(
      [&] { return function_->calls == 1 && function_->running == 0; }));
  EXPECT_TRUE(HoldsAtLeast(20'000));
  std::string message;
  while (call.Read(&message)) {
  }
  EXPECT_TRUE(call.Finish().ok());
  EXPECT_TRUE(GivesBack());
}

TEST_F(StreamRoomTest, MetadataIsCounted) {
  TestCall call(channel_, "/t.T/Hang");
  call.context().AddMetadata("x-big", std::string(20'000, 'm'));
  ASSERT_TRUE(call.Start());
  EXPECT_TRUE(HoldsAtLeast(60'000));
  call.context().TryCancel();
  EXPECT_TRUE(GivesBack());
}

TEST_F(StreamRoomTest, WindowsGrowWhileThereIsRoom) {
  TestCall call(channel_, "/t.T/Echo");
  ASSERT_TRUE(call.Start());
  ASSERT_TRUE(call.Write(std::string(20 << 20, 'x')));
  std::string back;
  ASSERT_TRUE(call.Read(&back));
  // Both ways have a megabyte, which is not taken back.
  EXPECT_TRUE(HoldsAtLeast(1'900'000));
  ASSERT_TRUE(call.HalfClose());
  EXPECT_TRUE(call.Finish().ok());
  EXPECT_TRUE(GivesBack());
}

// Eight calls of eight kilobytes; one of two windows.
class StreamSmallRoomTest : public StreamRoomTest {
 protected:
  StreamSmallRoomTest() : StreamRoomTest(8 * (64 << 10)) {}
  // One that counts for others.
  const std::unique_ptr<transport::Worker> worker_ =
      std::make_unique<transport::Worker>(0);
};

TEST_F(StreamSmallRoomTest, WindowsDoNotGrowWithoutRoom) {
  TestCall call(channel_, "/t.T/Echo");
  ASSERT_TRUE(call.Start());
  // It passes all the same.
  const std::string big(20 << 20, 'x');
  ASSERT_TRUE(call.Write(big));
  std::string back;
  ASSERT_TRUE(call.Read(&back));
  EXPECT_TRUE(back == big);
  EXPECT_TRUE(Eventually([&] { return inflight_.relayed() <= 16u << 10; }));
  ASSERT_TRUE(call.HalfClose());
  EXPECT_TRUE(call.Finish().ok());
  EXPECT_TRUE(GivesBack());
}

TEST_F(StreamSmallRoomTest, CallsForWhichThereIsNoRoomAreRefused) {
  std::vector<std::unique_ptr<TestCall>> calls;
  for (int i = 0; i < 8; ++i) {
    calls.push_back(std::make_unique<TestCall>(channel_, "/t.T/Hang"));
    ASSERT_TRUE(calls.back()->Start());
  }
  ASSERT_TRUE(Eventually([&] { return function_->running == 8; }));
  std::string answer;
  {
    TestCall refused(channel_, "/t.T/Count");
    const grpc::Status status = refused.Unary("x", &answer);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(status.error_message(), testing::HasSubstr("inflight.bytes"));
  }
  EXPECT_EQ(inflight_.refused(), 1u);
  EXPECT_EQ(function_->calls, 8);
  calls.front()->context().TryCancel();
  EXPECT_TRUE(Eventually([&] { return inflight_.relayed() < 64u << 10; }));
  TestCall served(channel_, "/t.T/Count");
  EXPECT_TRUE(served.Unary("x", &answer).ok());
  for (auto& call : calls) call->context().TryCancel();
  EXPECT_TRUE(GivesBack());
}

TEST_F(StreamSmallRoomTest, WhereTooMuchIsHeldOnlyTheOldestGoesOn) {
  TestCall first(channel_, "/t.T/Stall");
  ASSERT_TRUE(first.Start());
  TestCall second(channel_, "/t.T/Stall");
  ASSERT_TRUE(second.Start());
  ASSERT_TRUE(Eventually([&] { return function_->running == 2; }));
  // Held by others.
  limits::Charge others(&inflight_, limits::Budget::Quota::kRelayed,
                        worker_->index());
  others.Set(100 << 10);
  std::thread sender = Fill(&first);
  EXPECT_TRUE(HoldsAtLeast(160 << 10));
  Fill(&second).join();
  EXPECT_EQ(second.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Eventually([&] { return function_->running == 1; }));
  EXPECT_EQ(inflight_.refused(), 1u);
  first.context().TryCancel();
  sender.join();
  others.Set(0);
  EXPECT_TRUE(GivesBack());
}

TEST_F(StreamSmallRoomTest, OneThatStandsStillIsEndedWhileOthersWait) {
  const absl::Time start = absl::Now();
  TestCall still(channel_, "/t.T/Stall");
  ASSERT_TRUE(still.Start());
  std::thread sender = Fill(&still);
  EXPECT_TRUE(HoldsAtLeast(64 << 10));
  sender.join();
  EXPECT_EQ(still.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_GE(absl::Now() - start, absl::Seconds(10));
  EXPECT_TRUE(GivesBack());
}

}  // namespace
}  // namespace fncache::proxy::serving
