// SPDX-License-Identifier: Apache-2.0
// A server of the SDK within the test, and calls to it.
#ifndef FNCACHE_TESTS_SDK_SERVE_SERVING_H_
#define FNCACHE_TESTS_SDK_SERVE_SERVING_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/method.h"
#include "fncache/function/serve.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "proto/function_v1.pb.h"

namespace fncache::sdk::serve {

namespace v1 = apiextensions::fn::proto::v1;

inline void Nothing(function::Context& /*ctx*/) {}

inline std::shared_ptr<grpc::Channel> Connect(
    const std::string& address,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials =
        grpc::InsecureChannelCredentials()) {
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address, credentials, args);
}

class Serving {
 public:
  Serving() {
    options.address = "127.0.0.1:0";
    options.insecure = true;
  }

  void Start(function::Function function = Nothing) {
    auto started = function::Server::Start(options, std::move(function));
    ASSERT_TRUE(started.ok()) << started.status();
    server = *std::move(started);
    channel = Connect(server->address());
    stub = v1::FunctionRunnerService::NewStub(channel);
  }

  // A call of v1; `prepare` sets up its context.
  grpc::Status Call(
      const v1::RunFunctionRequest& request = {},
      const std::function<void(grpc::ClientContext*)>& prepare = nullptr) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(1)));
    if (prepare) prepare(&context);
    response.Clear();
    const grpc::Status status = stub->RunFunction(&context, request, &response);
    depends.clear();
    const auto& trailing = context.GetServerTrailingMetadata();
    const auto found = trailing.find("fncache-depends");
    if (found != trailing.end()) {
      depends = std::string(found->second.data(), found->second.size());
    }
    return status;
  }

  // A call of any method with any bytes, which becomes those of the response.
  grpc::Status CallBytes(const std::string& method, std::string* bytes) const {
    grpc::GenericStub generic(channel);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(1)));
    grpc::CompletionQueue queue;
    const grpc::Slice slice(*bytes);
    const auto call = generic.PrepareUnaryCall(
        &context, method, grpc::ByteBuffer(&slice, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer received;
    grpc::Status status;
    call->Finish(&received, &status, call.get());
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    std::vector<grpc::Slice> slices;
    bytes->clear();
    if (received.Dump(&slices).ok()) {
      for (const grpc::Slice& one : slices) {
        bytes->append(reinterpret_cast<const char*>(one.begin()), one.size());
      }
    }
    return status;
  }

  function::ServerOptions options;
  std::unique_ptr<function::Server> server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::FunctionRunnerService::Stub> stub;
  v1::RunFunctionResponse response;  // of the last Call
  std::string depends;               // its trailing metadata
};

inline v1::RunFunctionRequest Tagged(const std::string& tag) {
  v1::RunFunctionRequest request;
  request.mutable_meta()->set_tag(tag);
  return request;
}

// A request whose context has this many bytes.
inline v1::RunFunctionRequest Large(size_t bytes) {
  v1::RunFunctionRequest request = Tagged("large");
  (*request.mutable_context()->mutable_fields())["k"].set_string_value(
      std::string(bytes, 'x'));
  return request;
}

}  // namespace fncache::sdk::serve

#endif  // FNCACHE_TESTS_SDK_SERVE_SERVING_H_
