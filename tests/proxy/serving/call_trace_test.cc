// SPDX-License-Identifier: Apache-2.0
// What calls leave in a trace, end to end in one process.
#include <map>
#include <memory>
#include <string>

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

}  // namespace
}  // namespace fncache::proxy::serving
