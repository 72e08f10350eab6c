// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "common/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/function_v1beta1.grpc.pb.h"
#include "proto/function_v1beta1.pb.h"
#include "tests/common/eventually.h"
#include "tests/common/temp_dir.h"
#include "tests/sdk/serve/serving.h"

namespace fncache::sdk::serve {
namespace {

namespace v1beta1 = apiextensions::fn::proto::v1beta1;
using ::testing::HasSubstr;

class ServerTest : public ::testing::Test, public Serving {};

TEST_F(ServerTest, AnswersUnderTheRequestsTag) {
  Start();
  const grpc::Status status = Call(Tagged("abc"));
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.meta().tag(), "abc");
  EXPECT_EQ(response.meta().ttl().seconds(), 60);
}

TEST_F(ServerTest, AnswersTheOlderVersionToo) {
  Start();
  const auto older = v1beta1::FunctionRunnerService::NewStub(channel);
  v1beta1::RunFunctionRequest request;
  request.mutable_meta()->set_tag("old");
  (*request.mutable_context()->mutable_fields())["k"].set_string_value("v");
  v1beta1::RunFunctionResponse answer;
  grpc::ClientContext context;
  const grpc::Status status = older->RunFunction(&context, request, &answer);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(answer.meta().tag(), "old");
  EXPECT_EQ(answer.context().fields().at("k").string_value(), "v");
}

TEST_F(ServerTest, MessagesMayBeLargerThanFourMebibytes) {
  Start();
  const grpc::Status status = Call(Large(20 << 20));
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.context().fields().at("k").string_value().size(),
            20u << 20);
}

TEST_F(ServerTest, RequestBeyondTheLimitIsResourceExhausted) {
  options.max_recv_message_mb = 1;
  Start();
  EXPECT_EQ(Call(Large(1 << 20)).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Call(Large(1000 << 10)).ok());
}

TEST_F(ServerTest, CompressedRequestsAreRead) {
  Start();
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    const grpc::Status status =
        Call(Large(100000), [&](grpc::ClientContext* context) {
          context->set_compression_algorithm(algorithm);
        });
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.context().fields().at("k").string_value().size(),
              100000u);
  }
}

TEST_F(ServerTest, TheLimitIsThatOfTheDecompressedRequest) {
  options.max_recv_message_mb = 1;
  Start();
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    const auto compressed = [&](grpc::ClientContext* context) {
      context->set_compression_algorithm(algorithm);
    };
    EXPECT_EQ(Call(Large(2 << 20), compressed).error_code(),
              grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_TRUE(Call(Large(1000 << 10), compressed).ok());
  }
}

TEST_F(ServerTest, BytesThatAreNoRequestAreInternal) {
  Start();
  std::string bytes = "\xff\xff\xff";
  EXPECT_EQ(CallBytes(kRunFunctionV1, &bytes).error_code(),
            grpc::StatusCode::INTERNAL);
}

