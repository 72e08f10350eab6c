// SPDX-License-Identifier: Apache-2.0
#include "runner/client/function_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/method.h"
#include "common/thread_pool.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "proto/function_v1beta1.grpc.pb.h"
#include "runner/client/rpc_error.h"
#include "tests/common/eventually.h"
#include "tests/common/http2_server.h"
#include "tests/common/loopback_socket.h"
#include "tests/runner/function/served.h"
#include "tests/runner/function_calls.h"
#include "tests/runner/messages.h"

namespace fncache::runner::client {
namespace {

namespace v1 = apiextensions::fn::proto::v1;
namespace v1beta1 = apiextensions::fn::proto::v1beta1;
using ::fncache::testing::Http2Frame;
using ::fncache::testing::Http2Header;
using ::fncache::testing::Http2Ok;
using ::fncache::testing::Http2Server;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A function of v1 that runs a script.
class Scripted : public v1::FunctionRunnerService::Service {
 public:
  using Script = std::function<grpc::Status(grpc::ServerContext*,
                                            const v1::RunFunctionRequest&,
                                            v1::RunFunctionResponse*)>;
  explicit Scripted(Script script) : script_(std::move(script)) {}

  grpc::Status RunFunction(grpc::ServerContext* context,
                           const v1::RunFunctionRequest* request,
                           v1::RunFunctionResponse* response) override {
    ++calls;
    return script_(context, *request, response);
  }

  std::atomic<int> calls{0};

 private:
  const Script script_;
};

// One of v1beta1, which knows no other version.
class Older : public v1beta1::FunctionRunnerService::Service {
 public:
  grpc::Status RunFunction(grpc::ServerContext* context,
                           const v1beta1::RunFunctionRequest* request,
                           v1beta1::RunFunctionResponse* response) override {
    ++calls;
    response->mutable_meta()->set_tag(request->meta().tag() + " older");
    return grpc::Status::OK;
  }

  std::atomic<int> calls{0};
};

// A server on loopback, for as long as this lives.
class Served {
 public:
  explicit Served(grpc::Service* service, int port = 0) {
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.SetMaxReceiveMessageSize(64 << 20);
    builder.SetMaxSendMessageSize(-1);
    int bound = 0;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port),
                             grpc::InsecureServerCredentials(), &bound);
    builder.RegisterService(service);
    server_ = builder.BuildAndStart();
    EXPECT_NE(bound, 0);
    target_ = absl::StrCat("127.0.0.1:", bound);
  }
  ~Served() {
    server_->Shutdown(absl::ToChronoTime(absl::Now()));
    server_->Wait();
  }
  const std::string& target() const { return target_; }

 private:
  std::unique_ptr<grpc::Server> server_;
  std::string target_;
};

// A port of which nothing listens, and on which nothing else will meanwhile.
class DeadPort {
 public:
  // From now on something may listen there.
  void Free() { socket_.reset(); }
  // Connections are taken by the system and never answered.
  void Listen() const { socket_->Listen(8); }
  // The port of the first that connected.
  int FirstCaller() const {
    sockaddr_in address = {};
    socklen_t size = sizeof address;
    const int caller =
        accept(socket_->fd(), reinterpret_cast<sockaddr*>(&address), &size);
    EXPECT_GE(caller, 0);
    close(caller);
    return ntohs(address.sin_port);
  }
  int port() const { return port_; }
  const std::string& target() const { return target_; }

 private:
  absl::optional<::fncache::testing::LoopbackSocket> socket_{absl::in_place};
  const int port_ = socket_->port();
  const std::string target_ = socket_->target();
};

