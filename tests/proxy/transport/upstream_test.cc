// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/upstream.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/certificates.h"
#include "tests/common/loopback_socket.h"
#include "tests/proxy/loopback.h"

namespace fncache::proxy::transport {
namespace {

// Answers RunFunction by one unary upstream call, as a miss is answered, and
// forwards the rest.
class UnaryHandler : public CallHandler {
 public:
  explicit UnaryHandler(Upstream* upstream)
      : upstream_(upstream), others_(upstream) {}
  void StartCall(IncomingCallPtr call) override {
    if (call->method() == Method::kOther) {
      others_.StartCall(std::move(call));
    } else {
      new Run(this, std::move(call));
    }
  }
  std::atomic<int> started{0};
  std::atomic<int> done{0};

 private:
  class Run final {
   public:
    Run(UnaryHandler* owner, IncomingCallPtr call)
        : owner_(owner), call_(std::move(call)) {
      call_->Read([this](const grpc::Status& status) { OnRead(status); });
    }
    void OnRead(const grpc::Status& status) {
      if (!status.ok()) {
        delete this;
        return;
      }
      upstream_call_ = owner_->upstream_->StartUnary(
          {call_->worker(), call_->fields(), call_->request(),
           call_->deadline()},
          [this](UnaryCall& call) { OnDone(call); });
      ++owner_->started;
      // A call whose time is over is cancelled already.
      if (!call_->OnCancelled([this] { upstream_call_->Cancel(); })) {
        upstream_call_->Cancel();
      }
    }
    void OnDone(UnaryCall& call) {
      ++owner_->done;
      if (call.answered()) call_->Relay(call.headers(), call.trailers());
      if (call.status().ok()) {
        IncomingCall::Answer(std::move(call_), std::move(call.response()),
                             call.status());
      } else {
        IncomingCall::Finish(std::move(call_), call.status());
      }
      delete this;
    }

   private:
    UnaryHandler* const owner_;
    IncomingCallPtr call_;
    std::shared_ptr<UnaryCall> upstream_call_;
  };
  Upstream* const upstream_;
  ForwardingHandler others_;
};

// No server listens there, as long as this lives.
using DeadAddress = ::fncache::testing::LoopbackSocket;

class UnaryUpstream {
 public:
  explicit UnaryUpstream(UpstreamOptions options)
      : upstream_(std::move(options), nullptr, kWorkers),
        handler_(&upstream_),
        listener_(&handler_, kWorkers),
        channel_(Connect(listener_.address())) {}
  const std::shared_ptr<grpc::Channel>& channel() { return channel_; }
  TestListener& listener() { return listener_; }
  UnaryHandler& handler() { return handler_; }

