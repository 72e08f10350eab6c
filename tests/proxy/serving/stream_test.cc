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
  TestCall call(channel_, "/t.T/Stall");
  const auto deadline =
      std::chrono::system_clock::now() + std::chrono::milliseconds(500);
  call.context().set_deadline(deadline);
  ASSERT_TRUE(call.Start());
  ASSERT_TRUE(Eventually([&] { return function_.calls == 1; }));
  const auto skew = std::chrono::duration_cast<std::chrono::milliseconds>(
      function_.last().deadline - deadline);
  EXPECT_LT(std::abs(skew.count()), 100);
  EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
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
  // Wait until it has stood still for a while.
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

}  // namespace
}  // namespace fncache::proxy::serving
