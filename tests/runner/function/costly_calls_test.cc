// SPDX-License-Identifier: Apache-2.0
#include "runner/function/costly_calls.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/method.h"
#include "common/mutex.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "proto/function_v1.pb.h"
#include "tests/common/eventually.h"
#include "tests/runner/function/served.h"
#include "tests/runner/messages.h"

namespace fncache::runner::function {
namespace {

namespace v1 = apiextensions::fn::proto::v1;
using testing::HasSubstr;

using v1::RunFunctionRequest;
using v1::RunFunctionResponse;

std::shared_ptr<grpc::Channel> Connect(
    const ::fncache::function::Server& server) {
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(server.address(),
                                   grpc::InsecureChannelCredentials(), args);
}

class CostlyCallsTest : public testing::Test {
 protected:
  void Start() {
    calls_ = std::make_unique<CostlyCalls>(options_);
    server_ = Serve(TemplateFunction({}), "", calls_->Interceptor());
    ASSERT_NE(server_, nullptr);
    stub_ = v1::FunctionRunnerService::NewStub(Connect(*server_));
  }

  grpc::Status Call(const std::string& tag = "t",
                    absl::Duration deadline = absl::Minutes(1)) {
    RunFunctionRequest request;
    request.mutable_meta()->set_tag(tag);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
    response_.Clear();
    return stub_->RunFunction(&context, request, &response_);
  }

  CallCounts counts() const { return calls_->counts(); }

