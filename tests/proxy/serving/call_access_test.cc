// SPDX-License-Identifier: Apache-2.0
// The line that each call has in the access log, whatever becomes of it.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/common/temp_dir.h"
#include "tests/proxy/serving/call_testing.h"

namespace fncache::proxy::serving {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// A request of a composite, as Crossplane sends it.
std::string OfComposite(const std::string& name, const std::string& secret) {
  fnv1::RunFunctionRequest request;
  request.mutable_meta()->set_tag("tag");
  auto* const object = request.mutable_observed()
                           ->mutable_composite()
                           ->mutable_resource()
                           ->mutable_fields();
  (*object)["apiVersion"].set_string_value("example.org/v1");
  (*object)["kind"].set_string_value("XBucket");
  (*(*object)["spec"].mutable_struct_value()->mutable_fields())["password"]
      .set_string_value(secret);
  auto* const metadata =
      (*object)["metadata"].mutable_struct_value()->mutable_fields();
  (*metadata)["namespace"].set_string_value("team-a");
  (*metadata)["name"].set_string_value(name);
  return request.SerializeAsString();
}

class CallAccessTest : public CallTest {
 protected:
  CallAccessTest() { explains_ = true; }

  void LogCalls(telemetry::LoggedCalls calls) {
    telemetry::AccessLogOptions options;
    options.calls = calls;
    options.slow = absl::Hours(1);
    options.format = LogFormat::kJson;
    options.file = dir_.File("access.log");
    const absl::Status status = Proxy().access_log.Configure(options);
    ASSERT_TRUE(status.ok()) << status;
  }
  // All that were written, when there are as many.
  std::vector<json> Lines(size_t count) {
    const auto& counters = Proxy().instruments.access_log();
    EXPECT_TRUE(Eventually([&] { return counters.written.Value() >= count; }));
    std::vector<json> lines;
    const std::string text =
        ::fncache::testing::ReadFile(dir_.File("access.log"));
    for (const absl::string_view line :
         absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      lines.push_back(json::parse(line));
    }
    EXPECT_EQ(lines.size(), count) << text;
    lines.resize(count);
    return lines;
  }
  std::string Text() {
    return ::fncache::testing::ReadFile(dir_.File("access.log"));
  }