std::unique_ptr<FunctionClient> Client(const std::string& target) {
  FunctionClientOptions options;
  options.functions = {{"fn", target}};
  auto client = FunctionClient::Create(std::move(options));
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

TEST(FunctionClientTest, AnswersWithWhatTheFunctionSaid) {
  Scripted function(
      [](grpc::ServerContext*, const auto& request, auto* response) {
        *response->mutable_context() = request.context();
        response->mutable_meta()->set_tag(request.meta().tag());
        return grpc::Status::OK;
      });
  const Served served(&function);
  const auto client = Client(served.target());
  const auto request = FromJson<v1::RunFunctionRequest>(
      R"({"meta": {"tag": "abc"}, "context": {"a": {"b": [1, null]}}})");
  const CallResult result = Call(client.get(), "fn", request, Soon());
  ASSERT_TRUE(result.status.ok()) << result.status;
  ExpectJson(result.response,
             R"({"meta": {"tag": "abc"}, "context": {"a": {"b": [1, null]}}})");
  EXPECT_EQ(result.cache_status, "");
}

TEST(FunctionClientTest, TellsWhatACacheInFrontSaid) {
  Scripted function([](grpc::ServerContext* context, const auto&, auto*) {
    context->AddInitialMetadata("cache-status", "fncache; hit; ttl=37");
    return grpc::Status::OK;
  });
  const Served served(&function);
  const auto client = Client(served.target());
  EXPECT_EQ(Call(client.get()).cache_status, "fncache; hit; ttl=37");
}

TEST(FunctionClientTest, FunctionThatIsNotListedFailsAtOnce) {
  const auto client = Client("127.0.0.1:1");
  const CallResult result =
      Call(client.get(), "function-b", {}, absl::InfiniteFuture());
  EXPECT_EQ(std::string(result.status.message()),
            "unknown function \"function-b\" - is it listed in the render "
            "input?");
}

TEST(FunctionClientTest, OfTwoWithOneNameTheFirstCounts) {
  const auto server = function::Serve();
  ASSERT_NE(server, nullptr);
  const DeadPort dead;
  FunctionClientOptions options;
  options.functions = {{"fn", server->address()}, {"fn", dead.target()}};
  const auto client = FunctionClient::Create(std::move(options));
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE(Call(client->get()).status.ok());
}

TEST(FunctionClientTest, FunctionsThatAreNotCalledAreNotContacted) {
  DeadPort dead;
  dead.Listen();
  { const auto client = Client(dead.target()); }
  // Nothing came in: the next to connect is the first.
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(dead.port());
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address),
            0);
  socklen_t size = sizeof address;
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_EQ(dead.FirstCaller(), ntohs(address.sin_port));
  close(fd);
}

TEST(FunctionClientTest, OlderFunctionIsCalledByItsOwnVersion) {
  Older function;
  const Served served(&function);
  const auto client = Client(served.target());
  for (int i = 1; i <= 2; ++i) {
    const CallResult result = Call(client.get());
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.response.meta().tag(), "t older");
    EXPECT_EQ(function.calls, i);
  }
}

TEST(FunctionClientTest, AHintIsTheTrailersOfItsNameAndIsAskedFor) {
  int hints = 0;
  Scripted function([&](grpc::ServerContext* context, const auto&, auto*) {
    const auto asked = context->client_metadata().find("cdn-loop");
    EXPECT_TRUE(asked != context->client_metadata().end() &&
                asked->second == "fncache-runner");
    for (int i = 0; i < hints; ++i) {
      context->AddTrailingMetadata("fncache-depends", absl::StrCat("a", i));
    }
    return grpc::Status::OK;
  });
  const Served served(&function);
  const auto client =
      *FunctionClient::CreateUncached({{"fn", served.target()}}, "");
  EXPECT_EQ(Call(client.get()).hint, absl::nullopt);
  hints = 1;
  EXPECT_EQ(Call(client.get()).hint, "a0");
  hints = 2;
  EXPECT_EQ(Call(client.get()).hint, "a0, a1");
}

TEST(FunctionClientTest, FunctionOfNeitherVersionIsUnimplemented) {
  Scripted function([](grpc::ServerContext*, const auto&, auto*) {
    return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "not today");
  });
  const Served served(&function);
  const auto client = Client(served.target());
  const CallResult result = Call(client.get());
  // This is what the second version's call said, which no service answered.
  EXPECT_EQ(result.status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(std::string(result.status.message()),
            "rpc error: code = Unimplemented desc = ");
  EXPECT_EQ(function.calls, 1);
}

TEST(FunctionClientTest, ErrorsAreSaidAsTheReferenceRunnerSaysThem) {
  Scripted function([](grpc::ServerContext*, const auto&, auto*) {
    return grpc::Status(grpc::StatusCode::INTERNAL, "boom");
  });
  const Served served(&function);
  const auto client = Client(served.target());
  const CallResult result = Call(client.get());
  EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(std::string(result.status.message()),
            "rpc error: code = Internal desc = boom");
}

