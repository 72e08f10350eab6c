// SPDX-License-Identifier: Apache-2.0
#include "runner/render/trace.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runner/render/context_steps.h"
#include "runner/render/state_diff.h"
#include "tests/runner/messages.h"

// extra_resources is deprecated, and functions still use it.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fncache::runner::render {
namespace {

using apiextensions::fn::proto::v1::RunFunctionRequest;
using apiextensions::fn::proto::v1::RunFunctionResponse;
using apiextensions::fn::proto::v1::State;
using google::protobuf::Struct;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> States(const std::string& before,
                                const std::string& after) {
  return DiffStates("desired", FromJson<State>(before), FromJson<State>(after));
}

std::vector<std::string> Maps(const std::string& before,
                              const std::string& after) {
  return DiffMaps("context", FromJson<Struct>(before), FromJson<Struct>(after));
}

TEST(DiffMapsTest, NothingWhereNothingChanged) {
  EXPECT_THAT(Maps("{}", "{}"), IsEmpty());
  EXPECT_THAT(Maps(R"({"a": {"b": [1, null]}})", R"({"a": {"b": [1, null]}})"),
              IsEmpty());
}

TEST(DiffMapsTest, NamesWhatIsNewGoneOrOther) {
  EXPECT_THAT(
      Maps(R"({"a": {"b": 1, "c": "x", "same": [1]}, "gone": true})",
           R"({"a": {"b": 2, "d": null, "same": [1]}, "new": {"k": "v"}})"),
      ElementsAre("~ context.a.b: 1 -> 2", "- context.a.c: \"x\"",
                  "+ context.a.d: null", "- context.gone: true",
                  "+ context.new:", "  +   k: v"));
}

TEST(DiffMapsTest, ListsAreComparedElementByElement) {
  EXPECT_THAT(Maps(R"({"l": [1, {"a": 1}, 3]})", R"({"l": [1, {"a": 2}]})"),
              ElementsAre("~ context.l[1].a: 1 -> 2", "- context.l[2]: 3"));
  EXPECT_THAT(Maps(R"({"l": []})", R"({"l": ["x"]})"),
              ElementsAre("+ context.l[0]: \"x\""));
}

TEST(DiffMapsTest, AnotherTypeIsAChange) {
  EXPECT_THAT(
      Maps(R"({"a": {"b": 1}, "c": 1})", R"({"a": [1], "c": "1"})"),
      ElementsAre("~ context.a: {\"b\":1} -> [1]", "~ context.c: 1 -> \"1\""));
}

TEST(DiffMapsTest, KeysThatAreNoNamesStandInQuotes) {
  EXPECT_THAT(
      Maps("{}", R"({"example.org/env": 1, "": 2})"),
      ElementsAre("+ context.\"\": 2", "+ context.\"example.org/env\": 1"));
}

TEST(DiffMapsTest, LongValuesAreCutAndTheirControlCharactersShown) {
  const std::string text(300, 'x');
  const auto lines = Maps("{}", absl::StrCat(R"({"a": ")", text, R"("})"));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_LT(lines[0].size(), 220u);
  EXPECT_THAT(lines[0], HasSubstr("... (302 bytes)"));
  EXPECT_THAT(Maps("{}", R"({"a": "\u001b[31m\u009b"})"),
              ElementsAre(Not(HasSubstr("\x1b"))));
}

TEST(DiffStatesTest, ANewResourceShowsWhatItIs) {
  EXPECT_THAT(
      States("{}", R"({"resources": {"bucket": {"resource": {
          "apiVersion": "s3.example.org/v1", "kind": "Bucket",
          "spec": {"region": "eu"}}, "ready": "READY_TRUE"}}})"),
      ElementsAre("+ desired.resources.bucket (s3.example.org/v1 Bucket)",
                  "  +   spec:", "  +     region: eu",
                  "~ desired.resources.bucket: ready"));
}

TEST(DiffStatesTest, AResourceThatIsLeftOutShowsAsGone) {
  EXPECT_THAT(States(R"({"resources": {"a": {"resource": {
                  "apiVersion": "v1", "kind": "K"}}}})",
                     "{}"),
              ElementsAre("- desired.resources.a (v1 K)"));
}

