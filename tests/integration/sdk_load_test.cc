// SPDX-License-Identifier: Apache-2.0
// The process of a function ends under load: no caller gets a response that was
// cut, with and without a daemon in front.
#include <atomic>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "tests/common/eventually.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/example_function.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

namespace fn = apiextensions::fn::proto::v1;
using google::protobuf::util::MessageDifferencer;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kCallers = 16;
// Responses have several DATA frames.
constexpr size_t kPassedThrough = 50000;

// A request of examples/sdk/network.cc whose response depends on `network`;
// what depends on `drift` no function reads.
fn::RunFunctionRequest Of(int network, int drift) {
  const auto text = [](google::protobuf::Struct* object, const std::string& key,
                       const std::string& value) {
    (*object->mutable_fields())[key].set_string_value(value);
  };
  const auto below = [](google::protobuf::Struct* object,
                        const std::string& key) {
    return (*object->mutable_fields())[key].mutable_struct_value();
  };
  fn::RunFunctionRequest request;
  request.mutable_meta()->set_tag(absl::StrCat(network, ".", drift));
  auto* const composite =
      request.mutable_observed()->mutable_composite()->mutable_resource();
  text(composite, "kind", "XNetwork");
  text(below(composite, "spec"), "drift", absl::StrCat(drift));
  auto& observed = *request.mutable_observed()->mutable_resources();
  const auto status = [&](const char* name) {
    return below(below(observed[name].mutable_resource(), "status"),
                 "atProvider");
  };
  text(status("vpc"), "vpcId", absl::StrCat("vpc-", network));
  text(status("subnet"), "id", absl::StrCat("subnet-", network));
  text(status("subnet"), "arn", absl::StrCat("arn-", network));
  auto& desired = *request.mutable_desired()->mutable_resources();
  text(desired["earlier"].mutable_resource(), "passed",
       std::string(kPassedThrough, 'x'));
  return request;
}

class Client {
 public:
  explicit Client(const std::string& address) {
    grpc::ChannelArguments channel;
    channel.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    channel.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = fn::FunctionRunnerService::NewStub(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), channel));
  }
  grpc::Status Call(const fn::RunFunctionRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    response.Clear();
    const grpc::Status status =
        stub_->RunFunction(&context, request, &response);
    const auto header = context.GetServerInitialMetadata().find("cache-status");
    cache_status =
        header == context.GetServerInitialMetadata().end()
            ? ""
            : std::string(header->second.data(), header->second.size());
    return status;
  }

  fn::RunFunctionResponse response;  // of the last call
  std::string cache_status;

 private:
  std::unique_ptr<fn::FunctionRunnerService::Stub> stub_;
};

class SdkLoadTest : public ::testing::Test {
 protected:
  // Keeps the function's own responses of the networks for comparison.
  void Learn(const std::string& address, int networks) {
    Client client(address);
    for (int i = 0; i < networks; ++i) {
      ASSERT_TRUE(client.Call(Of(i, 0)).ok());
      ASSERT_EQ(client.response.desired().resources_size(), 4);
      expected_.push_back(client.response);
    }
  }
  void ExpectWhole(const fn::RunFunctionRequest& request, int network,
                   const fn::RunFunctionResponse& response) const {
    fn::RunFunctionResponse expected = expected_[network];
    // A hit has the rest of its TTL.
    *expected.mutable_meta() = response.meta();
    expected.mutable_meta()->set_tag(request.meta().tag());
    EXPECT_TRUE(MessageDifferencer::Equals(response, expected))
        << response.ShortDebugString().substr(0, 1000);
  }
  // Calls from kCallers threads, each as often as `next` says.
  void Load(const std::string& address,
            const std::function<bool(Client*)>& next) {
    for (int i = 0; i < kCallers; ++i) {
      callers_.emplace_back([address, next] {
        Client client(address);
        while (next(&client)) {
        }
      });
    }
  }
  void Join() {
    for (std::thread& caller : callers_) caller.join();
    callers_.clear();
  }
  ~SdkLoadTest() override { Join(); }

