// SPDX-License-Identifier: Apache-2.0
// `mode: shadow` in the real daemon, before a function that reads what a mask
// hides: it is found before it does harm, and afterwards what was kept is
// served.
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "proto/function_v1.grpc.pb.h"
#include "proto/function_v1.pb.h"
#include "tests/common/temp_dir.h"
#include "tests/integration/process.h"

namespace fncache::testing {
namespace {

namespace v1 = apiextensions::fn::proto::v1;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kShadowed[] = "fncache; fwd=bypass; detail=shadow";
constexpr char kKept[] = "fncache; fwd=bypass; stored; detail=shadow";
constexpr char kLabels[] = "observed.composite.resource.metadata.labels";

// Its bucket's size is a label's, and it reads no resourceVersion.
constexpr char kTemplate[] = R"({
  "apiVersion": "function.fncache.dev/v1alpha1", "kind": "Template",
  "spec": {"resources": [{"name": "bucket", "base": {
    "apiVersion": "s3.example.org/v1", "kind": "Bucket",
    "spec": {"size": "${observed.composite.resource.metadata.labels.size}"}}}]}
})";

v1::RunFunctionRequest Request(const std::string& name, int version,
                               const std::string& size) {
  v1::RunFunctionRequest request;
  const auto parse = [](const std::string& json, google::protobuf::Struct* to) {
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, to).ok());
  };
  request.mutable_meta()->set_tag(absl::StrCat(name, version, size));
  parse(kTemplate, request.mutable_input());
  parse(absl::StrCat(R"({"apiVersion": "example.org/v1", "kind": "XBucket",
          "metadata": {"name": ")",
                     name, R"(", "resourceVersion": ")", version,
                     R"(", "labels": {"size": ")", size, R"("}}})"),
        request.mutable_observed()->mutable_composite()->mutable_resource());
  return request;
}

class ShadowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    function_ = std::make_unique<Process>(std::vector<std::string>{
        "function", "--listen", "127.0.0.1:0", "--insecure", "--ttl", "1h"});
    ASSERT_TRUE(function_->WaitForStderr("listening on "));
  }

  void StartDaemon(std::vector<std::string> more) {
    more.insert(more.begin(),
                {"serve", "--insecure", "--listen", "127.0.0.1:0", "--admin",
                 "127.0.0.1:0", "--cache-dir", cache_.path(), "--generation",
                 "one", "--upstream", function_->Listening().at(0)});
    daemon_ = std::make_unique<Process>(more);
    ASSERT_TRUE(daemon_->WaitForStderr("listening on ", 2));
    grpc::ChannelArguments options;
    options.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    stub_ = v1::FunctionRunnerService::NewStub(
        grpc::CreateCustomChannel(daemon_->Listening().at(0),
                                  grpc::InsecureChannelCredentials(), options));
  }
  void StopDaemon() {
    daemon_->Signal(SIGTERM);
    EXPECT_EQ(daemon_->Wait(), 0) << daemon_->Stderr();
  }

  struct Answered {
    std::string status;
    std::string size;
    v1::RunFunctionResponse response;
  };
  Answered Call(const v1::RunFunctionRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    context.set_wait_for_ready(true);
    Answered answered;
    const grpc::Status status =
        stub_->RunFunction(&context, request, &answered.response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    const auto& headers = context.GetServerInitialMetadata();
    const auto found = headers.find("cache-status");
    if (found != headers.end()) {
      answered.status.assign(found->second.data(), found->second.size());
    }
    answered.size = answered.response.desired()
                        .resources()
                        .at("bucket")
                        .resource()
                        .fields()
                        .at("spec")
                        .struct_value()
                        .fields()
                        .at("size")
                        .string_value();
    return answered;
  }

  double Metric(const std::string& name, const std::string& by = "") {
    return Sample(
        HttpGet(daemon_->Listening().at(1), "/metrics"),
        absl::StrCat(name, "{function_name=\"function\"",
                     by.empty() ? "" : ",by=\"", by, by.empty() ? "}" : "\"}"));
  }

  TempDir cache_;
  std::unique_ptr<Process> function_;
  std::unique_ptr<Process> daemon_;
  std::unique_ptr<v1::FunctionRunnerService::Stub> stub_;
};