  CostOptions options_;
  std::unique_ptr<CostlyCalls> calls_;
  std::unique_ptr<::fncache::function::Server> server_;
  std::unique_ptr<v1::FunctionRunnerService::Stub> stub_;
  RunFunctionResponse response_;
};

TEST_F(CostlyCallsTest, AnswersUnderTheRequestsTag) {
  Start();
  const grpc::Status status = Call("abc");
  ASSERT_TRUE(status.ok()) << status.error_message();
  ExpectJson(response_, R"({"meta": {"tag": "abc", "ttl": "60s"}})");
  EXPECT_EQ(counts().calls, 1u);
  EXPECT_EQ(counts().answered, 1u);
}

TEST_F(CostlyCallsTest, RequestNestedAThousandLevelsDeepIsAnswered) {
  Start();
  RunFunctionRequest request;
  auto* at = request.mutable_context();
  for (int i = 0; i < 400; ++i) {
    at = (*at->mutable_fields())["k"].mutable_struct_value();
  }
  std::string bytes = request.SerializeAsString();
  grpc::Slice slice(bytes);
  grpc::ByteBuffer sent(&slice, 1), received;
  grpc::GenericStub stub(Connect(*server_));
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto call =
      stub.PrepareUnaryCall(&context, kRunFunctionV1, sent, &queue);
  call->StartCall();
  grpc::Status status;
  call->Finish(&received, &status, call.get());
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_GE(received.Length(), bytes.size());
}

TEST_F(CostlyCallsTest, BytesThatAreNoRequestAreAnError) {
  Start();
  grpc::GenericStub stub(Connect(*server_));
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice slice("\xff\xff\xff");
  const auto call = stub.PrepareUnaryCall(&context, kRunFunctionV1,
                                          grpc::ByteBuffer(&slice, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer received;
  grpc::Status status;
  call->Finish(&received, &status, call.get());
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(counts().failed, 1u);
}

TEST_F(CostlyCallsTest, SleepAndCpuAreSpentOnEveryCall) {
  options_.cost.sleep = absl::Milliseconds(30);
  options_.cost.cpu = absl::Milliseconds(30);
  Start();
  const absl::Time start = absl::Now();
  ASSERT_TRUE(Call().ok());
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(60));
}

TEST_F(CostlyCallsTest, SleepEndsWithTheCallersDeadline) {
  options_.cost.sleep = absl::Hours(1);
  Start();
  // A call that a machine delays beyond its deadline does not reach it, or
  // without its request, which is a failure.
  for (absl::Duration deadline = absl::Milliseconds(50);
       counts().cancelled == 0 && deadline < absl::Minutes(1); deadline *= 4) {
    EXPECT_EQ(Call("t", deadline).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
    // Were the sleep not cut short, that would take an hour.
    ASSERT_TRUE(Eventually([&] {
      const CallCounts counts = calls_->counts();
      return counts.calls == counts.failed + counts.cancelled;
    }));
  }
  server_->Stop(absl::InfiniteDuration());
  EXPECT_GE(counts().cancelled, 1u);
}

TEST_F(CostlyCallsTest, ManyCallsSleepAtOnce) {
  options_.cost.sleep = absl::Milliseconds(200);
  Start();
  struct One {
    grpc::ClientContext context;
    RunFunctionResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<RunFunctionResponse>>
        reader;
  };
  constexpr int kCalls = 300;
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<One>> calls;
  const absl::Time start = absl::Now();
  for (int i = 0; i < kCalls; ++i) {
    calls.push_back(std::make_unique<One>());
    One& one = *calls.back();
    one.reader = stub_->AsyncRunFunction(&one.context, {}, &queue);
    one.reader->Finish(&one.response, &one.status, &one);
  }
  for (int i = 0; i < kCalls; ++i) {
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue.Next(&tag, &ok));
    EXPECT_TRUE(static_cast<One*>(tag)->status.ok());
  }
  // One after the other they would sleep for a minute.
  EXPECT_LT(absl::Now() - start, absl::Seconds(30));
  EXPECT_EQ(counts().answered, 300u);
}

TEST_F(CostlyCallsTest, FailRateFailsAsTheSeedSays) {
  options_.fail_rate = 0.5;
  options_.seed = 7;
  Start();
  int failed = 0;
  for (int call = 1; call <= 40; ++call) {
    const grpc::Status status = Call();
    const bool fails = CallFails(0.5, 7, call);
    EXPECT_EQ(status.error_code(),
              fails ? grpc::StatusCode::UNAVAILABLE : grpc::StatusCode::OK)
        << call;
    failed += fails ? 1 : 0;
  }
  EXPECT_EQ(counts().failed, static_cast<uint64_t>(failed));
}

TEST_F(CostlyCallsTest, LogsEveryCallWithItsNumber) {
  options_.log_calls = true;
  Start();
  testing::internal::CaptureStderr();
  ASSERT_TRUE(Call("abc").ok());
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("call run=1 method=v1 code=0 ms="));
  EXPECT_THAT(log, HasSubstr("tag=abc"));
}

TEST_F(CostlyCallsTest, StopLetsCallsInFlightFinish) {
  options_.cost.sleep = absl::Milliseconds(200);
  Start();
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto reader = stub_->AsyncRunFunction(&context, {}, &queue);
  grpc::Status status;
  reader->Finish(&response_, &status, &status);
  while (counts().calls == 0) absl::SleepFor(absl::Milliseconds(1));
  server_->Stop(absl::Minutes(1));
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST(CallFailsTest, AboutTheFractionFails) {
  for (const double rate : {0.0, 0.1, 0.5, 1.0}) {
    int failed = 0;
    for (int call = 1; call <= 10000; ++call) {
      failed += CallFails(rate, 3, call) ? 1 : 0;
    }
    EXPECT_NEAR(failed, rate * 10000, rate == 0 || rate == 1 ? 0 : 200);
  }
}

TEST(CallFailsTest, SeedsDiffer) {
  int differ = 0;
  for (int call = 1; call <= 100; ++call) {
    differ += CallFails(0.5, 1, call) != CallFails(0.5, 2, call) ? 1 : 0;
  }
  EXPECT_GT(differ, 20);
}

TEST(ParseCallCostTest, PartsAddUp) {
  const auto cost = ParseCallCost({"sleep=2s,cpu=200ms", "sleep=1s"});
  ASSERT_TRUE(cost.ok()) << cost.status();
  EXPECT_EQ(cost->sleep, absl::Seconds(3));
  EXPECT_EQ(cost->cpu, absl::Milliseconds(200));
}

TEST(ParseCallCostTest, WhatIsNoCostIsRefusedWithWhatIsAccepted) {
  for (const char* value : {"", "2s", "sleep", "sleep=", "sleep=-1s", "cpu=1",
                            "disk=1s", "sleep=2h", "sleep=1s,"}) {
    EXPECT_THAT(std::string(ParseCallCost({value}).status().message()),
                HasSubstr("accepted: sleep=DURATION or cpu=DURATION"))
        << value;
  }
}

}  // namespace
}  // namespace fncache::runner::function