TEST_F(ServerTest, OtherMethodsAreUnimplemented) {
  Start();
  std::string bytes;
  EXPECT_EQ(CallBytes("/some.Service/Method", &bytes).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(ServerTest, UnixSocketIsServedAndRemoved) {
  const testing::TempDir dir;
  options.address = "unix:" + dir.path() + "/function.sock";
  Start();
  EXPECT_EQ(server->address(), options.address);
  EXPECT_TRUE(Call().ok());
  server->Stop(absl::ZeroDuration());
  EXPECT_NE(access((dir.path() + "/function.sock").c_str(), F_OK), 0);
}

TEST_F(ServerTest, TakenAddressIsAnErrorThatNamesIt) {
  const testing::TempDir dir;
  for (const std::string& address :
       {std::string("127.0.0.1:0"), "unix:" + dir.path() + "/function.sock"}) {
    options.address = address;
    Start();
    options.address = server->address();
    const auto second = function::Server::Start(options, Nothing);
    EXPECT_THAT(std::string(second.status().message()),
                HasSubstr("cannot listen on " + server->address()));
    EXPECT_TRUE(Call().ok());
  }
}

TEST_F(ServerTest, OptionsOutOfRangeAreNamed) {
  const struct {
    std::function<void(function::ServerOptions*)> set;
    const char* said;
  } cases[] = {
      {[](auto* o) { o->insecure = false; }, "tls_certs_dir is needed"},
      {[](auto* o) { o->address = "nonsense"; }, "address: "},
      {[](auto* o) { o->address = "127.0.0.1:65536"; }, "address: "},
      {[](auto* o) { o->address = "unix:"; }, "address: "},
      {[](auto* o) { o->max_recv_message_mb = 0; }, "1 to 2047"},
      {[](auto* o) { o->max_recv_message_mb = 2048; }, "1 to 2047"},
      {[](auto* o) { o->threads = -1; }, "0 to 1000"},
  };
  for (const auto& one : cases) {
    function::ServerOptions bad = options;
    one.set(&bad);
    EXPECT_THAT(
        std::string(function::Server::Start(bad, Nothing).status().message()),
        HasSubstr(one.said));
  }
}

// Calls that wait for each other: were they fewer at once, none would return.
TEST_F(ServerTest, FunctionsMayBlockOnAsManyThreadsAsAsked) {
  options.threads = 20;
  std::atomic<int> inside{0};
  Start([&](function::Context&) {
    ++inside;
    EXPECT_TRUE(Eventually([&] { return inside == 20; }));
  });
  std::vector<std::thread> callers;
  for (int i = 0; i < 20; ++i) {
    callers.emplace_back([this] {
      grpc::ClientContext context;
      v1::RunFunctionResponse answer;
      EXPECT_TRUE(stub->RunFunction(&context, {}, &answer).ok());
    });
  }
  // Meanwhile gRPC's threads are free.
  std::string bytes;
  EXPECT_TRUE(CallBytes("/grpc.health.v1.Health/Check", &bytes).ok());
  for (std::thread& caller : callers) caller.join();
}

TEST_F(ServerTest, CallWhoseDeadlinePassedInTheQueueIsNotRun) {
  options.threads = 1;
  absl::Notification entered, released;
  std::atomic<int> runs{0};
  Start([&](function::Context&) {
    ++runs;
    if (!entered.HasBeenNotified()) entered.Notify();
    released.WaitForNotification();
  });
  std::thread first([this] { EXPECT_TRUE(Call().ok()); });
  entered.WaitForNotification();
  grpc::ClientContext context;
  context.set_deadline(
      absl::ToChronoTime(absl::Now() + absl::Milliseconds(200)));
  v1::RunFunctionResponse answer;
  EXPECT_EQ(stub->RunFunction(&context, {}, &answer).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  // The caller's cancellation came before this on the connection.
  std::string bytes;
  EXPECT_TRUE(CallBytes("/grpc.health.v1.Health/Check", &bytes).ok());
  released.Notify();
  first.join();
  server->Stop(absl::InfiniteDuration());
  EXPECT_EQ(runs, 1);
}

TEST_F(ServerTest, FunctionSeesDeadlineAndCancellation) {
  absl::Notification entered, left;
  absl::Time deadline;
  Start([&](function::Context& ctx) {
    deadline = ctx.deadline();
    EXPECT_FALSE(ctx.cancelled());
    entered.Notify();
    EXPECT_TRUE(Eventually([&] { return ctx.cancelled(); }));
    left.Notify();
  });
  const absl::Time asked = absl::Now() + absl::Minutes(1);
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(asked));
  v1::RunFunctionResponse answer;
  std::thread caller([&] {
    EXPECT_EQ(stub->RunFunction(&context, {}, &answer).error_code(),
              grpc::StatusCode::CANCELLED);
  });
  entered.WaitForNotification();
  EXPECT_LT(absl::AbsDuration(deadline - asked), absl::Seconds(30));
  context.TryCancel();
  caller.join();
  left.WaitForNotification();
}

TEST_F(ServerTest, CallsWithoutDeadlineHaveAnInfiniteOne) {
  absl::Time deadline;
  Start([&](function::Context& ctx) { deadline = ctx.deadline(); });
  grpc::ClientContext context;
  v1::RunFunctionResponse answer;
  ASSERT_TRUE(stub->RunFunction(&context, {}, &answer).ok());
  EXPECT_EQ(deadline, absl::InfiniteFuture());
}

TEST_F(ServerTest, HintGoesToCallersBehindADaemon) {
  const auto cdn_loop = [](std::vector<std::string> values) {
    return [values](grpc::ClientContext* context) {
      for (const auto& value : values) context->AddMetadata("cdn-loop", value);
    };
  };
  Start();
  EXPECT_TRUE(Call().ok());
  EXPECT_EQ(depends, "");
  EXPECT_TRUE(Call({}, cdn_loop({"other, not-fncache-1"})).ok());
  EXPECT_EQ(depends, "");
  EXPECT_TRUE(Call({}, cdn_loop({"other; a=b, fncache-4f2a"})).ok());
  EXPECT_EQ(depends, "reads=()");
  EXPECT_TRUE(Call({}, cdn_loop({"other", "fncache-4f2a"})).ok());
  EXPECT_EQ(depends, "reads=()");

  options.depends = function::Depends::kAlways;
  Start();
  EXPECT_TRUE(Call().ok());
  EXPECT_EQ(depends, "reads=()");
  options.depends = function::Depends::kNever;
  Start();
  EXPECT_TRUE(Call({}, cdn_loop({"fncache-4f2a"})).ok());
  EXPECT_EQ(depends, "");
}

TEST_F(ServerTest, StopLetsCallsInFlightFinish) {
  absl::Notification entered, released;
  std::atomic<int> runs{0};
  Start([&](function::Context&) {
    // Further calls are those that ask whether it has stopped.
    if (runs++ > 0) return;
    entered.Notify();
    released.WaitForNotification();
  });
  std::thread caller([this] { EXPECT_TRUE(Call().ok()); });
  entered.WaitForNotification();
  std::thread stops([this] { server->Stop(absl::Minutes(1)); });
  // It refuses further connections while it waits.
  EXPECT_TRUE(Eventually([&] {
    const auto other = Connect(server->address());
    grpc::ClientContext context;
    v1::RunFunctionResponse answer;
    return v1::FunctionRunnerService::NewStub(other)
               ->RunFunction(&context, {}, &answer)
               .error_code() == grpc::StatusCode::UNAVAILABLE;
  }));
  std::thread stops_too([this] { server->Stop(absl::Minutes(1)); });
  released.Notify();
  caller.join();
  stops.join();
  stops_too.join();
}

TEST_F(ServerTest, StopCancelsCallsThatOutlastTheGrace) {
  absl::Notification entered;
  Start([&](function::Context& ctx) {
    entered.Notify();
    EXPECT_TRUE(Eventually([&] { return ctx.cancelled(); }));
  });
  std::thread caller([this] { EXPECT_FALSE(Call().ok()); });
  entered.WaitForNotification();
  server->Stop(absl::Milliseconds(100));
  caller.join();
}

}  // namespace
}  // namespace fncache::sdk::serve
