// SPDX-License-Identifier: Apache-2.0
// Unary calls to libnghttp2's server over real sockets.
#include "runner/load/unary/connection.h"

#include <fcntl.h>
#include <time.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http2/loop.h"
#include "tests/common/loopback_socket.h"
#include "tests/common/server_peer.h"

namespace fncache::runner::load::unary {
namespace {

using ::fncache::testing::LoopbackSocket;
using ::fncache::testing::Pairs;
using ::fncache::testing::ServerPeer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr int64_t kTurn = 1'000'000;
constexpr int64_t kPatience = 20'000'000'000;

struct TestCall final : Call {
  void OnField(absl::string_view name, absl::string_view value) override {
    fields.emplace_back(std::string(name), std::string(value));
  }
  void OnBody(absl::string_view bytes) override {
    body.append(bytes.data(), bytes.size());
  }
  void OnEnd(const End& how) override {
    ++ends;
    end = how;
  }

  Pairs fields;
  std::string body;
  int ends = 0;
  End end;
};

class UnaryConnectionTest : public ::testing::Test, public Connection::User {
 protected:
  UnaryConnectionTest()
      : server_(listening_.target(), "/a.B/C", {{"x-more", "m"}}),
        connection_(&loop_, &server_, this) {
    listening_.Listen(8);
    Open();
  }

  // A connection that is served.
  void Open() {
    const absl::Status status = connection_.Open();
    ASSERT_TRUE(status.ok()) << status;
    const int fd = listening_.Accept();
    ASSERT_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    peer_ = std::make_unique<ServerPeer>(fd, ServerPeer::Options());
    EXPECT_FALSE(connection_.CanBegin());
    Until([this] { return connection_.CanBegin(); });
  }

  void OnCapacity(Connection& /*connection*/) override { ++rooms_; }
  void OnLost(Connection& /*connection*/, http2::ConnectionEnd end,
              const std::string& words) override {
    ++losses_;
    lost_ = end;
    words_ = words;
  }

  // Serves both ends until then.
  void Until(const std::function<bool()>& condition) {
    const int64_t until = ReadClock(CLOCK_MONOTONIC) + kPatience;
    while (!condition()) {
      ASSERT_LT(ReadClock(CLOCK_MONOTONIC), until);
      loop_.RunOnce(ReadClock(CLOCK_MONOTONIC) + kTurn);
      if (peer_ != nullptr) peer_->Turn();
    }
  }
  TestCall* Begin(std::string body) {
    bodies_.push_back(std::move(body));
    calls_.emplace_back();
    auto all = http2::Slice::Static(bodies_.back());
    std::vector<http2::Slice> parts = {all.TakeFront(all.size() / 2), all};
    connection_.Begin(&calls_.back(), absl::MakeSpan(parts));
    return &calls_.back();
  }
  TestCall* Made(std::string body) {
    TestCall* const call = Begin(std::move(body));
    Until([call] { return call->ends > 0; });
    return call;
  }

