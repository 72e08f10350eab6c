// SPDX-License-Identifier: Apache-2.0
// Callers whose requests gRPC's own client would not send.
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "http2/server.h"
#include "http2/stream.h"
#include "proxy/daemon.h"
#include "tests/common/deaf_server.h"
#include "tests/common/http2_server.h"
#include "tests/common/loopback_socket.h"
#include "tests/http2/connection_test.h"
#include "tests/proxy/loopback.h"
#include "tests/proxy/serving/scripted.h"
#include "tests/proxy/start_daemon.h"
#include "tests/proxy/transport/raw_call.h"

namespace fncache::proxy::transport {
namespace {

using ::fncache::testing::Http2Bytes;
using ::fncache::testing::Http2Frame;
using ::fncache::testing::Http2Header;
using ::fncache::testing::Http2Ok;
using ::fncache::testing::Http2Server;
using ::testing::HasSubstr;

// Decompressors of header blocks.
class Inflater {
 public:
  Inflater() { EXPECT_EQ(nghttp2_hd_inflate_new(&inflater_), 0); }
  ~Inflater() { nghttp2_hd_inflate_del(inflater_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // The fields of the next block, a line each.
  std::string Lines(std::string block) {
    std::string lines;
    auto* bytes = reinterpret_cast<uint8_t*>(block.data());
    size_t left = block.size();
    for (int flags = 0; (flags & NGHTTP2_HD_INFLATE_FINAL) == 0;) {
      nghttp2_nv field;
      const ssize_t n = nghttp2_hd_inflate_hd2(inflater_, &field, &flags, bytes,
                                               left, /*in_final=*/1);
      if (n < 0) break;
      bytes += n;
      left -= static_cast<size_t>(n);
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0) continue;
      absl::StrAppend(
          &lines,
          absl::string_view(reinterpret_cast<char*>(field.name), field.namelen),
          ": ",
          absl::string_view(reinterpret_cast<char*>(field.value),
                            field.valuelen),
          "\n");
    }
    nghttp2_hd_inflate_end_headers(inflater_);
    return lines;
  }

 private:
  nghttp2_hd_inflater* inflater_ = nullptr;
};

// A connection of its own, and on it stream 1.
class ForeignCaller {
 public:
  // Sends `bytes` behind the greeting.
  ForeignCaller(const std::string& target, const std::string& bytes)
      : connection_(ConnectTo(target.substr(target.rfind(':') + 1))) {
    EXPECT_TRUE(SendAll(connection_, Greeting() + bytes));
  }
  // A RunFunction call with this grpc-timeout.
  ForeignCaller(const std::string& target, const std::string& timeout,
                const std::string& request)
      : ForeignCaller(
            target,
            absl::StrCat(
                CallHead(1, kRunFunctionV1,
                         absl::StrCat(Http2Header("te", "trailers"),
                                      Http2Header("grpc-timeout", timeout))),
                CallData(1, MessageHead(request.size()) + request, true))) {}
  ~ForeignCaller() { close(connection_); }
  ForeignCaller(const ForeignCaller&) = delete;
  ForeignCaller& operator=(const ForeignCaller&) = delete;