 private:
  static constexpr int kWorkers = 2;
  Upstream upstream_;
  UnaryHandler handler_;
  TestListener listener_;
  const std::shared_ptr<grpc::Channel> channel_;
};

UpstreamOptions Dead(const std::string& target) {
  UpstreamOptions options;
  options.target = target;
  options.connect_limit = absl::Milliseconds(300);
  return options;
}

std::string CodeOf(const std::shared_ptr<grpc::Channel>& channel,
                   const std::string& method) {
  TestCall call(channel, method);
  std::string answer;
  const grpc::Status status = call.Unary("x", &answer);
  return absl::StrCat(status.error_code(), " ", status.error_message());
}

const std::string kGivenUp =
    absl::StrCat(grpc::StatusCode::UNAVAILABLE,
                 " no connection to the function within 300ms, at ");

TEST(UpstreamTest, CallWithoutDeadlineGivesUpConnectingUnaryOrStream) {
  DeadAddress dead;
  ::fncache::testing::TempDir dir;
  for (const std::string& target :
       {dead.target(), "ipv4:" + dead.target(), "dns:///" + dead.target(),
        "unix:" + dir.File("none.sock"), std::string("no-such-host.invalid:1"),
        // No server answers there; at most a router says so.
        std::string("ipv4:192.0.2.1:9")}) {
    UnaryUpstream proxy(Dead(target));
    for (const char* method : {kRunFunctionV1, "/t.T/Count"}) {
      EXPECT_THAT(CodeOf(proxy.channel(), method),
                  ::testing::StartsWith(kGivenUp + target));
    }
  }
}

TEST(UpstreamTest, CallWithADeadlineWaitsUntilThen) {
  DeadAddress dead;
  UnaryUpstream proxy(Dead(dead.target()));
  for (const char* method : {kRunFunctionV1, "/t.T/Count"}) {
    TestCall call(proxy.channel(), method);
    const absl::Time start = absl::Now();
    call.context().set_deadline(
        absl::ToChronoTime(start + absl::Milliseconds(600)));
    std::string answer;
    EXPECT_EQ(call.Unary("x", &answer).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
    EXPECT_GE(absl::Now() - start, absl::Milliseconds(590));
  }
  EXPECT_TRUE(Eventually([&] { return proxy.listener().calls() == 0; }));
}

TEST(UpstreamTest, OnceStartedACallWithoutDeadlineHasNone) {
  ::fncache::testing::TempDir dir;
  const std::string socket = "unix:" + dir.File("f.sock");
  for (const bool unix_socket : {false, true}) {
    TestFunction function(grpc::InsecureServerCredentials(),
                          unix_socket ? socket : "127.0.0.1:0");
    UpstreamOptions options;
    options.target =
        unix_socket ? socket : absl::StrCat("ipv4:", function.target());
    options.connect_limit = absl::Milliseconds(500);
    UnaryUpstream proxy(options);
    TestCall call(proxy.channel(), "/t.T/Stall");
    ASSERT_TRUE(call.Start());
    TestCall echo(proxy.channel(), "/t.T/Echo");
    ASSERT_TRUE(echo.Start());
    ASSERT_TRUE(Eventually([&] { return function.calls == 2; }));
    // The limit passes for both; a call that started after it proves that.
    const absl::Time until = absl::Now() + absl::Milliseconds(700);
    ASSERT_TRUE(Eventually([&] { return absl::Now() > until; }));
    EXPECT_EQ(function.cancelled, 0);
    EXPECT_TRUE(echo.Write("a"));
    std::string back;
    EXPECT_TRUE(echo.Read(&back));
    EXPECT_TRUE(echo.HalfClose());
    EXPECT_TRUE(echo.Finish().ok());
    call.context().TryCancel();
    call.Finish();
  }
}

TEST(UpstreamTest, FunctionThatGoesAndReturnsIsReachedAgain) {
  auto function = std::make_unique<TestFunction>();
  const std::string target = function->target();
  UnaryUpstream proxy(TestProxy::To(target));
  std::string answer;
  {
    TestCall call(proxy.channel(), "/t.T/Count");
    ASSERT_TRUE(call.Unary("x", &answer).ok());
  }
  function = nullptr;
  TestCall waiting(proxy.channel(), "/t.T/Count");
  waiting.context().set_deadline(std::chrono::system_clock::now() +
                                 std::chrono::seconds(60));
  ASSERT_TRUE(waiting.Start());
  ASSERT_TRUE(Eventually([&] { return proxy.listener().calls() == 1; }));
  const absl::Time returned = absl::Now();
  function =
      std::make_unique<TestFunction>(grpc::InsecureServerCredentials(), target);
  ASSERT_TRUE(waiting.Write("abc"));
  ASSERT_TRUE(waiting.HalfClose());
  ASSERT_TRUE(waiting.Read(&answer));
  EXPECT_EQ(answer, "1 3");
  // Connections are tried for five seconds at most; two minutes, as gRPC waits
  // between its own attempts, would be too long.
  EXPECT_LT(absl::Now() - returned, absl::Seconds(30));
  EXPECT_TRUE(waiting.Finish().ok());
}

TEST(UpstreamTest, UnaryStatusDetailsAndTrailersArrive) {
  TestFunction function;
  UnaryUpstream proxy(TestProxy::To(function.target()));
  // The function knows no RunFunction.
  EXPECT_EQ(CodeOf(proxy.channel(), kRunFunctionV1),
            absl::StrCat(grpc::StatusCode::UNIMPLEMENTED, " no such method"));
  EXPECT_EQ(proxy.handler().done, 1);
}

TEST(UpstreamTest, CallerThatLeavesCancelsAWaitingUnaryCall) {
  DeadAddress dead;
  UnaryUpstream proxy(TestProxy::To(dead.target()));
  TestCall call(proxy.channel(), kRunFunctionV1);
  ASSERT_TRUE(call.Start());
  ASSERT_TRUE(call.Write("x"));
  ASSERT_TRUE(Eventually([&] { return proxy.handler().started == 1; }));
  call.context().TryCancel();
  call.Finish();
  EXPECT_TRUE(Eventually([&] { return proxy.handler().done == 1; }));
  EXPECT_TRUE(Eventually([&] { return proxy.listener().calls() == 0; }));
}

// "HTTP2 Transport Mapping" in gRPC's PROTOCOL-HTTP2.md.
TEST(UpstreamTest, ResetsMeanWhatGrpcSaysTheyMean) {
  using grpc::StatusCode;
  EXPECT_EQ(StatusOfReset(http2::kNoError), StatusCode::INTERNAL);
  EXPECT_EQ(StatusOfReset(http2::kProtocolError), StatusCode::INTERNAL);
  EXPECT_EQ(StatusOfReset(http2::kRefusedStream), StatusCode::UNAVAILABLE);
  EXPECT_EQ(StatusOfReset(http2::kCancel), StatusCode::CANCELLED);
  EXPECT_EQ(StatusOfReset(http2::kEnhanceYourCalm),
            StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(StatusOfReset(http2::kInadequateSecurity),
            StatusCode::PERMISSION_DENIED);
}

}  // namespace
}  // namespace fncache::proxy::transport