TEST_F(ShadowTest, AMaskOverWhatTheFunctionReadsIsFoundBeforeItDoesHarm) {
  StartDaemon({"--mode", "shadow", "--mask", "@versions", "--mask", kLabels});
  EXPECT_EQ(Call(Request("a", 1, "10")).status, kKept);
  // The runner always gets what the function says.
  Answered answered = Call(Request("a", 2, "20"));
  EXPECT_EQ(answered.status, kShadowed);
  EXPECT_EQ(answered.size, "20");
  EXPECT_EQ(answered.response.meta().ttl().seconds(), 3600);
  answered = Call(Request("a", 2, "10"));
  EXPECT_EQ(answered.size, "10");
  EXPECT_EQ(Metric("fncache_shadow_lookups_total"), 3);
  EXPECT_EQ(Metric("fncache_shadow_hits_total", "mask"), 2);
  EXPECT_EQ(Metric("fncache_shadow_differences_total", "mask"), 1);
  EXPECT_EQ(Metric("function_run_function_response_cache_hits_total"), 0);
  EXPECT_EQ(Metric("function_run_function_response_cache_misses_total"), 0);
  StopDaemon();
  const std::string log = daemon_->Stderr();
  EXPECT_THAT(log, HasSubstr("shadow: the cache would have given another "
                             "answer than the function"));
  EXPECT_THAT(log, HasSubstr("XBucket a"));
  EXPECT_THAT(log, HasSubstr(kLabels));
  EXPECT_THAT(log, HasSubstr("desired.resources.bucket.resource.spec.size"));
}

TEST_F(ShadowTest, ASoundMaskMakesNoDifferenceAndThenServesWhatWasKept) {
  const std::vector<std::string> masks = {"--mask", "@versions"};
  std::vector<std::string> shadow = masks;
  shadow.insert(shadow.end(), {"--mode", "shadow"});
  StartDaemon(shadow);
  EXPECT_EQ(Call(Request("a", 1, "10")).status, kKept);
  EXPECT_EQ(Call(Request("b", 1, "10")).status, kKept);
  for (int version = 2; version < 12; ++version) {
    for (const char* name : {"a", "b"}) {
      EXPECT_EQ(Call(Request(name, version, "10")).status, kShadowed);
    }
  }
  EXPECT_EQ(Call(Request("a", 1, "10")).status, kShadowed);
  EXPECT_EQ(Metric("fncache_shadow_hits_total", "mask"), 20);
  EXPECT_EQ(Metric("fncache_shadow_hits_total", "exact"), 1);
  EXPECT_EQ(Metric("fncache_shadow_differences_total", "mask"), 0);
  EXPECT_EQ(Metric("fncache_shadow_differences_total", "exact"), 0);
  StopDaemon();
  EXPECT_THAT(daemon_->Stderr(), Not(HasSubstr("another answer")));

  // After a restart it is not known which requests the entries are of.
  StartDaemon(shadow);
  EXPECT_EQ(Call(Request("a", 20, "10")).status, kShadowed);
  EXPECT_EQ(Metric("fncache_shadow_hits_total", "unknown"), 1);
  EXPECT_EQ(Metric("fncache_shadow_hits_total", "mask"), 0);
  StopDaemon();

  StartDaemon(masks);
  const Answered hit = Call(Request("a", 30, "10"));
  EXPECT_TRUE(absl::StartsWith(hit.status, "fncache; hit; ttl=")) << hit.status;
  EXPECT_EQ(hit.size, "10");
  StopDaemon();
}

}  // namespace
}  // namespace fncache::testing