  const ::fncache::testing::TempDir dir_;
};

TEST_F(CallAccessTest, AMissAndItsHitAreTold) {
  LogCalls(telemetry::LoggedCalls::kAll);
  Fill(OfComposite("bucket-1", "opensesame"), Response("tag", "kept", 60));
  auto hit = Send(OfComposite("bucket-1", "opensesame"));
  EXPECT_TRUE(hit->Wait().ok());
  const std::vector<json> lines = Lines(2);
  for (const json& line : lines) {
    EXPECT_EQ(line["function"], "function");
    EXPECT_EQ(line["api_version"], "example.org/v1");
    EXPECT_EQ(line["kind"], "XBucket");
    EXPECT_EQ(line["namespace"], "team-a");
    EXPECT_EQ(line["name"], "bucket-1");
    EXPECT_EQ(line["status"], "OK");
    EXPECT_GT(line["latency_seconds"], 0);
    EXPECT_EQ(line["key"].get<std::string>().size(), 32u);
  }
  EXPECT_EQ(lines[0]["outcome"], "miss");
  EXPECT_EQ(lines[0]["reason"], "new");
  EXPECT_GT(lines[0]["upstream_seconds"], 0);
  EXPECT_LE(lines[0]["upstream_seconds"], lines[0]["latency_seconds"]);
  EXPECT_EQ(lines[1]["outcome"], "hit");
  EXPECT_FALSE(lines[1].contains("reason"));
  EXPECT_FALSE(lines[1].contains("upstream_seconds"));
  EXPECT_EQ(lines[0]["key"], lines[1]["key"]);
  EXPECT_THAT(Text(), Not(HasSubstr("opensesame")));
}

TEST_F(CallAccessTest, AMissSaysWhatChanged) {
  LogCalls(telemetry::LoggedCalls::kMisses);
  Fill(OfComposite("bucket-1", "a"), Response("tag", "kept", 60));
  Fill(OfComposite("bucket-1", "b"), Response("tag", "kept", 60));
  const std::vector<json> lines = Lines(2);
  EXPECT_EQ(lines[1]["reason"], "changed");
  EXPECT_EQ(lines[1]["detail"], "observed.composite.resource.spec.password");
  EXPECT_NE(lines[0]["key"], lines[1]["key"]);
}

TEST_F(CallAccessTest, HitsAndCallsThatWereFastHaveNoLineUnlessAsked) {
  LogCalls(telemetry::LoggedCalls::kMisses);
  Fill(Request("a", "t"), Response("t", "kept", 60));
  EXPECT_TRUE(Send(Request("a", "t"))->Wait().ok());
  LogCalls(telemetry::LoggedCalls::kSlow);
  Fill(Request("b", "t"), Response("t", "kept", 60));
  LogCalls(telemetry::LoggedCalls::kNone);
  Fill(Request("c", "t"), Response("t", "kept", 60));
  LogCalls(telemetry::LoggedCalls::kAll);
  EXPECT_TRUE(Send(Request("a", "t"))->Wait().ok());
  const std::vector<json> lines = Lines(2);
  EXPECT_EQ(lines[0]["outcome"], "miss");
  EXPECT_EQ(lines[1]["outcome"], "hit");
}

TEST_F(CallAccessTest, WhatIsNotLookedUpHasNoKey) {
  LogCalls(telemetry::LoggedCalls::kAll);
  Fill(OfComposite("b", ""), Response("tag", "x", 60),
       {{"authorization", "Bearer geheim"}});
  Fill(OfComposite("b", ""), Response("tag", "x", 60),
       {{"cache-control", "no-cache"}});
  fnv1::RunFunctionRequest operation;
  operation.mutable_input();
  Fill(operation.SerializeAsString(), Response("tag", "x", 60));
  const std::vector<json> lines = Lines(3);
  EXPECT_EQ(lines[0]["outcome"], "bypass");
  EXPECT_EQ(lines[0]["detail"], "authorization");
  EXPECT_FALSE(lines[0].contains("key"));
  EXPECT_EQ(lines[0]["name"], "b");
  EXPECT_EQ(lines[1]["outcome"], "request");
  EXPECT_TRUE(lines[1].contains("key"));
  EXPECT_FALSE(lines[1].contains("detail"));
  EXPECT_EQ(lines[2]["outcome"], "bypass");
  EXPECT_EQ(lines[2]["detail"], "operation");
  EXPECT_FALSE(lines[2].contains("key"));
  EXPECT_FALSE(lines[2].contains("name"));
  EXPECT_THAT(Text(), Not(HasSubstr("geheim")));
}

TEST_F(CallAccessTest, ErrorsAndCallersThatLeftAreToldWithTheirStatus) {
  LogCalls(telemetry::LoggedCalls::kMisses);
  auto failed = Send(OfComposite("b", ""));
  function_.Next()->Fail(grpc::Status(grpc::StatusCode::INTERNAL, "my secret"));
  EXPECT_FALSE(failed->Wait().ok());
  EXPECT_EQ(Lines(1)[0]["status"], "INTERNAL");
  EXPECT_THAT(Text(), Not(HasSubstr("my secret")));
  auto leaver = Send(OfComposite("c", ""));
  auto asked = function_.Next();
  leaver->context.TryCancel();
  const std::vector<json> lines = Lines(2);
  EXPECT_EQ(lines[1]["status"], "CANCELLED");
  EXPECT_EQ(lines[1]["name"], "c");
  EXPECT_FALSE(lines[1].contains("upstream_seconds"));
}

TEST_F(CallAccessTest, CollapsedCallersHaveLinesOfTheirOwn) {
  LogCalls(telemetry::LoggedCalls::kAll);
  auto first = Send(OfComposite("b", ""));
  auto asked = function_.Next();
  auto second = Send(OfComposite("b", ""));
  WaitForCallers(2);
  asked->Answer(Response("tag", "kept", 60).SerializeAsString());
  EXPECT_TRUE(first->Wait().ok());
  EXPECT_TRUE(second->Wait().ok());
  std::vector<json> lines = Lines(2);
  std::sort(lines.begin(), lines.end(), [](const json& a, const json& b) {
    return a["outcome"] < b["outcome"];
  });
  EXPECT_EQ(lines[0]["outcome"], "collapsed");
  EXPECT_EQ(lines[0]["name"], "b");
  EXPECT_EQ(lines[1]["outcome"], "miss");
  EXPECT_EQ(lines[0]["key"], lines[1]["key"]);
}

TEST_F(CallAccessTest, HugeNamesAreCutAndNothingUnreadableStopsTheCall) {
  LogCalls(telemetry::LoggedCalls::kAll);
  Fill(OfComposite(std::string(1 << 20, 'n'), ""), Response("tag", "x", 60));
  Fill("\xff\xff\xff", Response("", "x", 60));
  const std::vector<json> lines = Lines(2);
  EXPECT_EQ(lines[0]["name"],
            std::string(telemetry::AccessRecord::kMostText, 'n'));
  EXPECT_EQ(lines[1]["outcome"], "bypass");
  EXPECT_FALSE(lines[1].contains("name"));
}

}  // namespace
}  // namespace fncache::proxy::serving
