// SPDX-License-Identifier: Apache-2.0
// The records of calls in a trace, end to end in one process.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "insight/trace/reader.h"
#include "insight/trace/writer.h"
#include "tests/common/temp_dir.h"
#include "tests/proxy/serving/call_testing.h"

namespace fncache::proxy::serving {
namespace {

using insight::trace::Outcome;
using insight::trace::TraceWriter;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class CallTraceTest : public CallTest {
 protected:
  void Begin() {
    insight::trace::TraceOptions options;
    options.dir = dir_.path() + "/trace";
    options.level = insight::trace::Level::kFull;
    options.writer = "serve";
    auto writer = TraceWriter::Create(options);
    ASSERT_TRUE(writer.ok()) << writer.status();
    Proxy().traces.Replace(*std::move(writer));
  }
  // The outcomes of the traced calls, by the tag of the answer in the trace.
  std::map<std::string, Outcome> End() {
    Proxy().traces.Replace(nullptr)->Close();
    std::map<std::string, Outcome> calls;
    auto reader = insight::trace::TraceReader::Open(dir_.path() + "/trace");
    EXPECT_TRUE(reader.ok()) << reader.status();
    insight::trace::ReadCall call;
    while (reader.ok() && (*reader)->Next(&call)) {
      fnv1::RunFunctionResponse response;
      EXPECT_TRUE(response.ParseFromString(call.response_message));
      calls.emplace(response.meta().tag(), call.call.outcome);
    }
    return calls;
  }

  const ::fncache::testing::TempDir dir_;
};

TEST_F(CallTraceTest, EveryCallHasTheAnswerThatItGot) {
  Begin();
  auto first = Send(Request("a", "first"));
  auto call = function_.Next();
  auto joined = Send(Request("a", "joined"));
  WaitForCallers(2);
  call->Answer(Response("first", "x", 60).SerializeAsString());
  ASSERT_TRUE(first->Wait().ok());
  ASSERT_TRUE(joined->Wait().ok());
  ASSERT_TRUE(Send(Request("a", "hit"))->Wait().ok());
  EXPECT_THAT(End(), UnorderedElementsAre(Pair("first", Outcome::kMiss),
                                          Pair("joined", Outcome::kCollapsed),
                                          Pair("hit", Outcome::kHit)));
}

TEST_F(CallTraceTest, ABypassSaysWhyItIsOne) {
  Begin();
  fnv1::RunFunctionRequest operation;
  operation.mutable_meta()->set_tag("t");
  Fill(operation.SerializeAsString(), Response("operation", "x", 60));
  Fill(Request("a", "t"), Response("metadata", "x", 60),
       {{"authorization", "me"}});
  // One that its caller asked for is no bypass of the daemon's.
  Fill(Request("a", "t"), Response("asked for", "x", 60),
       {{"cache-control", "no-store"}});
  Proxy().traces.Replace(nullptr)->Close();
  std::vector<std::string> details;
  auto reader = insight::trace::TraceReader::Open(dir_.path() + "/trace");
  ASSERT_TRUE(reader.ok()) << reader.status();
  insight::trace::ReadCall call;
  while ((*reader)->Next(&call)) {
    EXPECT_EQ(call.call.outcome, Outcome::kBypass);
    EXPECT_FALSE(call.call.key.has_value());
    details.push_back(call.call.detail);
  }
  EXPECT_THAT(details, UnorderedElementsAre("operation", "authorization", ""));
}

}  // namespace
}  // namespace fncache::proxy::serving
