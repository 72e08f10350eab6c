// SPDX-License-Identifier: Apache-2.0
// A function that answers what its input says, for tests that compare renders
// with the reference. The input is
//
//   {kind: Canned, responses: [RunFunctionResponse as proto JSON, ...]}
//
// and the n-th call of a step gets the n-th response, later calls the last one.
// Calls of one step have one tag. A response may have more fields than the
// message: `passDesired` (the request's desired state is merged below it),
// `passContext`, and `error: [CODE, TEXT]`, which fails the call.
//
// It listens on a free port of 127.0.0.1, logs `listening on HOST:PORT`, and
// writes each call to stdout as one JSON line: ["v1", REQUEST as proto JSON]. A
// line on standard input begins anew: it writes `null` and forgets all calls.
// It ends with its standard input.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "proto/function_v1.grpc.pb.h"

namespace fncache::testing {
namespace {

namespace fn = apiextensions::fn::proto::v1;
using google::protobuf::Struct;
using google::protobuf::Value;

const Value* Find(const Struct& map, const std::string& name) {
  const auto it = map.fields().find(name);
  return it == map.fields().end() ? nullptr : &it->second;
}

// Takes a field that the message does not have. True: it is there, and true.
bool Take(const std::string& name, Struct* response) {
  const Value* const value = Find(*response, name);
  const bool set = value != nullptr && value->bool_value();
  response->mutable_fields()->erase(name);
  return set;
}

// A gRPC code by its number or its name.
grpc::StatusCode CodeOf(const Value& value) {
  static constexpr const char* kNames[] = {"OK",
                                           "CANCELLED",
                                           "UNKNOWN",
                                           "INVALID_ARGUMENT",
                                           "DEADLINE_EXCEEDED",
                                           "NOT_FOUND",
                                           "ALREADY_EXISTS",
                                           "PERMISSION_DENIED",
                                           "RESOURCE_EXHAUSTED",
                                           "FAILED_PRECONDITION",
                                           "ABORTED",
                                           "OUT_OF_RANGE",
                                           "UNIMPLEMENTED",
                                           "INTERNAL",
                                           "UNAVAILABLE",
                                           "DATA_LOSS",
                                           "UNAUTHENTICATED"};
  const auto* const name =
      std::find(std::begin(kNames), std::end(kNames), value.string_value());
  return static_cast<grpc::StatusCode>(
      name == std::end(kNames) ? static_cast<int>(value.number_value())
                               : static_cast<int>(name - kNames));
}

class CannedFunction final : public fn::FunctionRunnerService::Service {
 public:
  void BeginAnew() {
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_.clear();
    std::printf("null\n");
    std::fflush(stdout);
  }

 private:
  grpc::Status RunFunction(grpc::ServerContext* /*context*/,
                           const fn::RunFunctionRequest* request,
                           fn::RunFunctionResponse* response) override {
    const size_t call = Log(*request);
    const Value* const all = Find(request->input(), "responses");
    if (all == nullptr || all->list_value().values().empty()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "no responses in the input"};
    }
    const auto& responses = all->list_value().values();
    const int index = std::min(static_cast<int>(call), responses.size() - 1);
    return Answer(*request, responses[index].struct_value(), response);
  }

  // Returns how many calls of this step there were before.
  size_t Log(const fn::RunFunctionRequest& request) {
    std::string json;
    if (!google::protobuf::util::MessageToJsonString(request, &json).ok()) {
      json = "null";
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    std::printf("[\"v1\", %s]\n", json.c_str());
    std::fflush(stdout);
    return calls_[request.meta().tag()]++;
  }

  static grpc::Status Answer(const fn::RunFunctionRequest& request,
                             Struct canned, fn::RunFunctionResponse* response) {
    if (const Value* const error = Find(canned, "error"); error != nullptr) {
      const auto& parts = error->list_value().values();
      if (parts.size() != 2) {
        return {grpc::StatusCode::INVALID_ARGUMENT, "error: [CODE, TEXT]"};
      }
      return {CodeOf(parts[0]), parts[1].string_value()};
    }
    const bool pass_desired = Take("passDesired", &canned);
    const bool pass_context = Take("passContext", &canned);
    if (pass_desired) *response->mutable_desired() = request.desired();
    if (pass_context && request.has_context()) {
      *response->mutable_context() = request.context();
    }
    std::string json;
    fn::RunFunctionResponse own;
    if (!google::protobuf::util::MessageToJsonString(canned, &json).ok() ||
        !google::protobuf::util::JsonStringToMessage(json, &own).ok()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "not a response: " + json};
    }
    response->MergeFrom(own);
    response->mutable_meta()->set_tag(request.meta().tag());
    return grpc::Status::OK;
  }

  std::mutex mutex_;
  std::map<std::string, size_t> calls_;  // by tag
};

int Serve() {
  CannedFunction function;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&function);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    std::fprintf(stderr, "cannot listen\n");
    return 1;
  }
  std::fprintf(stderr, "listening on 127.0.0.1:%d\n", port);
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    if (c == '\n') function.BeginAnew();
  }
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}

}  // namespace
}  // namespace fncache::testing

int main() { return fncache::testing::Serve(); }