  const LoopbackSocket listening_;
  const Server server_;
  std::deque<std::string> bodies_;
  std::deque<TestCall> calls_;
  int rooms_ = 0;
  int losses_ = 0;
  http2::ConnectionEnd lost_ = http2::ConnectionEnd::kDone;
  std::string words_;
  std::unique_ptr<ServerPeer> peer_;
  http2::Loop loop_;
  Connection connection_;
};

TEST_F(UnaryConnectionTest, ACallIsTheServersToAnswer) {
  EXPECT_EQ(rooms_, 1);
  const TestCall* const call = Made("hello, hello");
  EXPECT_EQ(call->end.kind, End::Kind::kComplete);
  EXPECT_EQ(call->body, "hello, hello");
  EXPECT_THAT(call->fields,
              ElementsAre(Pair(":status", "200"),
                          Pair("content-type", "application/grpc"),
                          Pair("grpc-status", "0")));
  EXPECT_EQ(rooms_, 2);
  EXPECT_EQ(connection_.calls(), 0U);
  EXPECT_THAT(peer_->requests[1].headers,
              ElementsAre(Pair(":method", "POST"), Pair(":scheme", "http"),
                          Pair(":path", "/a.B/C"),
                          Pair(":authority", listening_.target()),
                          Pair("content-type", "application/grpc"),
                          Pair("user-agent", "fncache-load"),
                          Pair("te", "trailers"), Pair("x-more", "m")));
}

TEST_F(UnaryConnectionTest, ResetsAndRefusalsAreTold) {
  peer_->on_request = [this](int32_t id) {
    nghttp2_submit_rst_stream(
        peer_->session, NGHTTP2_FLAG_NONE, id,
        id == 1 ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_REFUSED_STREAM);
  };
  const TestCall* const calm = Made("x");
  EXPECT_EQ(calm->end.kind, End::Kind::kReset);
  EXPECT_EQ(calm->end.code, http2::kEnhanceYourCalm);
  EXPECT_EQ(Made("x")->end.kind, End::Kind::kRefused);
}

TEST_F(UnaryConnectionTest, AnEarlyAnswerEndsTheCallAndItsBody) {
  peer_->on_request = [](int32_t) {};
  const TestCall* const call = Begin(std::string(5'000'000, 'b'));
  Until([this] { return !peer_->requests[1].body.empty(); });
  peer_->Answer(1, "no");
  Until([this] { return !peer_->resets.empty(); });
  EXPECT_EQ(call->ends, 1);
  EXPECT_EQ(call->end.kind, End::Kind::kComplete);
  EXPECT_EQ(call->body, "no");
  EXPECT_THAT(peer_->resets, ElementsAre(Pair(1, NGHTTP2_CANCEL)));

  peer_->on_request = [this](int32_t id) { peer_->Answer(id, "yes"); };
  EXPECT_EQ(Made("x")->body, "yes");
}

TEST_F(UnaryConnectionTest, AConnectionThatWasToldToGoIsMadeAnew) {
  Made("x");
  nghttp2_submit_goaway(peer_->session, NGHTTP2_FLAG_NONE, 1, NGHTTP2_NO_ERROR,
                        nullptr, 0);
  Until([this] { return losses_ > 0; });
  EXPECT_EQ(lost_, http2::ConnectionEnd::kDone);
  EXPECT_EQ(words_, "the server goes away");
  EXPECT_FALSE(connection_.open());
  const uint64_t read = connection_.bytes_read();
  const uint64_t written = connection_.bytes_written();
  EXPECT_GT(read, 0U);
  EXPECT_GT(written, 0U);
  Open();
  EXPECT_EQ(Made("again")->body, "again");
  EXPECT_GT(connection_.bytes_read(), read);
  EXPECT_GT(connection_.bytes_written(), written);
}

TEST_F(UnaryConnectionTest, AServerThatLeavesIsNoEndThatItAskedFor) {
  // Without a call.
  peer_ = nullptr;
  Until([this] { return losses_ > 0; });
  EXPECT_EQ(lost_, http2::ConnectionEnd::kPeerLeft);
  EXPECT_EQ(words_, "the server closed the connection");
  // With one.
  Open();
  peer_->on_request = [](int32_t) {};
  const TestCall* const call = Begin("x");
  Until([this] { return !peer_->complete.empty(); });
  peer_ = nullptr;
  Until([this] { return losses_ > 1; });
  EXPECT_EQ(lost_, http2::ConnectionEnd::kPeerLeft);
  EXPECT_EQ(call->ends, 1);
  EXPECT_EQ(call->end.kind, End::Kind::kLost);
  EXPECT_EQ(call->end.why, "the server closed the connection");
  // With a GOAWAY that has an error.
  Open();
  nghttp2_submit_goaway(peer_->session, NGHTTP2_FLAG_NONE, 0,
                        NGHTTP2_INTERNAL_ERROR, nullptr, 0);
  Until([this] { return losses_ > 2; });
  EXPECT_EQ(lost_, http2::ConnectionEnd::kPeerLeft);
  EXPECT_THAT(words_, HasSubstr("the server ended the connection with "
                                "INTERNAL_ERROR"));
}

TEST_F(UnaryConnectionTest, ClosingEndsCallsWithItsWords) {
  peer_->on_request = [](int32_t) {};
  const TestCall* const call = Begin("x");
  connection_.Close("no answer in time");
  EXPECT_EQ(losses_, 1);
  EXPECT_EQ(lost_, http2::ConnectionEnd::kClosed);
  EXPECT_EQ(call->end.kind, End::Kind::kLost);
  EXPECT_EQ(call->end.why, "no answer in time");
}

TEST_F(UnaryConnectionTest, NobodyThereIsAnErrorInWords) {
  const LoopbackSocket deaf;  // bound, and not listened on
  const Server nobody(deaf.target(), "/a.B/C", {});
  Connection connection(&loop_, &nobody, this);
  const absl::Status status = connection.Open();
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("cannot connect to " + deaf.target() + ": Connection refused"));
  EXPECT_FALSE(connection.open());
}

}  // namespace
}  // namespace fncache::runner::load::unary