TEST(FunctionClientTest, NothingIsRetried) {
  Scripted function([](grpc::ServerContext*, const auto&, auto*) {
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "later");
  });
  const Served served(&function);
  const auto client = Client(served.target());
  EXPECT_EQ(std::string(Call(client.get()).status.message()),
            "rpc error: code = Unavailable desc = later");
  EXPECT_EQ(function.calls, 1);
}

TEST(FunctionClientTest, AnswerOfFourMebibytesIsTakenAndOneByteMoreIsNot) {
  constexpr size_t kLimit = 4194304;
  std::atomic<size_t> size{kLimit};
  Scripted function([&](grpc::ServerContext*, const auto&, auto* response) {
    // A tag of this many bytes takes two field tags and two lengths besides.
    response->mutable_meta()->set_tag(std::string(size - 10, 'x'));
    EXPECT_EQ(response->ByteSizeLong(), size);
    return grpc::Status::OK;
  });
  const Served served(&function);
  const auto client = Client(served.target());
  EXPECT_TRUE(Call(client.get()).status.ok());
  size = kLimit + 1;
  const CallResult result = Call(client.get());
  EXPECT_EQ(result.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(result.status.message()),
            "rpc error: code = ResourceExhausted desc = grpc: received message "
            "larger than max (4194305 vs. 4194304)");
  EXPECT_EQ(result.response.ByteSizeLong(), 0u);
}

TEST(FunctionClientTest, LargeRequestsAreSent) {
  size_t got = 0;
  Scripted function([&](grpc::ServerContext*, const auto& request, auto*) {
    got = request.meta().tag().size();
    return grpc::Status::OK;
  });
  const Served served(&function);
  const auto client = Client(served.target());
  v1::RunFunctionRequest request;
  request.mutable_meta()->set_tag(std::string(20 << 20, 'x'));
  const CallResult result = Call(client.get(), "fn", request, Soon());
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(got, 20u << 20);
}

TEST(FunctionClientTest, DeeplyNestedAnswersAreRead) {
  const auto server = function::Serve();
  ASSERT_NE(server, nullptr);
  const auto client = Client(server->address());
  v1::RunFunctionRequest request;
  auto* at = request.mutable_context();
  for (int i = 0; i < 400; ++i) {
    at = (*at->mutable_fields())["k"].mutable_struct_value();
  }
  const CallResult result = Call(client.get(), "fn", request, Soon());
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.response.context().SerializeAsString(),
            request.context().SerializeAsString());
}

// The result of a call to something that never answers, once its message has
// `words`; a client that a busy machine delays gets a longer deadline.
CallResult CallUntilItSays(FunctionClient* client, const std::string& words) {
  CallResult result;
  for (absl::Duration deadline = absl::Milliseconds(100);
       deadline < absl::Minutes(1); deadline *= 5) {
    result = Call(client, absl::Now() + deadline);
    if (absl::StrContains(result.status.message(), words)) break;
  }
  return result;
}

TEST(FunctionClientTest, FunctionThatIsDownIsWaitedFor) {
  DeadPort port;
  const auto client = Client(port.target());
  Results results;
  client->Call("fn", {}, Soon(), results.Done());
  // The client has met the dead port once this call, which began later, ends.
  EXPECT_THAT(
      std::string(
          CallUntilItSays(client.get(), "connection refused").status.message()),
      HasSubstr("connection refused"));
  EXPECT_EQ(results.size(), 0u);
  port.Free();
  Scripted function([](grpc::ServerContext*, const auto&, auto*) {
    return grpc::Status::OK;
  });
  const Served served(&function, port.port());
  EXPECT_TRUE(results.Wait(1).at(0).status.ok());
}