  // Reads until a header block has come that says a status; returns all blocks
  // as lines.
  std::string ReadStatus() {
    Inflater inflater;
    std::string lines;
    while (lines.find("grpc-status: ") == std::string::npos) {
      const auto [head, payload] = ReadFrame();
      if (head.empty()) break;
      if (head[3] == Http2Frame::kHeaders) lines += inflater.Lines(payload);
    }
    return lines;
  }
  // Reads until the stream is reset, or the connection ends; returns the code,
  // and how many bytes of a body came before it.
  std::pair<std::string, size_t> ReadReset() const {
    size_t body = 0;
    while (true) {
      const auto [head, payload] = ReadFrame();
      if (head.empty()) return {"", body};
      if (head[3] == Http2Frame::kData) body += payload.size();
      if (head[3] == Http2Frame::kReset) return {payload, body};
    }
  }
  bool Send(const std::string& bytes) const {
    return SendAll(connection_, bytes);
  }
  // Reads until `most` bytes of a body have come, or the stream or the
  // connection has ended. Returns the number of bytes.
  size_t ReadBody(size_t most) const {
    size_t body = 0;
    while (body < most) {
      const auto [head, payload] = ReadFrame();
      if (head.empty()) break;
      if (head[3] == Http2Frame::kData) body += payload.size();
      if (head[3] == Http2Frame::kReset ||
          (head[3] <= Http2Frame::kHeaders &&
           (head[4] & Http2Frame::kEndStream) != 0)) {
        break;
      }
    }
    return body;
  }
  // Reads until `text` has come, or the connection ends; returns all of it.
  std::string ReadUntil(const std::string& text) {
    std::string bytes;
    char piece[4096];
    while (bytes.find(text) == std::string::npos) {
      const ssize_t n = recv(connection_, piece, sizeof piece, 0);
      if (n <= 0) break;
      bytes.append(piece, n);
    }
    return bytes;
  }

