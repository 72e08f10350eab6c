// SPDX-License-Identifier: Apache-2.0
// Peers that take the function's place without speaking gRPC to the end:
// another web server, or something in between that gives up.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/common/deaf_server.h"
#include "tests/common/http2_server.h"
#include "tests/proxy/serving/scripted.h"

namespace fncache::proxy::transport {
namespace {

using ::fncache::testing::DeafServer;
using ::fncache::testing::Http2Frame;
using ::fncache::testing::Http2Header;
using ::fncache::testing::Http2Ok;
using ::fncache::testing::Http2Server;

std::string Message(const std::string& bytes) {
  return std::string(4, '\0') + static_cast<char>(bytes.size()) + bytes;
}

// A response that would be stored, or less, and then an end that says no
// status.
std::vector<std::vector<Http2Frame>> EndsWithoutStatus() {
  const std::string grpc =
      Http2Ok() + Http2Header("content-type", "application/grpc");
  const std::string html = Http2Ok() + Http2Header("content-type", "text/html");
  const std::string message =
      Message(serving::Response("t", "hello", 60).SerializeAsString());
  constexpr unsigned char end = Http2Frame::kEndStream;
  constexpr unsigned char headers = Http2Frame::kEndHeaders;
  return {
      {{Http2Frame::kHeaders, headers, grpc},
       {Http2Frame::kData, 0, message},
       {Http2Frame::kHeaders, headers | end, Http2Header("x-trail", "t")}},
      {{Http2Frame::kHeaders, headers, grpc},
       {Http2Frame::kData, end, message}},
      {{Http2Frame::kHeaders, headers | end, grpc}},
      {{Http2Frame::kHeaders, headers, html},
       {Http2Frame::kData, end, "<html></html>"}},
  };
}

TEST(ForeignFunctionTest, AnEndWithoutAStatusIsAnErrorAndIsNotStored) {
  for (const auto& answer : EndsWithoutStatus()) {
    Http2Server function(answer);
    serving::ScriptedStore store;
    serving::CachingProxy proxy(function.target(), {}, &store);
    const auto channel = Connect(proxy.target());
    for (const char* path : {kRunFunctionV1, kRunFunctionV1, "/t.T/Other"}) {
      auto caller = std::make_shared<serving::Caller>();
      caller->Start(channel, path, serving::Request("a", "t"));
      EXPECT_EQ(caller->Wait().error_code(), grpc::StatusCode::UNKNOWN);
    }
    EXPECT_EQ(store.fills, 0);
    proxy.Stop();
  }
}

// Answers RunFunction at once, and forwards the rest.
class AbortingHandler : public CallHandler {
 public:
  explicit AbortingHandler(Upstream* upstream) : others_(upstream) {}
  void StartCall(IncomingCallPtr call) override {
    if (call->method() == Method::kOther) {
      return others_.StartCall(std::move(call));
    }
    IncomingCall::Finish(std::move(call),
                         grpc::Status(grpc::StatusCode::ABORTED, "at once"));
  }

 private:
  ForwardingHandler others_;
};

// A function that takes the connection and says nothing: the call has long
// ended at its caller when that is given up.
TEST(ForeignFunctionTest, ACallMayEndBeforeItHasStarted) {
  DeafServer function;
  Upstream upstream(TestProxy::To(function.target()), nullptr, 1);
  AbortingHandler handler(&upstream);
  TestListener listener(&handler, /*workers=*/1);
  const auto channel = Connect(listener.address());
  TestCall call(channel, "/t.T/Echo");
  call.context().AddMetadata("k", std::string(8000, 'x'));
  ASSERT_TRUE(call.Start());
  ASSERT_TRUE(call.Write("waits for the start"));
  // This call comes behind the message on its connection: once it is answered,
  // the message has been read.
  std::string answer;
  EXPECT_EQ(TestCall(channel, kRunFunctionV1).Unary("", &answer).error_code(),
            grpc::StatusCode::ABORTED);
  call.context().TryCancel();
  EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::CANCELLED);
  // In the same way, the caller's end has been read once this is answered.
  EXPECT_EQ(TestCall(channel, kRunFunctionV1).Unary("", &answer).error_code(),
            grpc::StatusCode::ABORTED);
  // The listener's destruction waits for the call to be gone.
}

}  // namespace
}  // namespace fncache::proxy::transport