TEST(DiffStatesTest, ChangesWithinResourcesShowTheirPaths) {
  EXPECT_THAT(States(R"({"resources": {"a": {"resource": {"spec": {"n": 1}}}},
                 "composite": {"resource": {"status": {"s": 1}}}})",
                     R"({"resources": {"a": {"resource": {"spec": {"n": 2}},
                               "ready": "READY_FALSE"}},
                 "composite": {"resource": {"status": {"s": 1, "t": 2}},
                               "ready": "READY_TRUE"}})"),
              ElementsAre("+ desired.composite.status.t: 2",
                          "~ desired.composite: unspecified -> ready",
                          "~ desired.resources.a.spec.n: 1 -> 2",
                          "~ desired.resources.a: unspecified -> not ready"));
}

TEST(DiffStatesTest, SecretsShowTheirLengthOnly) {
  // Base64 of "secret", "hidden" and "gone".
  EXPECT_THAT(
      States(R"({"composite": {"connectionDetails": {
                   "changed": "c2VjcmV0", "gone": "Z29uZQ=="}}})",
             R"({"composite": {"connectionDetails": {
                   "changed": "aGlkZGVu", "new": "c2VjcmV0"}}})"),
      ElementsAre("~ desired.composite: connection detail changed: 6 bytes -> "
                  "6 other bytes",
                  "- desired.composite: connection detail gone: 4 bytes",
                  "+ desired.composite: connection detail new: 6 bytes"));
}

TEST(DiffStatesTest, LongResourcesAreCut) {
  std::string list = "1";
  for (int i = 0; i < 99; ++i) absl::StrAppend(&list, ",1");
  const auto lines =
      States("{}", absl::StrCat(R"({"resources": {"a": {"resource": {"l": [)",
                                list, "]}}}}"));
  ASSERT_EQ(lines.size(), 1u + kMaxShownLines + 1);
  EXPECT_EQ(lines.back(), "  +   ... and 61 lines more");
}

class RenderTraceTest : public ::testing::Test {
 protected:
  RenderTraceTest()
      : trace_(2, "", /*color=*/false,
               [this](const std::string& text) { printed_ += text; }) {}

  std::string Call(int call, const std::string& request,
                   const std::string& response,
                   absl::Status status = absl::OkStatus(),
                   const std::string& step = "s",
                   const std::string& function = "f") {
    printed_.clear();
    const auto sent = FromJson<RunFunctionRequest>(request);
    client::CallResult result;
    result.response = FromJson<RunFunctionResponse>(response);
    result.status = std::move(status);
    result.cache_status = cache_;
    result.hint = hint_;
    trace_.OnCall({step, function, 1, call, sent, result, absl::UnixEpoch(),
                   absl::Microseconds(3149)});
    return printed_;
  }

  std::string printed_;
  std::string cache_;
  absl::optional<std::string> hint_;
  RenderTrace trace_;
};

TEST_F(RenderTraceTest, ACallShowsItsStepTimeAndCache) {
  EXPECT_EQ(Call(1, "{}", "{}"),
            "step 2/2 \"s\" (f): 3.14ms\n"
            "  changes nothing in desired state or context\n");
  cache_ = "fncache; hit; ttl=37";
  EXPECT_EQ(Call(1, R"({"context": {"a": 1}})", R"({"context": {"a": 2}})"),
            "step 2/2 \"s\" (f): 3.14ms, cache: fncache; hit; ttl=37\n"
            "  ~ context.a: 1 -> 2\n");
}

TEST_F(RenderTraceTest, AHintShowsAsItCame) {
  hint_ = R"(reads=("observed.composite.resource.spec"), pure)";
  EXPECT_EQ(Call(1, "{}", "{}"),
            "step 2/2 \"s\" (f): 3.14ms\n"
            "  fncache-depends: reads=(\"observed.composite.resource.spec\"), "
            "pure\n"
            "  changes nothing in desired state or context\n");
  hint_ = "pure";
  EXPECT_THAT(Call(1, "{}", "{}"),
              HasSubstr("  fncache-depends: pure (refused: has no `reads`)\n"));
}

