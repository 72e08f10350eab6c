// SPDX-License-Identifier: Apache-2.0
#include "common/http_client.h"

#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/loopback_socket.h"

namespace fncache {
namespace {

using ::fncache::testing::LoopbackSocket;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Answers each connection's first request with these bytes, then closes it; or
// not at all while `answer` is empty.
class CannedServer {
 public:
  explicit CannedServer(std::string answer) : answer_(std::move(answer)) {
    socket_.Listen(8);
    thread_ = std::thread([this] {
      for (int fd = socket_.Accept(); fd >= 0; fd = socket_.Accept()) {
        char request[4096];
        if (recv(fd, request, sizeof request, 0) > 0 && !answer_.empty()) {
          send(fd, answer_.data(), answer_.size(), MSG_NOSIGNAL);
        } else {
          recv(fd, request, sizeof request, 0);  // until the client leaves
        }
        close(fd);
      }
    });
  }
  ~CannedServer() {
    socket_.Shutdown();
    thread_.join();
  }
  std::string url() const { return "http://" + socket_.target() + "/page"; }

 private:
  const std::string answer_;
  LoopbackSocket socket_;
  std::thread thread_;
};

HttpClient::Options Within(absl::Duration timeout) {
  HttpClient::Options options;
  options.timeout = timeout;
  return options;
}

TEST(HttpClientTest, AnyStatusIsAnAnswer) {
  const CannedServer server(
      "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nwait");
  const auto answer = HttpClient().Get(server.url(), Within(absl::Minutes(1)));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->body, "wait");
  EXPECT_FALSE(answer->too_large);
}

TEST(HttpClientTest, ABodyBeyondTheLimitIsCutOff) {
  const CannedServer server(
      "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabcdef");
  HttpClient::Options options = Within(absl::Minutes(1));
  options.most_bytes = 6;
  auto answer = HttpClient().Get(server.url(), options);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, "abcdef");
  EXPECT_FALSE(answer->too_large);
  options.most_bytes = 5;
  answer = HttpClient().Get(server.url(), options);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->too_large);
  EXPECT_LE(answer->body.size(), 5u);
}

TEST(HttpClientTest, ARedirectIsNotFollowed) {
  const CannedServer server(
      "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/there\r\n"
      "Content-Length: 0\r\n\r\n");
  const auto answer = HttpClient().Get(server.url(), Within(absl::Minutes(1)));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 302);
  EXPECT_EQ(answer->redirect, "http://127.0.0.1:1/there");
}

TEST(HttpClientTest, ErrorsBeginWithTheUrl) {
  const CannedServer cut_off(
      "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc");
  const CannedServer silent("");
  const LoopbackSocket closed;
  const std::string refused = "http://" + closed.target() + "/";
  HttpClient client;
  auto status = client.Get(cut_off.url(), Within(absl::Minutes(1))).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith(cut_off.url()));
  status = client.Get(refused, Within(absl::Minutes(1))).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith(refused));
  status = client.Get(silent.url(), Within(absl::Milliseconds(50))).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith(silent.url()));
}

TEST(HttpClientTest, AnotherThreadMayStopIt) {
  const CannedServer silent("");
  std::atomic<bool> stop{false};
  HttpClient::Options options = Within(absl::Minutes(10));
  options.stop = &stop;
  std::thread other([&] { stop = true; });
  const auto status = HttpClient().Get(silent.url(), options).status();
  other.join();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("cancelled"));
}

}  // namespace
}  // namespace fncache
