// SPDX-License-Identifier: Apache-2.0
// `key: tag` and `key_hash: sha256` through the real daemon: what hits, what
// never may, and what a change of settings does to entries on disk.

#include <csignal>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "proto/function_v1.pb.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

namespace v1 = apiextensions::fn::proto::v1;
using v1::RunFunctionRequest;

constexpr char kMiss[] = "fncache; fwd=miss; stored";
// As Crossplane writes it: SHA-256 in hex.
constexpr char kTag[] =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

class KeySettingsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    function_ = std::make_unique<Process>(std::vector<std::string>{
        "function", "--listen", "127.0.0.1:0", "--insecure", "--ttl", "1h"});
    ASSERT_TRUE(function_->WaitForStderr("listening on "));
  }

  void StartDaemon(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"serve",
                                          "--insecure",
                                          "--listen",
                                          "127.0.0.1:0",
                                          "--admin=",
                                          "--upstream",
                                          function_->Listening().at(0)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    daemon_ = std::make_unique<Process>(arguments);
    ASSERT_TRUE(daemon_->WaitForStderr("listening on "));
    grpc::ChannelArguments options;
    options.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    stub_ = v1::FunctionRunnerService::NewStub(
        grpc::CreateCustomChannel(daemon_->Listening().at(0),
                                  grpc::InsecureChannelCredentials(), options));
  }

  // Ends the daemon as an operator does: what it took is on disk then.
  void StopDaemon() {
    daemon_->Signal(SIGTERM);
    EXPECT_EQ(daemon_->Wait(), 0) << daemon_->Stderr();
  }

  // The answer's cache-status, once it is a good one under the caller's tag;
  // why it missed aside.
  std::string Call(const RunFunctionRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    context.set_wait_for_ready(true);
    v1::RunFunctionResponse response;
    const grpc::Status status =
        stub_->RunFunction(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.meta().tag(), request.meta().tag());
    const auto& headers = context.GetServerInitialMetadata();
    const auto found = headers.find("cache-status");
    if (found == headers.end()) return "";
    const std::string said(found->second.data(), found->second.size());
    return said.substr(0, said.find("; detail="));
  }
  bool Hits(const RunFunctionRequest& request) {
    return absl::StartsWith(Call(request), "fncache; hit; ttl=");
  }

  std::unique_ptr<Process> function_;
  std::unique_ptr<Process> daemon_;
  std::unique_ptr<v1::FunctionRunnerService::Stub> stub_;
};

RunFunctionRequest Request(const std::string& tag, const std::string& name) {
  RunFunctionRequest request;
  request.mutable_meta()->set_tag(tag);
  request.mutable_meta()->add_capabilities(v1::CAPABILITY_CAPABILITIES);
  (*request.mutable_observed()
        ->mutable_composite()
        ->mutable_resource()
        ->mutable_fields())["name"]
      .set_string_value(name);
  return request;
}

// Returns changes of a request that Crossplane makes under one tag, or may come
// to make.
std::vector<std::pair<const char*, std::function<void(RunFunctionRequest*)>>>
Changes() {
  return {
      {"context",
       [](RunFunctionRequest* request) {
         (*request->mutable_context()->mutable_fields())["a"].set_bool_value(
             true);
       }},
      {"context's value",
       [](RunFunctionRequest* request) {
         (*request->mutable_context()->mutable_fields())["a"].set_bool_value(
             false);
       }},
      {"extra_resources",
       [](RunFunctionRequest* request) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
         (*request->mutable_extra_resources())["a"].add_items();
#pragma GCC diagnostic pop
       }},
      {"required_resources",
       [](RunFunctionRequest* request) {
         (*request->mutable_required_resources())["a"].add_items();
       }},
      {"a required resource that does not exist",
       [](RunFunctionRequest* request) {
         (*request->mutable_required_resources())["a"].Clear();
       }},
      {"required_schemas",
       [](RunFunctionRequest* request) {
         (*request->mutable_required_schemas())["a"].mutable_openapi_v3();
       }},
      {"a required schema that does not exist",
       [](RunFunctionRequest* request) {
         (*request->mutable_required_schemas())["a"].Clear();
       }},
      {"capabilities",
       [](RunFunctionRequest* request) {
         request->mutable_meta()->add_capabilities(
             v1::CAPABILITY_REQUIRED_SCHEMAS);
       }},
      {"an unknown field of meta",
       [](RunFunctionRequest* request) {
         v1::RequestMeta* meta = request->mutable_meta();
         meta->GetReflection()->MutableUnknownFields(meta)->AddVarint(9, 1);
       }},
      {"an unknown top-level field",
       [](RunFunctionRequest* request) {
         request->GetReflection()
             ->MutableUnknownFields(request)
             ->AddLengthDelimited(17, "new");
       }},
      {"observed of another wire type",
       [](RunFunctionRequest* request) {
         request->GetReflection()->MutableUnknownFields(request)->AddVarint(2,
                                                                            1);
       }},
  };
}

