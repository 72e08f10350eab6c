// SPDX-License-Identifier: Apache-2.0
// Peers that take the function's place without speaking gRPC to the end:
// another web server, or something in between that gives up.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/deaf_server.h"
#include "tests/common/http2_server.h"
#include "tests/proxy/serving/scripted.h"
#include "tests/proxy/transport/pack.h"
#include "tests/proxy/transport/raw_call.h"

namespace fncache::proxy::transport {
namespace {

using ::fncache::testing::DeafServer;
using ::fncache::testing::Http2Frame;
using ::fncache::testing::Http2Header;
using ::fncache::testing::Http2Ok;
using ::fncache::testing::Http2Server;

std::string Message(const std::string& bytes) {
  const size_t n = bytes.size();
  return std::string{0, static_cast<char>(n >> 24), static_cast<char>(n >> 16),
                     static_cast<char>(n >> 8), static_cast<char>(n)} +
         bytes;
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

// Answers that gRPC's libraries, or some of them, take for an error. A less
// careful reader finds "grpc-status: 0" and a message in them.
struct Doubtful {
  const char* what;
  std::string headers;   // behind :status
  std::string trailers;  // empty: the message ends the answer
  const char* status = "200";
  bool empty_trailers = false;
};

std::vector<Doubtful> DoubtfulAnswers() {
  const std::string grpc = Http2Header("content-type", "application/grpc");
  const std::string ok = Http2Header("grpc-status", "0");
  const auto type = [](const char* value) {
    return Http2Header("content-type", value);
  };
  const auto status = [](const char* value) {
    return Http2Header("grpc-status", value);
  };
  return {
      {"two statuses, the last an error", grpc, ok + status("13")},
      {"two statuses, the last OK", grpc, status("13") + ok},
      {"a status and an empty one", grpc, ok + status("")},
      {"a status in the headers alone", grpc + ok, ""},
      {"a status in the headers and empty trailers", grpc + ok, "", "200",
       /*empty_trailers=*/true},
      {"a status in headers and trailers", grpc + status("13"), ok},
      {"a sign", grpc, status("+0")},
      {"two digits", grpc, status("00")},
      {"details that are not base64", grpc,
       ok + Http2Header("grpc-status-details-bin", "!!")},
      {"details of an error", grpc,
       ok + Http2Header("grpc-status-details-bin", "CAk")},
      {"a trailer that is not base64", grpc, ok + Http2Header("x-bin", "!!")},
      {"another content-type", type("application/grpcfoo"), ok},
      {"gRPC-Web", type("application/grpc-web+proto"), ok},
      {"no content-type", "", ok},
      {"a page", type("text/html"), ok},
      {"two content-types", grpc + type("text/html"), ok},
      {"two encodings",
       grpc + Http2Header("grpc-encoding", "identity") +
           Http2Header("grpc-encoding", "gzip"),
       ok},
      {"another HTTP status", grpc, ok, "503"},
  };
}

std::vector<Http2Frame> FramesOf(const Doubtful& answer,
                                 const std::string& message) {
  constexpr unsigned char end = Http2Frame::kEndStream;
  constexpr unsigned char headers = Http2Frame::kEndHeaders;
  const bool trailers = answer.empty_trailers || !answer.trailers.empty();
  std::vector<Http2Frame> frames = {
      {Http2Frame::kHeaders, headers,
       Http2Header(":status", answer.status) + answer.headers},
      {Http2Frame::kData, trailers ? static_cast<unsigned char>(0) : end,
       message}};
  if (trailers) {
    frames.push_back({Http2Frame::kHeaders, headers | end, answer.trailers});
  }
  return frames;
}

// Each caller gets what the function sent, and never another caller's answer. A
// function may refuse before it has the request, and need not reset it (RFC
// 9113, 8.1). The bytes that it will not take must not stay in memory.
std::vector<Http2Frame> Denied() {
  return {
      {Http2Frame::kHeaders, Http2Frame::kEndHeaders | Http2Frame::kEndStream,
       absl::StrCat(Http2Ok(), Http2Header("content-type", "application/grpc"),
                    Http2Header("grpc-status", "7"))}};
}

TEST(ForeignFunctionTest, ARequestThatIsNotTakenIsLetGoOf) {
  Http2Server function(Denied(), /*early=*/true);
  serving::ScriptedStore store;
  serving::CachingProxy proxy(function.target(), {}, &store);
  const auto channel = Connect(proxy.target());
  int calls = 0;
  for (const char* const method : {kRunFunctionV1, "/t.T/Relayed"}) {
    SCOPED_TRACE(method);
    for (int i = 0; i < 3; ++i) {
      auto caller = std::make_shared<serving::Caller>();
      caller->Start(channel, method,
                    serving::Request("a", std::string(1 << 20, 't')));
      EXPECT_EQ(caller->Wait().error_code(),
                grpc::StatusCode::PERMISSION_DENIED);
      ++calls;
      EXPECT_TRUE(Eventually([&] { return function.resets() == calls; }));
    }
  }
}

// There is nothing of its body that would wait, but its end does.
TEST(ForeignFunctionTest, ARequestWhoseEndIsNotTakenIsLetGoOf) {
  // SETTINGS_INITIAL_WINDOW_SIZE of 0.
  Http2Server function(Denied(), /*early=*/true,
                       std::string("\0\4\0\0\0\0", 6));
  serving::ScriptedStore store;
  serving::CachingProxy proxy(function.target(), {}, &store);
  const std::string target = proxy.target();
  const int connection = ConnectTo(target.substr(target.rfind(':') + 1));
  ASSERT_TRUE(SendAll(connection, Greeting()));
  for (int i = 0; i < 3; ++i) {
    const auto stream = static_cast<uint32_t>(2 * i + 1);
    ASSERT_TRUE(SendAll(connection, CallHead(stream, "/t.T/Relayed") +
                                        CallData(stream, "", /*end=*/true)));
    EXPECT_TRUE(Eventually([&] { return function.resets() == i + 1; }));
  }
  close(connection);
}

TEST(ForeignFunctionTest, WhatMayBeAnErrorIsNotStored) {
  const std::string message =
      Message(serving::Response("t", "hello", 60).SerializeAsString());
  for (const Doubtful& answer : DoubtfulAnswers()) {
    SCOPED_TRACE(answer.what);
    Http2Server function(FramesOf(answer, message));
    serving::ScriptedStore store;
    serving::CachingProxy proxy(function.target(), {}, &store);
    const auto direct = std::make_shared<serving::Caller>();
    direct->Start(Connect(function.target()), kRunFunctionV1,
                  serving::Request("a", "t"));
    direct->Wait();
    const auto channel = Connect(proxy.target());
    for (int call = 0; call < 2; ++call) {
      auto caller = std::make_shared<serving::Caller>();
      caller->Start(channel, kRunFunctionV1, serving::Request("a", "t"));
      const grpc::Status status = caller->Wait();
      EXPECT_EQ(status.ok(), direct->Wait().ok()) << status.error_message();
      if (status.ok()) {
        EXPECT_EQ(caller->has_message(), direct->has_message());
      }
      EXPECT_FALSE(absl::StrContains(caller->cache_status(), "hit") ||
                   absl::StrContains(caller->cache_status(), "stored"))
          << caller->cache_status();
    }
    EXPECT_EQ(store.fills, 0);
    proxy.Stop();
  }
}

// Once its TTL is another one, the message is not as long as the function said.
TEST(ForeignFunctionTest, AChangedMessageHasNoContentLengthOfTheOldOne) {
  const std::string message =
      Message(serving::Response("t", "hello", 60).SerializeAsString());
  Http2Server function(
      {{Http2Frame::kHeaders, Http2Frame::kEndHeaders,
        Http2Ok() + Http2Header("content-type", "application/grpc") +
            Http2Header("content-length", absl::StrCat(message.size())) +
            Http2Header("x-head", "kept")},
       {Http2Frame::kData, 0, message},
       {Http2Frame::kHeaders, Http2Frame::kEndHeaders | Http2Frame::kEndStream,
        Http2Header("grpc-status", "0")}});
  settings::FunctionOptions options;
  options.policy.requeue_ttl.kind = cache::RequeueTtl::Kind::kFixed;
  options.policy.requeue_ttl.fixed = absl::Seconds(7);
  serving::ScriptedStore store;
  serving::CachingProxy proxy(function.target(), options, &store);
  auto caller = std::make_shared<serving::Caller>();
  caller->Start(Connect(proxy.target()), kRunFunctionV1,
                serving::Request("a", "t"));
  EXPECT_TRUE(caller->Wait().ok());
  EXPECT_EQ(caller->response().meta().ttl().seconds(), 7);
  EXPECT_THAT(caller->Headers("content-length"), ::testing::IsEmpty());
  EXPECT_THAT(caller->Headers("x-head"), ::testing::ElementsAre("kept"));
  proxy.Stop();
}

// Answers with a compressed response of a little more than `bytes`.
std::vector<Http2Frame> AnswersPacked(size_t bytes) {
  std::string message = Message(Pack(
      serving::Response("t", std::string(bytes, 'x'), 60).SerializeAsString(),
      kGzipWindow));
  message[0] = 1;
  constexpr unsigned char headers = Http2Frame::kEndHeaders;
  return {{Http2Frame::kHeaders, headers,
           Http2Ok() + Http2Header("content-type", "application/grpc") +
               Http2Header("grpc-encoding", "gzip")},
          {Http2Frame::kData, 0, message},
          {Http2Frame::kHeaders, headers | Http2Frame::kEndStream,
           Http2Header("grpc-status", "0")}};
}

// The size of a decompressed answer, the settings, and the expected result.
struct Bounds {
  size_t bytes;
  size_t answer;
  size_t entry;
  grpc::StatusCode code;
  int fills;
};

void ExpectPackedAnswerIsHeldTo(const Bounds& bounds) {
  SCOPED_TRACE(absl::StrCat(bounds.answer, " ", bounds.entry));
  Http2Server function(AnswersPacked(bounds.bytes));
  settings::FunctionOptions options;
  options.policy.max_entry_bytes = bounds.entry;
  serving::ScriptedStore store;
  serving::CachingProxy proxy(function.target(), options, &store);
  proxy.upstream().SetLimits(bounds.answer, 64 << 10);
  const auto channel = Connect(proxy.target());
  auto caller = std::make_shared<serving::Caller>();
  caller->Start(channel, kRunFunctionV1, serving::Request("a", "t"));
  const grpc::Status status = caller->Wait();
  EXPECT_EQ(status.error_code(), bounds.code) << status.error_message();
  if (!status.ok()) {
    EXPECT_EQ(status.error_message(),
              absl::StrCat("the function's decompressed answer exceeds "
                           "max_response_bytes, ",
                           bounds.answer));
  }
  EXPECT_EQ(store.fills, bounds.fills);
  proxy.Stop();
}

// The compressed answer is small, and the decompressed one is over the bound.
// It is not in memory, not stored and not passed on. An answer that is only too
// large to be stored passes as it came.
TEST(ForeignFunctionTest, APackedAnswerMayBecomeNoMoreThanTheBound) {
  for (const Bounds& bounds :
       {Bounds{5000, 6000, 6000, grpc::StatusCode::OK, 1},
        Bounds{5000, 6000, 4000, grpc::StatusCode::OK, 0},
        Bounds{5000, 4000, 6000, grpc::StatusCode::RESOURCE_EXHAUSTED, 0},
        Bounds{5000, 4500, 4000, grpc::StatusCode::RESOURCE_EXHAUSTED, 0},
        Bounds{5000, 4000, 4000, grpc::StatusCode::RESOURCE_EXHAUSTED, 0}}) {
    ExpectPackedAnswerIsHeldTo(bounds);
  }
}

// A few kilobytes that become megabytes are decompressed in steps.
TEST(ForeignFunctionTest, ALargePackedAnswerMayBecomeNoMoreThanTheBound) {
  constexpr size_t mib = 1 << 20;
  for (const Bounds& bounds :
       {Bounds{10 * mib, 16 * mib, 16 * mib, grpc::StatusCode::OK, 1},
        Bounds{10 * mib, 16 * mib, 2 * mib, grpc::StatusCode::OK, 0},
        Bounds{10 * mib, 6 * mib, 2 * mib, grpc::StatusCode::RESOURCE_EXHAUSTED,
               0}}) {
    ExpectPackedAnswerIsHeldTo(bounds);
  }
}

// As an uncompressed answer does.
TEST(ForeignFunctionTest, APackedAnswerTooLargeToBeStoredSaysSo) {
  Http2Server function(AnswersPacked(5000));
  settings::FunctionOptions options;
  options.policy.max_entry_bytes = 4000;
  serving::ScriptedStore store;
  serving::CachingProxy proxy(function.target(), options, &store, 2,
                              /*explains=*/true);
  const auto channel = Connect(proxy.target());
  for (const char* detail : {"new", "\"not-stored: too-large\""}) {
    auto caller = std::make_shared<serving::Caller>();
    caller->Start(channel, kRunFunctionV1, serving::Request("a", "t"));
    EXPECT_TRUE(caller->Wait().ok());
    EXPECT_EQ(caller->cache_status(),
              absl::StrCat("fncache; fwd=miss; detail=", detail));
  }
  proxy.Stop();
}

// It is not processed, so it is not decompressed.
TEST(ForeignFunctionTest, ABypassedCallsPackedAnswerPassesAsItCame) {
  Http2Server function(AnswersPacked(5000));
  serving::ScriptedStore store;
  serving::CachingProxy proxy(function.target(), {}, &store);
  proxy.upstream().SetLimits(4000, 64 << 10);
  const auto channel = Connect(proxy.target());
  auto caller = std::make_shared<serving::Caller>();
  caller->context.AddMetadata("authorization", "x");
  caller->Start(channel, kRunFunctionV1, serving::Request("a", "t"));
  EXPECT_TRUE(caller->Wait().ok());
  proxy.Stop();
}

// It is sent once more, and then the error says what happened.
TEST(ForeignFunctionTest, ACallThatIsNotTakenTwiceSaysWhy) {
  struct Case {
    Http2Frame answer;
    const char* words;
  };
  for (const Case& one :
       {Case{{Http2Frame::kReset, 0, std::string("\0\0\0\7", 4)},
             "the function did not take the call, which was sent twice: it "
             "refused it (REFUSED_STREAM)"},
        Case{{Http2Frame::kGoAway, 0, std::string(8, '\0')},
             "the function did not take the call, which was sent twice: it "
             "went away (GOAWAY)"}}) {
    Http2Server function({one.answer});
    serving::ScriptedStore store;
    serving::CachingProxy proxy(function.target(), {}, &store);
    const auto channel = Connect(proxy.target());
    auto caller = std::make_shared<serving::Caller>();
    caller->Start(channel, kRunFunctionV1, serving::Request("a", "t"));
    const grpc::Status status = caller->Wait();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(status.error_message(), one.words);
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

// A function that accepts the connection and sends nothing. The call has long
// ended at its caller when that is cancelled.
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