TEST(FunctionClientTest, FunctionThatStaysDownIsNamedAtTheDeadline) {
  const DeadPort dead;
  const auto client = Client(dead.target());
  const CallResult result = CallUntilItSays(client.get(), "connection refused");
  EXPECT_EQ(result.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(std::string(result.status.message()),
            absl::StrCat("rpc error: code = DeadlineExceeded desc = latest "
                         "balancer error: connection error: desc = "
                         "\"transport: Error while dialing: dial tcp ",
                         dead.target(), ": connect: connection refused\""));
}

TEST(FunctionClientTest, TellsWhichFunctionCallsFindNoConnectionTo) {
  DeadPort dead;
  Scripted function([](grpc::ServerContext*, const auto&, auto*) {
    return grpc::Status::OK;
  });
  const Served served(&function);
  FunctionClientOptions options;
  options.functions = {{"alive", served.target()},
                       {"dead", dead.target()},
                       {"same", dead.target()},
                       {"idle", "127.0.0.1:1"}};
  const auto client = *FunctionClient::Create(std::move(options));
  EXPECT_THAT(client->FindNotConnected(absl::ZeroDuration()), IsEmpty());
  Results alive;
  client->Call("alive", {}, Soon(), alive.Done());
  EXPECT_TRUE(alive.Wait(1).at(0).status.ok());
  Results waiting;
  client->Call("dead", {}, Soon(), waiting.Done());
  std::vector<NotConnected> found;
  EXPECT_TRUE(Eventually([&] {
    found = client->FindNotConnected(absl::ZeroDuration());
    return found.size() == 1 && found[0].why == "connection refused";
  }));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].function, "dead");
  EXPECT_EQ(found[0].target, dead.target());
  EXPECT_THAT(client->FindNotConnected(absl::Hours(1)), IsEmpty());
  // Until it is there.
  dead.Free();
  const Served later(&function, dead.port());
  EXPECT_TRUE(waiting.Wait(1).at(0).status.ok());
  EXPECT_THAT(client->FindNotConnected(absl::ZeroDuration()), IsEmpty());
}

TEST(FunctionClientTest, ACallWithADeadlineThatFailsIsNoConnectionEither) {
  const DeadPort dead;
  const auto client = Client(dead.target());
  const CallResult result = CallUntilItSays(client.get(), "connection refused");
  EXPECT_TRUE(NeverReachedAFunction(result.status)) << result.status;
  EXPECT_THAT(client->FindNotConnected(absl::ZeroDuration()), SizeIs(1));
}

TEST(FunctionClientTest, ErrorsHaveWhatACacheInFrontSaid) {
  Scripted function([](grpc::ServerContext* context, const auto&, auto*) {
    context->AddInitialMetadata("cache-status", "fncache; fwd=miss");
    return grpc::Status(grpc::StatusCode::INTERNAL, "boom");
  });
  const Served served(&function);
  const auto client = Client(served.target());
  const CallResult result = Call(client.get(), Soon());
  EXPECT_FALSE(result.status.ok());
  EXPECT_EQ(result.cache_status, "fncache; fwd=miss");
}

// So that the threads that receive do nothing else.
TEST(FunctionClientTest, WhatFollowsAnAnswerRunsWhereItIsAskedTo) {
  Scripted function([](grpc::ServerContext*, const auto&, auto*) {
    return grpc::Status::OK;
  });
  const Served served(&function);
  ThreadPool pool(1);
  std::atomic<int> begun{0};
  std::atomic<int> runs{0};
  FunctionClientOptions options;
  options.functions = {{"fn", served.target()}};
  options.threads = 3;
  options.begin_thread = [&begun] { ++begun; };
  options.run = [&](std::function<void()> work) {
    ++runs;
    ThreadPool::Work piece = [work = std::move(work)](bool) { work(); };
    pool.Submit(&piece);
  };
  auto client = *FunctionClient::Create(std::move(options));
  Results results;
  for (int i = 0; i < 50; ++i) client->Call("fn", {}, Soon(), results.Done());
  for (const CallResult& result : results.Wait(50)) {
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_GT(result.round_trip, absl::ZeroDuration());
  }
  client.reset();
  EXPECT_EQ(runs, 50);
  EXPECT_EQ(begun, 3);
}

TEST(FunctionClientTest, PeerThatSaysNothingIsWaitedForUntilTheDeadline) {
  DeadPort mute;
  mute.Listen();
  const auto client = Client(mute.target());
  const CallResult result =
      Call(client.get(), absl::Now() + absl::Milliseconds(100));
  EXPECT_EQ(std::string(result.status.message()),
            "rpc error: code = DeadlineExceeded desc = context deadline "
            "exceeded while waiting for connections to become ready");
}

