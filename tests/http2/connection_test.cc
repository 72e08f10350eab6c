// SPDX-License-Identifier: Apache-2.0
#include "http2/connection.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/http2/connection_test.h"

namespace fncache::http2 {
namespace {

using ::testing::HasSubstr;

TEST_F(ConnectionTest, BodiesOfAnySizeComeBackWithTrailers) {
  Start();
  for (const size_t size : {0, 1, 100, 16384, 65536, 100'000, 3'000'000}) {
    std::string body(size, '\0');
    for (size_t i = 0; i < size; ++i) body[i] = static_cast<char>(i * 31 >> 3);
    Request request("/echo", body);
    Begin(&request);
    request.Wait();
    EXPECT_EQ(request.end.kind, StreamEnd::Kind::kComplete) << size;
    EXPECT_EQ(request.status, "200");
    EXPECT_TRUE(request.answer == body) << size;
    // It was sent with a space at its end.
    EXPECT_EQ(request.trailer, "good");
  }
}

// If some pieces wait, and across event-loop iterations.
TEST_F(ConnectionTest, PiecesThatJoinArriveAsTheyWere) {
  Start();
  Request request("/echo", "first");
  request.stays_open = true;
  Begin(&request);
  // It is opened once there is a connection.
  for (bool open = false; !open;) {
    loop_.Do([&] { open = request.stream != nullptr; });
  }
  std::string all = "first";
  for (int turn = 0; turn < 50; ++turn) {
    loop_.Do([&] {
      for (int i = 0; i < 200; ++i) {
        // Some too large to join, and some by reference between them.
        const size_t size = i % 50 == 7 ? 3000 : i % 40;
        const std::string piece(size, static_cast<char>(turn * 7 + i));
        all += piece;
        if (i % 30 == 11) {
          request.stream->Send(Slice::Copy(piece));
        } else {
          request.stream->SendCopy(piece);
        }
      }
    });
  }
  loop_.Do([&] {
    EXPECT_LE(request.stream->unsent(), all.size());
    request.stream->End();
  });
  request.Wait();
  EXPECT_EQ(request.end.kind, StreamEnd::Kind::kComplete);
  EXPECT_TRUE(request.answer == all);
}

TEST_F(ConnectionTest, WhatIsNotReadWaitsAtTheSocket) {
  Start();
  Request first("/hang", "x");
  Begin(&first);
  ASSERT_TRUE(Eventually([&] { return handler_.last != nullptr; }));
  Connection* const connection = handler_.last;
  server_loop_.Do([&] { connection->SetReading(false); });
  Request second("/echo", "hello");
  Begin(&second);
  int waits = 0;
  ASSERT_TRUE(Eventually([&] {
    return ioctl(connection->fd(), FIONREAD, &waits) == 0 && waits > 0;
  }));
  for (int turn = 0; turn < 10; ++turn) server_loop_.Do([] {});
  EXPECT_EQ(handler_.requests, 1);
  server_loop_.Do([&] { connection->SetReading(true); });
  second.Wait();
  EXPECT_EQ(second.answer, "hello");
  // Nothing is kept of a connection that is lost meanwhile.
  server_loop_.Do([&] { connection->SetReading(false); });
  loop_.Do([&] { first.stream->connection().Close("gone"); });
  first.Wait();
  EXPECT_TRUE(Eventually([&] { return handler_.running == 0; }));
}

TEST_F(ConnectionTest, UnixSocketsServe) {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/h2-", getpid(), ".sock");
  Start(absl::StrCat("unix:", path));
  Request request("/echo", "hello");
  Begin(&request);
  request.Wait();
  EXPECT_EQ(request.answer, "hello");
}

TEST_F(ConnectionTest, CallsBeyondAPeersLimitGetMoreConnections) {
  server_options_.connection.max_streams = 4;
  Start();
  std::vector<std::unique_ptr<Request>> hanging;
  for (int i = 0; i < 20; ++i) {
    hanging.push_back(std::make_unique<Request>("/hang", "x"));
    Begin(hanging.back().get());
  }
  EXPECT_TRUE(Eventually([&] { return handler_.running == 20; }));
  EXPECT_GE(server_->connections(), 5u);
  loop_.Do([&] {
    for (const auto& one : hanging) one->stream->Reset(kCancel);
  });
  for (const auto& one : hanging) {
    one->Wait();
    EXPECT_EQ(one->end.kind, StreamEnd::Kind::kReset);
  }
  EXPECT_TRUE(Eventually([&] { return handler_.running == 0; }));
  EXPECT_EQ(handler_.resets, 20);
}

TEST_F(ConnectionTest, ARefusedStreamWasNotProcessed) {
  Start();
  handler_.refusals = 1;
  Request request("/refuse", "x");
  Begin(&request);
  request.Wait();
  EXPECT_EQ(request.end.kind, StreamEnd::Kind::kPeerReset);
  EXPECT_EQ(request.end.code, kRefusedStream);
  EXPECT_TRUE(request.end.unprocessed);
}

TEST_F(ConnectionTest, AHeaderBlockBeyondTheLimitFailsAlone) {
  Start();
  Request large("/echo", "x");
  // Packed, it is small enough for nghttp2's client to send it.
  for (int i = 0; i < 24; ++i) {
    large.more.emplace_back(absl::StrCat("x-", i), std::string(4000, '0'));
  }
  Begin(&large);
  large.Wait();
  EXPECT_EQ(large.status, "431");
  Request next("/echo", "y");
  Begin(&next);
  next.Wait();
  EXPECT_EQ(next.answer, "y");
}

TEST_F(ConnectionTest, AHeaderBlockThatCannotBeSentEndsItsStream) {
  Start();
  Request large("/echo", "x");
  large.more.emplace_back("x-large", std::string(300'000, 'v'));
  Begin(&large);
  large.Wait();
  EXPECT_EQ(large.status, "");
  EXPECT_FALSE(large.end.unprocessed);
  Request next("/echo", "y");
  Begin(&next);
  next.Wait();
  EXPECT_EQ(next.answer, "y");
}

// A handler that wants a stream's fields gets them; others get none.
TEST(StreamTest, FieldsAreTakenAndTrailersDropped) {
  // Answers with how many trailers it was shown.
  struct Handler final : Server::Handler, StreamUser {
    StreamUser* OnRequest(Stream& stream) override {
      stream.KeepTrailers(stream.fields().Find(":path") == "/keep");
      const Fields fields = stream.TakeFields();
      EXPECT_FALSE(fields.empty());
      EXPECT_TRUE(stream.fields().empty());
      return this;
    }
    int busy() const override { return 0; }
    void OnData(Stream& stream, absl::string_view bytes) override {
      stream.Consume(bytes.size());
    }
    void OnTrailers(Stream& stream) override {
      shown = stream.trailers().size();
    }
    void OnPeerEnd(Stream& stream) override {
      Fields fields;
      fields.Add(":status", absl::StrCat(200 + shown));
      stream.Answer(fields, /*end=*/true);
    }
    void OnClosed(Stream& /*stream*/, const StreamEnd& /*end*/) override {}
    size_t shown = 99;
  };
  Handler handler;
  RunningLoop server_loop;
  auto server = *Server::Listen("127.0.0.1:0", ServerOptions());
  server->Start({{server_loop.loop(), &handler}});
  ClientOptions options;
  options.connection.server = false;
  RunningLoop loop;
  std::unique_ptr<Client> client;
  for (const auto& [path, status] :
       std::vector<std::pair<std::string, std::string>>{{"/keep", "202"},
                                                        {"/drop", "200"}}) {
    Request request(path, "x");
    request.stays_open = true;
    loop.Do([&] {
      if (client == nullptr) {
        client = std::make_unique<Client>(
            loop.loop(), *ParseTarget(server->address()), &options);
      }
      Connection* const connection = client->Take();
      if (connection != nullptr) return request.OnConnection(*connection);
      client->Wait(&request);
    });
    ASSERT_TRUE(Eventually([&] {
      bool open = false;
      loop.Do([&] {
        if (request.stream == nullptr) return;
        open = true;
        Fields trailers;
        trailers.Add("x-a", "1");
        trailers.Add("x-b", "2");
        request.stream->EndWith(std::move(trailers));
      });
      return open;
    }));
    request.Wait();
    EXPECT_EQ(request.status, status);
  }
  loop.Do([&] { client = nullptr; });
  server->Stop();
  server->Join();
}

TEST_F(ConnectionTest, AStoppingServerLetsCallsFinish) {
  Start();
  Request first("/echo", "x");
  Begin(&first);
  first.Wait();
  Request hanging("/hang", "x");
  Begin(&hanging);
  ASSERT_TRUE(Eventually([&] { return handler_.running == 1; }));
  server_->Stop();
  EXPECT_TRUE(Eventually([&] {
    size_t ready = 1;
    loop_.Do([&] { ready = client_->ready(); });
    return ready == 0;
  }));
  EXPECT_EQ(handler_.running, 1);
  loop_.Do([&] { hanging.stream->Reset(kCancel); });
  hanging.Wait();
  EXPECT_TRUE(Eventually([&] { return server_->connections() == 0; }));
}

TEST_F(ConnectionTest, WhyNothingListensIsTold) {
  // An unused port: bound, and not listened on.
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_storage address = {};
  address.ss_family = AF_INET;
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), 16), 0);
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&address);
  Connect(absl::StrCat("127.0.0.1:", bytes[2] * 256 + bytes[3]));
  Request request("/echo", "x");
  Begin(&request);
  EXPECT_TRUE(Eventually([&] { return !why().empty(); }));
  EXPECT_THAT(why(), HasSubstr("Connection refused"));
  loop_.Do([&] { client_->Forget(&request); });
  close(fd);
}

}  // namespace
}  // namespace fncache::http2
