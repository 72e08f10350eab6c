#include "runner/demo_traffic.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runner/function_server.h"
#include "runner/template_responder.h"
#include "tests/runner/messages.h"

namespace fncache::runner {
namespace {

using google::protobuf::util::MessageDifferencer;

TEST(DemoTrafficTest, RequestsAreRealAndDifferByComposite) {
  const auto request = DemoRequest(3, 20);
  EXPECT_EQ(request.observed().resources().size(), 20u);
  EXPECT_GT(request.ByteSizeLong(), 20000u);
  EXPECT_FALSE(MessageDifferencer::Equals(request, DemoRequest(4, 20)));
  EXPECT_TRUE(MessageDifferencer::Equals(request, DemoRequest(3, 20)));
}

TEST(DemoTrafficTest, TemplateRendersEveryBucket) {
  RunFunctionResponse response;
  ASSERT_TRUE(
      TemplateResponder({}).Respond(DemoRequest(3, 20), &response).ok());
  EXPECT_EQ(response.desired().resources().size(), 20u);
  ASSERT_EQ(response.results_size(), 1);
  EXPECT_EQ(response.results(0).message(), "20 buckets for lake-3");
}

TEST(DemoTrafficTest, ShuffledBytesAreTheSameMessageInAnotherOrder) {
  const auto request = DemoRequest(1, 5);
  std::mt19937 random(7);
  std::set<std::string> encodings;
  for (int i = 0; i < 20; ++i) {
    const std::string bytes = EncodeShuffled(request, &random);
    encodings.insert(bytes);
    RunFunctionRequest read;
    ASSERT_TRUE(read.ParseFromString(bytes));
    EXPECT_TRUE(MessageDifferencer::Equals(read, request));
  }
  EXPECT_EQ(encodings.size(), 20u);
}

TEST(DemoTrafficTest, TagsDependOnContentAndBuildButNotOnMeta) {
  auto request = DemoRequest(1, 5);
  const std::string tag = DemoTag(request, 0);
  EXPECT_EQ(tag.size(), 64u);
  EXPECT_NE(tag, DemoTag(request, 1));
  EXPECT_NE(tag, DemoTag(DemoRequest(2, 5), 0));
  request.mutable_meta()->set_tag(tag);
  EXPECT_EQ(tag, DemoTag(request, 0));
}

TEST(DemoTrafficTest, DriveSendsEveryCallAndReadsItsAnswer) {
  const TemplateResponder responder({});
  FunctionServerOptions options;
  options.listen = "127.0.0.1:0";
  auto server = FunctionServer::Start(options, &responder);
  ASSERT_TRUE(server.ok()) << server.status();
  std::mt19937 random(7);
  std::vector<DemoCall> calls(60);
  for (int i = 0; i < 60; ++i) {
    auto request = DemoRequest(i % 4, 3);
    calls[i].composite = i % 4;
    calls[i].tag = std::to_string(i);
    request.mutable_meta()->set_tag(calls[i].tag);
    calls[i].bytes = EncodeShuffled(request, &random);
  }
  size_t told = 0;
  Drive((*server)->address(), 10, [&](size_t done) { EXPECT_EQ(done, ++told); },
        &calls);
  EXPECT_EQ(told, 60u);
  for (const DemoCall& call : calls) {
    EXPECT_TRUE(call.status.ok()) << call.status;
    EXPECT_EQ(call.response.meta().tag(), call.tag);
    EXPECT_EQ(call.cache_status, "");
    EXPECT_GT(call.latency, absl::ZeroDuration());
  }
  EXPECT_EQ((*server)->counts().answered, 60u);
}

}  // namespace
}  // namespace fncache::runner