TEST(FunctionClientTest, SlowFunctionEndsAtTheDeadline) {
  const function::SlowFunction slow(absl::Hours(1));
  const auto& server = slow.server;
  ASSERT_NE(server, nullptr);
  const auto client = Client(server->address());
  // Before it is connected the message is longer.
  const std::string kExceeded =
      "rpc error: code = DeadlineExceeded desc = context deadline exceeded";
  CallResult result;
  for (absl::Duration deadline = absl::Milliseconds(500);
       deadline < absl::Minutes(1); deadline *= 5) {
    result = Call(client.get(), absl::Now() + deadline);
    if (result.status.message() == kExceeded) break;
  }
  EXPECT_EQ(result.status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(std::string(result.status.message()), kExceeded);
}

TEST(FunctionClientTest, DeadlineThatHasPassedEndsTheCall) {
  const DeadPort dead;
  const auto client = Client(dead.target());
  for (const absl::Time deadline :
       {absl::Now() - absl::Hours(1), absl::InfinitePast()}) {
    EXPECT_EQ(Call(client.get(), deadline).status.code(),
              absl::StatusCode::kDeadlineExceeded);
  }
}

TEST(FunctionClientTest, BytesThatAreNoResponseAreAnError) {
  // A response whose tag is no UTF-8, which a C++ server would not send.
  class Raw : public grpc::Service {
   public:
    Raw() {
      AddMethod(new grpc::internal::RpcServiceMethod(
          kRunFunctionV1, grpc::internal::RpcMethod::NORMAL_RPC,
          new grpc::internal::RpcMethodHandler<Raw, grpc::ByteBuffer,
                                               grpc::ByteBuffer>(
              [](Raw*, grpc::ServerContext*, const grpc::ByteBuffer*,
                 grpc::ByteBuffer* response) {
                const grpc::Slice slice("\x0a\x03\x0a\x01\xff");
                *response = grpc::ByteBuffer(&slice, 1);
                return grpc::Status::OK;
              },
              this)));
    }
  } function;
  const Served served(&function);
  const auto client = Client(served.target());
  const CallResult result = Call(client.get());
  EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(result.status.message()),
              HasSubstr("failed to unmarshal the received message"));
}

TEST(FunctionClientTest, AWebServerThatIsNoFunctionIsAnError) {
  // It has nothing to say, and ends without a status of gRPC's.
  const Http2Server server(
      {{Http2Frame::kHeaders, Http2Frame::kEndHeaders | Http2Frame::kEndStream,
        Http2Ok() + Http2Header("content-type", "text/html")}});
  const auto client = Client(server.target());
  EXPECT_EQ(Call(client.get()).status.code(), absl::StatusCode::kUnknown);
}

TEST(FunctionClientTest, TargetsMayBeSpelledAsGoTakesThem) {
  Scripted function([](grpc::ServerContext*, const auto&, auto*) {
    return grpc::Status::OK;
  });
  const Served served(&function);
  const std::string port = served.target().substr(served.target().find(':'));
  for (const std::string& target :
       {"dns:///127.0.0.1" + port, "passthrough:///127.0.0.1" + port,
        "localhost" + port, port, "dns:///" + port, "ipv4:127.0.0.1" + port}) {
    const auto client = Client(target);
    const CallResult result = Call(client.get());
    EXPECT_TRUE(result.status.ok()) << target << ": " << result.status;
  }
}

TEST(FunctionClientTest, ProxiesOfTheEnvironmentAreNotUsed) {
  Scripted function([](grpc::ServerContext*, const auto&, auto*) {
    return grpc::Status::OK;
  });
  const Served served(&function);
  const DeadPort dead;
  setenv("http_proxy", ("http://" + dead.target()).c_str(), 1);
  const auto client = Client(served.target());
  EXPECT_TRUE(Call(client.get()).status.ok());
  unsetenv("http_proxy");
}