TEST_F(RenderTraceTest, RepeatedCallsShowWhatWasAskedForAndGiven) {
  EXPECT_EQ(Call(1, "{}", R"({"requirements": {"resources": {
          "a": {"apiVersion": "v1", "kind": "K", "matchName": "n"},
          "b": {"apiVersion": "v1", "kind": "K", "namespace": "ns",
                "matchLabels": {"labels": {"x": "1", "w": "2"}}}},
          "schemas": {"s": {"apiVersion": "v1", "kind": "Pod"}}},
        "context": {"seen": 1}})"),
            "step 2/2 \"s\" (f): 3.14ms\n"
            "  requires resources \"a\": v1 K named \"n\"\n"
            "  requires resources \"b\": v1 K in \"ns\" with w=2, x=1\n"
            "  requires schema \"s\": v1 Pod\n"
            "  + context.seen: 1\n");
  // Compared with the answer before: the context is not new again.
  EXPECT_EQ(Call(2, R"({"requiredResources": {"a": {}, "b": {"items": [{}]}},
                        "requiredSchemas": {"s": {}},
                        "context": {"seen": 1}})",
                 R"({"context": {"seen": 1}})"),
            "step 2/2 \"s\" (f), call 2: 3.14ms\n"
            "  given resources \"a\": 0 found\n"
            "  given resources \"b\": 1 found\n"
            "  given schema \"s\": none\n"
            "  changes nothing in desired state or context\n");
}

TEST_F(RenderTraceTest, ResultsAndConditionsShow) {
  EXPECT_EQ(Call(1, "{}", R"({"results": [
        {"severity": "SEVERITY_FATAL", "message": "no\nway"},
        {"severity": "SEVERITY_NORMAL", "message": "fine"}],
      "conditions": [{"type": "T", "status": "STATUS_CONDITION_TRUE",
                      "reason": "R", "message": "m"}]})"),
            "step 2/2 \"s\" (f): 3.14ms\n"
            "  condition T: True, R: m\n"
            "  FATAL: no\\nway\n"
            "  NORMAL: fine\n"
            "  changes nothing in desired state or context\n");
}

TEST_F(RenderTraceTest, AFailedCallShowsWhy) {
  EXPECT_EQ(Call(1, R"({"context": {"a": 1}})", "{}",
                 absl::InternalError("rpc error: code = Internal desc = boom")),
            "step 2/2 \"s\" (f): 3.14ms\n"
            "  failed: rpc error: code = Internal desc = boom\n");
}

TEST_F(RenderTraceTest, TheStepThatOnlyReadsTheContextIsLeftOut) {
  EXPECT_EQ(Call(1, R"({"context": {"a": 1}})", "{}", absl::OkStatus(),
                 kCaptureStep, kContextFunction),
            "");
}

TEST(RenderTraceTitleTest, StandsBeforeEachCall) {
  std::string printed;
  RenderTrace trace(1, "xrs/a.yaml", /*color=*/false,
                    [&](const std::string& text) { printed = text; });
  trace.OnCall({"s", "f", 0, 1, RunFunctionRequest(), client::CallResult(),
                absl::UnixEpoch(), absl::Nanoseconds(5)});
  EXPECT_EQ(printed,
            "xrs/a.yaml: step 1/1 \"s\" (f): 5ns\n"
            "  changes nothing in desired state or context\n");
}

