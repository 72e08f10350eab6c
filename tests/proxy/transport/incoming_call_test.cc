// SPDX-License-Identifier: Apache-2.0
#include "proxy/transport/incoming_call.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/http2_server.h"
#include "tests/proxy/loopback.h"

namespace fncache::proxy::transport {
namespace {

using ::fncache::testing::Http2Bytes;
using ::fncache::testing::Http2Frame;
using ::fncache::testing::Http2Header;
using ::testing::HasSubstr;

constexpr char kMethod[] =
    "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";

// Reads each request, and answers with what came of that.
class ReadingHandler : public CallHandler {
 public:
  void StartCall(IncomingCallPtr call) override {
    auto kept = std::make_shared<IncomingCallPtr>(std::move(call));
    (*kept)->Read([this, kept](const grpc::Status& status) {
      {
        MutexLock lock(&mutex_);
        read_.push_back(status);
      }
      IncomingCall::Finish(std::move(*kept), status);
    });
  }
  std::vector<grpc::Status> read() {
    MutexLock lock(&mutex_);
    return read_;
  }

 private:
  Mutex mutex_;
  std::vector<grpc::Status> read_;
};

// Sends the start of a request, and no more.
class PartialCaller {
 public:
  explicit PartialCaller(const std::string& port)
      : connection_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int number = 0;
    EXPECT_TRUE(absl::SimpleAtoi(port, &number));
    address.sin_port = htons(number);
    EXPECT_EQ(connect(connection_, reinterpret_cast<sockaddr*>(&address),
                      sizeof address),
              0);
    const std::string first = std::string(3, '\0') + '\1';
    const std::string bytes = absl::StrCat(
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        Http2Bytes({Http2Frame::kSettings, 0, ""}, std::string(4, '\0')),
        Http2Bytes({Http2Frame::kHeaders, Http2Frame::kEndHeaders,
                    absl::StrCat(
                        // POST, http
                        "\x83\x86", Http2Header(":path", kMethod),
                        Http2Header(":authority", "function"),
                        Http2Header("content-type", "application/grpc"))},
                   first),
        Http2Bytes({Http2Frame::kData, 0,
                    absl::StrCat(std::string(3, '\0'), "\x10",
                                 std::string(1, 0), "the first of 4096 bytes")},
                   first));
    EXPECT_EQ(send(connection_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  ~PartialCaller() { close(connection_); }
  PartialCaller(const PartialCaller&) = delete;
  PartialCaller& operator=(const PartialCaller&) = delete;

 private:
  const int connection_;
};

class IncomingCallTest : public ::testing::Test {
 protected:
  bool Holds(size_t bytes) {
    return Eventually([&] { return inflight_.reading() >= bytes; });
  }

  Inflight inflight_{8 << 20, 3};  // reading 1 MiB
  ReadingHandler handler_;
  TestListener listener_{&handler_, 2, nullptr, &inflight_};
  // Counts for others.
  const std::unique_ptr<Worker> worker_ = std::make_unique<Worker>(2);
  Held others_{&inflight_, Inflight::Share::kReading, worker_.get()};
};

// Small ones, which never asked for room, too.
TEST_F(IncomingCallTest, RequestThatStopsComingIsEndedWhileOthersWait) {
  const absl::Time start = absl::Now();
  PartialCaller caller(listener_.port());
  ASSERT_TRUE(Holds(20));
  others_.Set(2 << 20);
  ASSERT_TRUE(Eventually([&] { return !handler_.read().empty(); }));
  EXPECT_GE(absl::Now() - start, absl::Seconds(10));
  const grpc::Status status = handler_.read().front();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("stopped coming"));
  others_.Set(0);
  EXPECT_TRUE(Eventually([&] { return inflight_.reading() == 0; }));
}

TEST_F(IncomingCallTest, RequestThatStopsComingStaysWhileNobodyWaits) {
  const absl::Time start = absl::Now();
  PartialCaller caller(listener_.port());
  ASSERT_TRUE(Holds(20));
  // It is looked at after ten seconds, and again each second.
  EXPECT_FALSE(Eventually([&] { return !handler_.read().empty(); },
                          absl::Milliseconds(11'500)));
  others_.Set(2 << 20);
  EXPECT_TRUE(Eventually([&] { return !handler_.read().empty(); }));
  EXPECT_GE(absl::Now() - start, absl::Seconds(11));
}

TEST_F(IncomingCallTest, LargeMetadataIsCountedAndRefusedWhereAllIsHeld) {
  const auto channel = Connect(listener_.address());
  TestCall call(channel, kMethod);
  call.context().AddMetadata("x-big", std::string(20'000, 'm'));
  ASSERT_TRUE(call.Start());
  EXPECT_TRUE(Holds(60'000));
  others_.Set(9 << 20);
  TestCall refused(channel, kMethod);
  refused.context().AddMetadata("x-big", std::string(20'000, 'm'));
  std::string answer;
  EXPECT_EQ(refused.Unary("x", &answer).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(inflight_.refused(), 1u);
  TestCall usual(channel, kMethod);
  EXPECT_TRUE(usual.Unary("x", &answer).error_code() !=
              grpc::StatusCode::RESOURCE_EXHAUSTED);
  others_.Set(0);
  call.context().TryCancel();
  EXPECT_TRUE(Eventually([&] { return inflight_.reading() == 0; }));
}

}  // namespace
}  // namespace fncache::proxy::transport