TEST(FunctionClientTest, AThousandCallsAtOnce) {
  constexpr int kCalls = 1000;
  const function::SlowFunction slow(absl::Milliseconds(300));
  const auto& server = slow.server;
  ASSERT_NE(server, nullptr);
  const auto client = Client(server->address());
  Results results;
  const absl::Time start = absl::Now();
  for (int i = 0; i < kCalls; ++i) {
    v1::RunFunctionRequest request;
    request.mutable_meta()->set_tag(absl::StrCat(i));
    client->Call("fn", request, Soon(), results.Done());
  }
  std::vector<bool> seen(kCalls);
  for (const CallResult& result : results.Wait(kCalls)) {
    ASSERT_TRUE(result.status.ok()) << result.status;
    seen.at(std::stoi(result.response.meta().tag())) = true;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), kCalls);
  // One after the other they would sleep for five minutes.
  EXPECT_LT(absl::Now() - start, absl::Seconds(100));
}

TEST(FunctionClientTest, CallsMayBeMadeFromWithinDone) {
  Scripted function([](grpc::ServerContext*, const auto&, auto*) {
    return grpc::Status::OK;
  });
  const Served served(&function);
  const auto client = Client(served.target());
  Results results;
  int left = 20;
  std::function<void(CallResult)> next = [&](CallResult result) {
    if (--left == 0 || !result.status.ok()) {
      return results.Done()(std::move(result));
    }
    client->Call("fn", {}, Soon(), next);
  };
  client->Call("fn", {}, Soon(), next);
  EXPECT_TRUE(results.Wait(1).at(0).status.ok());
  EXPECT_EQ(left, 0);
}

TEST(FunctionClientTest, CancelEndsWhatIsUnderWayAndWhatComesLater) {
  const function::SlowFunction slow(absl::Hours(1));
  const auto& server = slow.server;
  ASSERT_NE(server, nullptr);
  const DeadPort dead;
  FunctionClientOptions options;
  options.functions = {{"slow", server->address()}, {"down", dead.target()}};
  const auto client = *FunctionClient::Create(std::move(options));
  Results results;
  client->Call("slow", {}, absl::InfiniteFuture(), results.Done());
  client->Call("down", {}, absl::InfiniteFuture(), results.Done());
  client->Cancel();
  client->Call("slow", {}, absl::InfiniteFuture(), results.Done());
  for (const CallResult& result : results.Wait(3)) {
    EXPECT_TRUE(absl::IsCancelled(result.status)) << result.status;
  }
}

TEST(FunctionClientTest, DestructorCancelsWhatIsLeftAndWaitsForIt) {
  const function::SlowFunction slow(absl::Hours(1));
  const auto& server = slow.server;
  ASSERT_NE(server, nullptr);
  const DeadPort dead;
  FunctionClientOptions options;
  options.functions = {{"slow", server->address()}, {"down", dead.target()}};
  auto client = *FunctionClient::Create(std::move(options));
  Results results;
  std::atomic<int> late{0};
  for (int i = 0; i < 10; ++i) {
    client->Call("slow", {}, absl::InfiniteFuture(), results.Done());
    client->Call("down", {}, absl::InfiniteFuture(), results.Done());
    // A call from `done` during the end is also cancelled, at once.
    client->Call(
        "slow", {}, absl::InfiniteFuture(), [&, c = client.get()](CallResult) {
          c->Call("slow", {}, absl::InfiniteFuture(), [&](CallResult result) {
            late += absl::IsCancelled(result.status) ? 1 : 0;
          });
        });
  }
  client = nullptr;
  EXPECT_EQ(results.size(), 20u);
  EXPECT_EQ(late, 10);
  for (const CallResult& result : results.Wait(20)) {
    EXPECT_EQ(result.status.code(), absl::StatusCode::kCancelled);
  }
}

TEST(FunctionClientTest, DestructorMayMeetCallsAtAnyMoment) {
  Older function;  // each call is two
  const Served served(&function);
  for (int round = 0; round < 30; ++round) {
    auto client = Client(served.target());
    Results results;
    if (round % 2 == 0) Call(client.get());  // else it is still connecting
    for (int i = 0; i < 20; ++i) {
      client->Call("fn", {}, absl::InfiniteFuture(), results.Done());
    }
    client = nullptr;
    EXPECT_EQ(results.size(), 20u);
  }
}

TEST(FunctionClientTest, NoThreadsIsRefused) {
  FunctionClientOptions options;
  options.threads = 0;
  EXPECT_EQ(FunctionClient::Create(options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fncache::runner::client
