// What takes the function's place without speaking gRPC to the end: another web
// server, something in between that gives up.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/common/http2_server.h"
#include "tests/proxy/scripted.h"

namespace fncache::proxy {
namespace {

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
      Message(Response("t", "hello", 60).SerializeAsString());
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
    ScriptedStore store;
    CachingProxy proxy(function.target(), {}, &store);
    const auto channel = Connect(proxy.target());
    for (const char* path : {kV1Path, kV1Path, "/t.T/Other"}) {
      auto caller = std::make_shared<Caller>();
      caller->Start(channel, path, Request("a", "t"));
      EXPECT_EQ(caller->Wait().error_code(), grpc::StatusCode::UNKNOWN);
    }
    EXPECT_EQ(store.fills, 0);
    proxy.Stop();
  }
}

// Accepts a connection, speaks first, and then does not read.
class DeafServer {
 public:
  DeafServer() : listening_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int small = 4096;
    setsockopt(listening_, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listening_, any, size), 0);
    EXPECT_EQ(listen(listening_, 1), 0);
    EXPECT_EQ(getsockname(listening_, any, &size), 0);
    target_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  ~DeafServer() {
    HangUp();
    close(listening_);
  }
  const std::string& target() const { return target_; }
  // Once somebody connects.
  void Accept() {
    connection_ = accept(listening_, nullptr, nullptr);
    const std::string settings("\0\0\0\4\0\0\0\0\0", 9);
    EXPECT_EQ(send(connection_, settings.data(), settings.size(), MSG_NOSIGNAL),
              9);
  }
  // The peer has sent more than what begins a connection.
  bool IsTalkedTo() const {
    int bytes = 0;
    return ioctl(connection_, FIONREAD, &bytes) == 0 && bytes > 1000;
  }
  void HangUp() {
    if (connection_ >= 0) close(connection_);
    connection_ = -1;
  }

 private:
  const int listening_;
  int connection_ = -1;
  std::string target_;
};

// Answers RunFunction at once.
class AbortingHandler : public CallHandler {
 public:
  void StartRunFunction(IncomingCallPtr call) override {
    IncomingCall::FinishAndForget(
        std::move(call), grpc::Status(grpc::StatusCode::ABORTED, "at once"));
  }
};

// Headers that are never taken, as TCP is full: the call has long ended at its
// caller when that fails.
TEST(ForeignFunctionTest, ACallMayEndBeforeItHasStarted) {
  DeafServer function;
  AbortingHandler handler;
  TestProxy proxy(TestProxy::To(function.target()), /*workers=*/1, &handler);
  const auto channel = Connect(proxy.target());
  TestCall call(channel, "/t.T/Echo");
  // In parts: gRPC reads long values in quadratic time.
  for (int i = 0; i < 1000; ++i) {
    call.context().AddMetadata(absl::StrCat("k", i), std::string(8000, 'x'));
  }
  ASSERT_TRUE(call.Start());
  ASSERT_TRUE(call.Write("waits for the start"));
  function.Accept();
  ASSERT_TRUE(Eventually([&] { return function.IsTalkedTo(); }));
  // Behind the message on its connection: when it is answered, that is read.
  std::string answer;
  EXPECT_EQ(TestCall(channel, kV1Path).Unary("", &answer).error_code(),
            grpc::StatusCode::ABORTED);
  call.context().TryCancel();
  EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::CANCELLED);
  // As above: the caller's end is read.
  EXPECT_EQ(TestCall(channel, kV1Path).Unary("", &answer).error_code(),
            grpc::StatusCode::ABORTED);
  function.HangUp();
  // Waits for the call to be gone.
}

}  // namespace
}  // namespace fncache::proxy