TEST_F(KeySettingsTest, OneTagIsOneAnswerUnlessWhatItDoesNotStandForDiffers) {
  StartDaemon({"--key", "tag"});
  const RunFunctionRequest first = Request(kTag, "xr");
  EXPECT_EQ(Call(first), kMiss);
  EXPECT_TRUE(Hits(first));
  // The tag represents the content from which it was computed.
  EXPECT_TRUE(Hits(Request(kTag, "as Crossplane never would")));
  RunFunctionRequest bare;
  *bare.mutable_meta() = first.meta();
  bare.mutable_observed()->mutable_composite()->mutable_resource();
  EXPECT_TRUE(Hits(bare));

  for (const auto& [what, change] : Changes()) {
    RunFunctionRequest changed = first;
    change(&changed);
    EXPECT_EQ(Call(changed), kMiss) << what;
    EXPECT_TRUE(Hits(changed)) << what;
  }
  EXPECT_TRUE(Hits(first));

  std::string other = kTag;
  other.back() = '6';
  EXPECT_EQ(Call(Request(other, "xr")), kMiss);
  other = kTag;
  other[0] = 'E';
  EXPECT_EQ(Call(Request(other, "xr")), kMiss);
}

TEST_F(KeySettingsTest, AnotherTagThan64HexDigitsFallsBackToContent) {
  StartDaemon({"--key=tag"});
  for (const std::string& tag :
       {std::string(), std::string("xr-1"), std::string(63, 'a'),
        std::string(65, 'a'), std::string(63, 'a') + "g"}) {
    const std::string name = absl::StrCat("xr with ", tag);
    EXPECT_EQ(Call(Request(tag, name)), kMiss) << tag;
    EXPECT_TRUE(Hits(Request(tag, name))) << tag;
    // By content the tag makes no difference, and all else does.
    EXPECT_TRUE(Hits(Request("another", name))) << tag;
    EXPECT_EQ(Call(Request(tag, name + "!")), kMiss) << tag;
  }
  // Nor is it an answer for those that are keyed by their tags.
  EXPECT_EQ(Call(Request(kTag, "xr with ")), kMiss);
}

TEST_F(KeySettingsTest, LargeRequestsInManySlicesHitToo) {
  StartDaemon({"--key=tag", "--key-hash=sha256"});
  RunFunctionRequest request = Request(kTag, std::string(3 << 20, 'x'));
  (*request.mutable_context()->mutable_fields())["a"].set_string_value(
      std::string(100 << 10, 'c'));
  EXPECT_EQ(Call(request), kMiss);
  EXPECT_TRUE(Hits(request));
  (*request.mutable_context()->mutable_fields())["a"]
      .mutable_string_value()
      ->back() = 'd';
  EXPECT_EQ(Call(request), kMiss);
}

TEST_F(KeySettingsTest, Sha256KeysTellRequestsApartAsOthersDo) {
  StartDaemon({"--key-hash", "sha256"});
  EXPECT_EQ(Call(Request("one", "xr")), kMiss);
  EXPECT_TRUE(Hits(Request("two", "xr")));
  for (const auto& [what, change] : Changes()) {
    RunFunctionRequest changed = Request("one", "xr");
    change(&changed);
    EXPECT_EQ(Call(changed), kMiss) << what;
  }
  EXPECT_EQ(Call(Request("one", "another")), kMiss);
}

TEST_F(KeySettingsTest, AChangedSettingHidesEntriesUntilItIsChangedBack) {
  TempDir dir;
  const std::vector<std::vector<std::string>> settings = {
      {},
      {"--key=tag"},
      {"--key-hash=sha256"},
      {"--key=tag", "--key-hash=sha256"},
      {"--mask=context.now"},
  };
  const auto start = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(),
                     {"--cache-dir", dir.path() + "/cache", "--generation=g1"});
    StartDaemon(arguments);
  };
  for (const bool again : {false, true}) {
    for (size_t i = 0; i < settings.size(); ++i) {
      start(settings[i]);
      for (const std::string& tag : {std::string(kTag), std::string("other")}) {
        // By content both tags are one request.
        const bool hit = again || (tag == "other" && (i % 2) == 0);
        EXPECT_EQ(Hits(Request(tag, "xr")), hit) << i << " " << tag;
      }
      StopDaemon();
    }
  }
}

TEST_F(KeySettingsTest, EachFunctionOfADaemonHasItsOwnSetting) {
  Process other({"function", "--listen", "127.0.0.1:0", "--insecure"});
  ASSERT_TRUE(other.WaitForStderr("listening on "));
  TempDir dir;
  const std::string file = dir.path() + "/f.yaml";
  std::ofstream(file) << "insecure: true\nadmin: ''\nfunctions:\n"
                      << "- {name: a, listen: '127.0.0.1:0', key: tag, "
                      << "upstream: '" << function_->Listening().at(0)
                      << "'}\n- {name: b, listen: '127.0.0.1:0', upstream: '"
                      << other.Listening().at(0) << "'}\n";
  daemon_ = std::make_unique<Process>(
      std::vector<std::string>{"serve", "--config", file});
  ASSERT_TRUE(daemon_->WaitForStderr("listening on ", 2));
  int by_tag = 0;
  for (const std::string& address : daemon_->Listening()) {
    grpc::ChannelArguments options;
    options.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    stub_ = v1::FunctionRunnerService::NewStub(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), options));
    EXPECT_EQ(Call(Request(kTag, "xr")), kMiss);
    by_tag += Hits(Request(kTag, "another")) ? 1 : 0;
  }
  EXPECT_EQ(by_tag, 1);
}

}  // namespace
}  // namespace fncache::testing