 private:
  // The head of a frame, empty at the end, and what is in it.
  std::pair<std::string, std::string> ReadFrame() const {
    const std::string head = ReadExactly(9);
    if (head.empty()) return {};
    return {head, ReadExactly(static_cast<unsigned char>(head[1]) << 8 |
                              static_cast<unsigned char>(head[2]))};
  }
  std::string ReadExactly(size_t size) const {
    std::string bytes(size, '\0');
    const ssize_t n = recv(connection_, bytes.data(), size, MSG_WAITALL);
    return n == static_cast<ssize_t>(size) ? bytes : "";
  }
  const int connection_;
};

TEST(ForeignCallerTest, ADeadlineThatNoClockWillSeeIsWaitedFor) {
  for (const char* const timeout : {"2562047H", "99999999H"}) {
    serving::ScriptedFunction function;
    serving::ScriptedStore store;
    serving::CachingProxy proxy(function.target(), {}, &store);
    ForeignCaller first(proxy.target(), timeout, serving::Request("a", "t"));
    const serving::FunctionCallPtr call = function.Next();
    ForeignCaller joined(proxy.target(), timeout, serving::Request("a", "t"));
    EXPECT_TRUE(Eventually([&] { return proxy.flights().callers == 2; }));
    call->Answer(serving::Response("t", "hello", 60).SerializeAsString());
    EXPECT_THAT(first.ReadUntil("hello"), HasSubstr("hello"));
    EXPECT_THAT(joined.ReadUntil("hello"), HasSubstr("hello"));
    EXPECT_EQ(function.calls(), 1);
    proxy.Stop();
  }
}

// A caller that waits for a connection, of its own call or of another caller's,
// gets an error that says what it waited for.
TEST(ForeignCallerTest, ACallThatWaitedInVainIsToldForWhat) {
  const ::fncache::testing::LoopbackSocket dead;
  serving::ScriptedStore store;
  serving::CachingProxy proxy(dead.target(), {}, &store);
  ForeignCaller first(proxy.target(), "3S", serving::Request("a", "t"));
  ASSERT_TRUE(Eventually([&] { return proxy.flights().callers == 1; }));
  ForeignCaller joined(proxy.target(), "2900m", serving::Request("a", "t"));
  for (ForeignCaller* const caller : {&joined, &first}) {
    const std::string answer = caller->ReadStatus();
    EXPECT_THAT(answer, HasSubstr("grpc-status: 4\n"));
    EXPECT_THAT(answer,
                HasSubstr(absl::StrCat(
                    "grpc-message: Deadline Exceeded while waiting for a "
                    "connection to the function at ",
                    dead.target(), ": ", dead.target(), ": cannot connect: ")));
  }
  proxy.Stop();
}

// The error of a call that its function has does not mention connections.
TEST(ForeignCallerTest, ACallThatTheFunctionHasIsNotToldOfConnections) {
  serving::ScriptedFunction function;
  serving::ScriptedStore store;
  serving::CachingProxy proxy(function.target(), {}, &store);
  // The first one makes the connection, which the others find.
  std::vector<serving::FunctionCallPtr> calls;
  for (const char* const text : {"a", "b", "c"}) {
    // A call that a busy machine delays beyond its deadline does not reach the
    // function: the next one has more time.
    for (const char* const timeout : {"900m", "9S", "90S"}) {
      ForeignCaller caller(proxy.target(), timeout,
                           serving::Request(text, "t"));
      const std::string answer = caller.ReadStatus();
      if (!Eventually([&] { return function.waiting() > 0; },
                      absl::Seconds(1))) {
        continue;
      }
      calls.push_back(function.Next());
      EXPECT_THAT(answer, HasSubstr("grpc-message: Deadline Exceeded\n"));
      break;
    }
  }
  EXPECT_EQ(calls.size(), 3u);
  proxy.Stop();
}

// If a request names another format than protobuf, or two encodings, only the
// function can read it. Its answer goes to no other caller.
TEST(ForeignCallerTest, WhatOnlyTheFunctionCanReadIsNotKeyed) {
  const std::string type = Http2Header("content-type", "application/grpc");
  for (const std::string& fields :
       {Http2Header("content-type", "application/grpc+json"),
        Http2Header("content-type", "application/grpc+x; a=b"),
        type + Http2Header("content-type", "application/grpc+json"),
        type + Http2Header("grpc-encoding", "identity") +
            Http2Header("grpc-encoding", "gzip")}) {
    const std::string response =
        serving::Response("t", "hello", 60).SerializeAsString();
    Http2Server function(
        {{Http2Frame::kHeaders, Http2Frame::kEndHeaders, Http2Ok() + type},
         {Http2Frame::kData, 0, MessageHead(response.size()) + response},
         {Http2Frame::kHeaders,
          Http2Frame::kEndHeaders | Http2Frame::kEndStream,
          Http2Header("grpc-status", "0")}});
    serving::ScriptedStore store;
    serving::CachingProxy proxy(function.target(), {}, &store);
    const std::string request = serving::Request("a", "t");
    for (int call = 0; call < 2; ++call) {
      ForeignCaller caller(
          proxy.target(),
          absl::StrCat(
              Http2Bytes({Http2Frame::kHeaders, Http2Frame::kEndHeaders,
                          absl::StrCat("\x83\x86",  // POST, http
                                       Http2Header(":path", kRunFunctionV1),
                                       Http2Header(":authority", "f"), fields)},
                         BigEndian(1)),
              CallData(1, MessageHead(request.size()) + request, true)));
      EXPECT_THAT(caller.ReadStatus(), HasSubstr("fwd=bypass\n"));
    }
    EXPECT_EQ(store.fills, 0);
    proxy.Stop();
  }
}

// A relayed call's caller has what came before the function's reset, and then
// its code.
TEST(ForeignCallerTest, AResetPassesBehindWhatTheFunctionSent) {
  const std::string headers =
      Http2Ok() + Http2Header("content-type", "application/grpc");
  const Http2Frame answer = {Http2Frame::kHeaders, Http2Frame::kEndHeaders,
                             headers};
  const Http2Frame body = {Http2Frame::kData, 0, std::string(16'000, 'x')};
  for (const uint32_t code : {2, 8, 11}) {
    const Http2Frame reset = {Http2Frame::kReset, 0, BigEndian(code)};
    for (const auto& frames : std::vector<std::vector<Http2Frame>>{
             {reset},
             {answer, reset},
             {answer, body, body, body, reset},
         }) {
      Http2Server function(frames);
      serving::ScriptedStore store;
      serving::CachingProxy proxy(function.target(), {}, &store);
      const ForeignCaller caller(
          proxy.target(),
          CallHead(1, "/t.T/Other") + CallData(1, MessageHead(0), true));
      EXPECT_EQ(caller.ReadReset(),
                std::make_pair(BigEndian(code),
                               frames.size() == 5 ? size_t{48'000} : 0));
      proxy.Stop();
    }
  }
}

// No client would read a status behind an incomplete message.
TEST(ForeignCallerTest, ADeadlineAmidAMessageIsAReset) {
  Http2Server function(
      {{Http2Frame::kHeaders, Http2Frame::kEndHeaders,
        Http2Ok() + Http2Header("content-type", "application/grpc")},
       {Http2Frame::kData, 0, MessageHead(1000) + "a part of it"}});
  serving::ScriptedStore store;
  serving::CachingProxy proxy(function.target(), {}, &store);
  const ForeignCaller caller(
      proxy.target(),
      CallHead(1, "/t.T/Other", Http2Header("grpc-timeout", "1S")) +
          CallData(1, MessageHead(0), true));
  EXPECT_EQ(caller.ReadReset(), std::make_pair(BigEndian(8), size_t{17}));
  proxy.Stop();
}

// A function that takes requests whole; others say what it answers.
class WholeFunction : public http2::Server::Handler, public http2::StreamUser {
 public:
  const std::string& address() const { return server_->address(); }
  http2::StreamUser* OnRequest(http2::Stream& /*stream*/) override {
    return this;
  }
  int busy() const override { return 0; }
  void OnData(http2::Stream& stream, absl::string_view bytes) override {
    stream.Consume(bytes.size());
  }
  void OnClosed(http2::Stream& /*stream*/,
                const http2::StreamEnd& /*end*/) override {}

 protected:
  WholeFunction() { server_->Start({{loop_.loop(), this}}); }
  ~WholeFunction() {
    server_->Stop();
    server_->Join();
  }
  static http2::Fields Head() {
    http2::Fields fields;
    fields.Add(":status", "200");
    fields.Add("content-type", "application/grpc");
    return fields;
  }

 private:
  http2::RunningLoop loop_;
  std::unique_ptr<http2::Server> server_ =
      *http2::Server::Listen("127.0.0.1:0", http2::ServerOptions());
};

// Answers a call when it is complete, and keeps its trailers.
class TrailerReader final : public WholeFunction {
 public:
  void OnTrailers(http2::Stream& stream) override {
    MutexLock lock(&mutex_);
    value_ = std::string(stream.trailers().Find("x-last"));
  }
  void OnPeerEnd(http2::Stream& stream) override {
    http2::Fields fields = Head();
    fields.Add("grpc-status", "0");
    stream.Answer(fields, /*end=*/true);
  }
  std::string value() {
    MutexLock lock(&mutex_);
    return value_;
  }

 private:
  Mutex mutex_;
  std::string value_ ABSL_GUARDED_BY(mutex_);
};

// A call without a message on stream 1, with these trailers.
std::string CallWithTrailers(const std::string& fields) {
  return absl::StrCat(
      CallHead(1, "/t.T/Hang"), CallData(1, MessageHead(0)),
      Http2Bytes({Http2Frame::kHeaders,
                  Http2Frame::kEndHeaders | Http2Frame::kEndStream, fields},
                 BigEndian(1)));
}

// No library of gRPC sends them, and a relayed call's are passed on.
TEST(ForeignCallerTest, TrailersOfARequestPass) {
  TrailerReader function;
  serving::ScriptedStore store;
  serving::CachingProxy proxy(function.address(), {}, &store);
  ForeignCaller caller(proxy.target(),
                       CallWithTrailers(Http2Header("x-last", "v")));
  EXPECT_THAT(caller.ReadStatus(), HasSubstr("grpc-status: 0\n"));
  EXPECT_EQ(function.value(), "v");

  // 34 bytes each, as they are counted (RFC 9113, 6.5.2).
  std::string many;
  for (int i = 0; i < 2000; ++i) many += Http2Header("x", "v");
  ForeignCaller large(proxy.target(), CallWithTrailers(many));
  const std::string refusal = large.ReadStatus();
  EXPECT_THAT(refusal, HasSubstr("grpc-status: 8\n"));
  EXPECT_THAT(refusal,
              HasSubstr("trailers are larger than max_metadata_bytes"));
  proxy.Stop();
}

// RFC 9113, 8.2.1: values have no blanks at their ends. Peers that send them
// all the same are served, and the next peer does not see them.
TEST(ForeignCallerTest, BlanksAroundValuesOfARequestAreStripped) {
  Http2Server function(
      {{Http2Frame::kHeaders, Http2Frame::kEndHeaders | Http2Frame::kEndStream,
        absl::StrCat(Http2Ok(), Http2Header("content-type", "application/grpc"),
                     Http2Header("grpc-status", "0"))}});
  serving::ScriptedStore store;
  serving::CachingProxy proxy(function.target(), {}, &store);
  const std::string fields = absl::StrCat(
      Http2Header("te", "trailers"),
      Http2Header("cache-control", "\t no-store "),
      Http2Header("x-blank", " \t a \t b\t "), Http2Header("x-empty", " \t "));
  const std::string request = serving::Request("a", "t");
  const std::string data = MessageHead(request.size()) + request;
  ForeignCaller keyed(proxy.target(), CallHead(1, kRunFunctionV1, fields) +
                                          CallData(1, data, /*end=*/true));
  const std::string answer = keyed.ReadStatus();
  EXPECT_THAT(answer, HasSubstr("grpc-status: 0\n"));
  EXPECT_THAT(answer, HasSubstr("fwd=request"));
  ForeignCaller relayed(
      proxy.target(),
      absl::StrCat(CallHead(1, "/t.T/Relayed", fields), CallData(1, data),
                   Http2Bytes({Http2Frame::kHeaders,
                               Http2Frame::kEndHeaders | Http2Frame::kEndStream,
                               Http2Header("x-last", "\tv ")},
                              BigEndian(1))));
  EXPECT_THAT(relayed.ReadStatus(), HasSubstr("grpc-status: 0\n"));

  // Both calls, on one connection to the function.
  const std::vector<std::string> blocks = function.blocks();
  ASSERT_EQ(blocks.size(), 3u);
  Inflater inflater;
  for (int call = 0; call < 2; ++call) {
    const std::string lines = inflater.Lines(blocks[call]);
    EXPECT_THAT(lines, HasSubstr("\ncache-control: no-store\n"));
    EXPECT_THAT(lines, HasSubstr("\nx-blank: a \t b\n"));
    EXPECT_THAT(lines, HasSubstr("\nx-empty: \n"));
  }
  EXPECT_EQ(inflater.Lines(blocks[2]), "x-last: v\n");
  proxy.Stop();
}

TEST(ForeignCallerTest, BlanksAroundValuesOfAnAnswerAreStripped) {
  const std::string response =
      serving::Response("t", "hello", 60).SerializeAsString();
  constexpr unsigned char headers = Http2Frame::kEndHeaders;
  Http2Server function(
      {{Http2Frame::kHeaders, headers,
        absl::StrCat(Http2Ok(),
                     Http2Header("content-type", "\t application/grpc "),
                     Http2Header("x-blank", " \t a \t b\t "),
                     Http2Header("x-empty", " \t "))},
       {Http2Frame::kData, 0, MessageHead(response.size()) + response},
       {Http2Frame::kHeaders, headers | Http2Frame::kEndStream,
        absl::StrCat(Http2Header("grpc-status", " 0\t"),
                     Http2Header("x-last", "\tv "))}});
  serving::ScriptedStore store;
  serving::CachingProxy proxy(function.target(), {}, &store);
  const std::string request = serving::Request("a", "t");
  // A relayed call, and one whose answer is stored.
  for (const char* const method : {"/t.T/Relayed", kRunFunctionV1}) {
    SCOPED_TRACE(method);
    ForeignCaller caller(
        proxy.target(),
        CallHead(1, method, Http2Header("te", "trailers")) +
            CallData(1, MessageHead(request.size()) + request, true));
    const std::string lines = caller.ReadStatus();
    EXPECT_THAT(lines, HasSubstr("\ncontent-type: application/grpc\n"));
    EXPECT_THAT(lines, HasSubstr("\nx-blank: a \t b\n"));
    EXPECT_THAT(lines, HasSubstr("\nx-empty: \n"));
    EXPECT_THAT(lines, HasSubstr("grpc-status: 0\n"));
    EXPECT_THAT(lines, HasSubstr("x-last: v\n"));
  }
  EXPECT_EQ(store.fills, 1);
  proxy.Stop();
}

// Answers with one large message.
class LargeAnswer final : public WholeFunction {
 public:
  static constexpr size_t kBytes = 400'000;
  void OnPeerEnd(http2::Stream& stream) override {
    stream.Answer(Head(), /*end=*/false);
    stream.Send(
        http2::Slice::Copy(MessageHead(kBytes) + std::string(kBytes, 'x')));
    http2::Fields trailers;
    trailers.Add("grpc-status", "0");
    stream.EndWith(std::move(trailers));
  }
};

// A stop waits for one answer, however long its caller takes for it.
TEST(ForeignCallerTest, AnAnswerThatIsTakenSlowlyIsNoStream) {
  LargeAnswer function;
  settings::DaemonOptions options;
  settings::FunctionOptions one;
  one.listen = "127.0.0.1:0";
  one.upstream = function.address();
  options.functions.push_back(one);
  options.cache_memory = 16 << 20;
  options.drain = absl::Seconds(20);
  auto daemon = *StartDaemon(options, {});
  const ForeignCaller caller(
      daemon->addresses()[0],
      CallHead(1, "/t.T/Other") + CallData(1, MessageHead(0), true));
  constexpr size_t kWindow = 65'535;
  EXPECT_EQ(caller.ReadBody(kWindow), kWindow);
  // Longer than a stream of one answer is taken for a unary call.
  absl::SleepFor(absl::Milliseconds(400));
  std::thread stop([&] { daemon->Drain(); });
  ASSERT_TRUE(Eventually([&] { return !daemon->ready(); }));
  for (const uint32_t stream : {0, 1}) {
    ASSERT_TRUE(caller.Send(
        Http2Bytes({Http2Frame::kWindowUpdate, 0, BigEndian(1 << 20)},
                   BigEndian(stream))));
  }
  EXPECT_EQ(caller.ReadBody(2 * LargeAnswer::kBytes),
            5 + LargeAnswer::kBytes - kWindow);
  stop.join();
}

TEST(ForeignCallerTest, TrailersOfARequestAreCounted) {
  // The server there does not read them.
  const ::fncache::testing::DeafServer function;
  limits::Budget inflight(256 << 20, 2);
  UpstreamOptions options = TestProxy::To(function.target());
  options.inflight = &inflight;
  const TestProxy proxy(options);
  // 40 KB, as they are counted.
  std::string trailers;
  for (int i = 0; i < 1000; ++i) trailers += Http2Header("x", "1234567");
  {
    const ForeignCaller caller(proxy.target(), CallWithTrailers(trailers));
    EXPECT_TRUE(Eventually([&] { return inflight.relayed() >= 3 * 40'000; }));
  }
  EXPECT_TRUE(Eventually([&] { return inflight.relayed() == 0; }));
}

}  // namespace
}  // namespace fncache::proxy::transport