  std::vector<fn::RunFunctionResponse> expected_;
  std::vector<std::thread> callers_;
};

TEST_F(SdkLoadTest, SigtermCutsNoResponse) {
  ExampleFunction function("network", "127.0.0.1:0", {"--debug"});
  Learn(function.address(), 4);
  std::atomic<int> answered{4}, drift{0};
  Load(function.address(), [&](Client* client) {
    const int i = ++drift;
    const fn::RunFunctionRequest request = Of(i % 4, i);
    const grpc::Status status = client->Call(request);
    if (!status.ok()) {
      // gRPC's library cancels calls that come before the caller reads its
      // GOAWAY.
      EXPECT_THAT(status.error_code(), AnyOf(grpc::StatusCode::UNAVAILABLE,
                                             grpc::StatusCode::CANCELLED))
          << status.error_message();
      return false;
    }
    ++answered;
    ExpectWhole(request, i % 4, client->response);
    return true;
  });
  EXPECT_TRUE(Eventually([&] { return answered > 200; }));
  function.Signal(SIGTERM);
  EXPECT_EQ(function.Wait(), 0);
  Join();
  // Each call that it ran has got its response.
  int ran = 0;
  const std::string log = function.Stderr();
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    if (!absl::StrContains(line, "\"msg\":\"call\"")) continue;
    EXPECT_THAT(std::string(line), HasSubstr("\"code\":\"0\""));
    ++ran;
  }
  EXPECT_EQ(answered, ran);
  EXPECT_EQ(Client(function.address()).Call(Of(0, 0)).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(SdkLoadTest, KillOfAFunctionBehindADaemonCutsNoResponse) {
  const TempDir dir;
  // A port could be another process's by the time of the restart.
  const std::string address = "unix:" + dir.File("function.sock");
  auto function = std::make_unique<ExampleFunction>("network", address);
  Learn(address, 4);
  Process daemon({"serve", "--insecure", "--listen", "127.0.0.1:0", "--admin",
                  "", "--admin-socket", "", "--upstream", address});
  ASSERT_TRUE(daemon.WaitForStderr("listening on "));
  const std::string front = daemon.Listening().at(0);

  // Every second call is a miss.
  std::atomic<bool> ends{false};
  std::atomic<int> turns{0}, misses{0};
  Load(front, [&](Client* client) {
    const int i = ++turns;
    const bool miss = i % 2 == 0;
    const int network = i / 2 % 4;
    const fn::RunFunctionRequest request = Of(network, miss ? i : 0);
    const grpc::Status status = client->Call(request);
    if (status.ok()) {
      misses += miss ? 1 : 0;
      ExpectWhole(request, network, client->response);
    } else {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE)
          << status.error_message();
    }
    return !ends;
  });
  EXPECT_TRUE(Eventually([&] { return misses > 100; }));
  function->Signal(SIGKILL);
  EXPECT_EQ(function->Wait(), 128 + SIGKILL);
  // Meanwhile hits are answered, and misses wait for the function.
  function = std::make_unique<ExampleFunction>("network", address);
  const int before = misses;
  EXPECT_TRUE(Eventually([&] { return misses > before + 100; }));
  ends = true;
  Join();

  // Stored responses are hits. A run that failed has stored nothing.
  Client client(front);
  for (int i = 0; i < 4; ++i) {
    for (const auto& [drift, wanted] :
         {std::pair(0, "fncache; hit"), std::pair(-1, "fncache; fwd=miss"),
          std::pair(-1, "fncache; hit")}) {
      const fn::RunFunctionRequest request = Of(i, drift);
      EXPECT_TRUE(client.Call(request).ok());
      EXPECT_THAT(client.cache_status, StartsWith(wanted));
      ExpectWhole(request, i, client.response);
    }
  }
}

}  // namespace
}  // namespace fncache::testing