TEST(RenderTraceColorTest, EveryLineHasTheColorOfWhatItTells) {
  std::string printed;
  RenderTrace trace(1, "", /*color=*/true,
                    [&](const std::string& text) { printed = text; });
  const auto sent =
      FromJson<RunFunctionRequest>(R"({"context": {"a": 1, "gone": 1}})");
  client::CallResult result;
  result.response = FromJson<RunFunctionResponse>(
      R"({"context": {"a": 2, "m": {"b": "\u001b[0m+"}},
          "results": [
            {"severity": "SEVERITY_NORMAL", "message": "fine"},
            {"severity": "SEVERITY_WARNING", "message": "hm"},
            {"severity": "SEVERITY_FATAL", "message": "no"}]})");
  trace.OnCall(
      {"s", "f", 0, 1, sent, result, absl::UnixEpoch(), absl::Nanoseconds(5)});
  EXPECT_EQ(printed,
            "\033[1mstep 1/1 \"s\" (f): 5ns\033[0m\n"
            "\033[33m  ~ context.a: 1 -> 2\033[0m\n"
            "\033[31m  - context.gone: 1\033[0m\n"
            "\033[32m  + context.m:\033[0m\n"
            "\033[32m    +   b: \"\\e[0m+\"\033[0m\n"
            "  NORMAL: fine\n"
            "\033[33m  WARNING: hm\033[0m\n"
            "\033[31m  FATAL: no\033[0m\n");
  result.status = absl::InternalError("boom");
  trace.OnCall(
      {"s", "f", 0, 1, sent, result, absl::UnixEpoch(), absl::Nanoseconds(5)});
  EXPECT_EQ(printed,
            "\033[1mstep 1/1 \"s\" (f): 5ns\033[0m\n"
            "\033[31m  failed: boom\033[0m\n");
}

// Covers each text of a call that comes from outside.
TEST(RenderTraceHostileTest, NothingThatATerminalObeysIsPrinted) {
  const std::string hostile =
      "\033[2J\007\r\n\x7f\xc2\x9b\xe2\x80\xae\xe2\x81\xa6$\xe2\x80\xa8";
  RunFunctionRequest sent;
  (*sent.mutable_required_resources())[hostile];
  (*sent.mutable_extra_resources())[hostile];
  (*sent.mutable_required_schemas())[hostile];
  client::CallResult result;
  result.cache_status = hostile;
  result.hint = hostile;
  RunFunctionResponse& response = result.response;
  auto* const requirements = response.mutable_requirements();
  auto* selector = &(*requirements->mutable_resources())[hostile];
  selector->set_api_version(hostile);
  selector->set_kind(hostile);
  selector->set_namespace_(hostile);
  selector->set_match_name(hostile);
  selector = &(*requirements->mutable_resources())["b"];
  (*selector->mutable_match_labels()->mutable_labels())[hostile] = hostile;
  auto* const schema = &(*requirements->mutable_schemas())[hostile];
  schema->set_api_version(hostile);
  schema->set_kind(hostile);
  google::protobuf::Value text;
  text.set_string_value(hostile);
  auto* const fields = response.mutable_context()->mutable_fields();
  (*fields)[hostile] = text;
  (*(*fields)["m"].mutable_struct_value()->mutable_fields())[hostile] = text;
  auto* const resource =
      &(*response.mutable_desired()->mutable_resources())[hostile];
  (*resource->mutable_connection_details())[hostile] = hostile;
  for (const std::string& name :
       {std::string("kind"), std::string("apiVersion"), hostile}) {
    (*resource->mutable_resource()->mutable_fields())[name] = text;
  }
  auto* const condition = response.add_conditions();
  condition->set_type(hostile);
  condition->set_reason(hostile);
  condition->set_message(hostile);
  response.add_results()->set_message(hostile);

  std::string printed;
  RenderTrace trace(1, hostile, /*color=*/false,
                    [&](const std::string& text) { printed += text; });
  for (const int call : {1, 2}) {
    trace.OnCall({hostile, hostile, 0, call, sent, result, absl::UnixEpoch(),
                  absl::Nanoseconds(5)});
  }
  result.status = absl::InternalError(hostile);
  trace.OnCall({hostile, hostile, 0, 1, sent, result, absl::UnixEpoch(),
                absl::Nanoseconds(5)});
  int seen = 0;
  for (const absl::string_view line : absl::StrSplit(printed, '\n')) {
    EXPECT_EQ(Printable(line), line);
    seen += absl::StrContains(line, "$") ? 1 : 0;
  }
  EXPECT_GE(seen, 20) << printed;
}

}  // namespace
}  // namespace fncache::runner::render
