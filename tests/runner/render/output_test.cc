// SPDX-License-Identifier: Apache-2.0
#include "runner/render/output.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/render.pb.h"
#include "tests/runner/messages.h"

namespace fncache::runner::render {
namespace {

using crossplane::render::v1alpha1::CompositeOutput;
using ::testing::HasSubstr;

constexpr char kTime[] = "2024-01-01T00:00:00Z";

text::Json Parsed(const std::string& text) {
  text::Json json =
      text::Json::parse(text, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(json.is_discarded()) << text;
  return json;
}

// `status` after its times were fixed.
text::Json Fixed(const std::string& status) {
  text::Json object = text::Json::object();
  object["status"] = Parsed(status);
  EXPECT_TRUE(FixConditionTimes(&object).ok());
  return object["status"];
}

TEST(FixConditionTimesTest, GivesEveryConditionTheSameTime) {
  EXPECT_EQ(Fixed(R"({"conditions": [
        {"type": "Ready", "status": "True", "reason": "Available",
         "lastTransitionTime": "2026-08-01T12:30:00Z"},
        {"type": "Synced", "status": "False", "reason": "R", "message": "m",
         "observedGeneration": 3,
         "lastTransitionTime": "2026-08-01T12:30:00.123+02:00"}], "a": 1})"),
            Parsed(R"({"conditions": [
        {"type": "Ready", "status": "True", "reason": "Available",
         "lastTransitionTime": "2024-01-01T00:00:00Z"},
        {"type": "Synced", "status": "False", "reason": "R", "message": "m",
         "observedGeneration": 3,
         "lastTransitionTime": "2024-01-01T00:00:00Z"}], "a": 1})"));
}

TEST(FixConditionTimesTest, KeepsOnlyWhatAConditionHas) {
  EXPECT_EQ(Fixed(R"({"conditions": [{"type": "T", "extra": 1,
                       "message": "", "observedGeneration": 0}, null]})"),
            Parsed(R"({"conditions": [
              {"type": "T", "status": "", "reason": "",
               "lastTransitionTime": "2024-01-01T00:00:00Z"},
              {"type": "", "status": "", "reason": "",
               "lastTransitionTime": "2024-01-01T00:00:00Z"}]})"));
}

TEST(FixConditionTimesTest, AStatusWithoutConditionsGetsANull) {
  EXPECT_EQ(Fixed("{}"), Parsed(R"({"conditions": null})"));
  EXPECT_EQ(Fixed(R"({"a": 1})"), Parsed(R"({"a": 1, "conditions": null})"));
  EXPECT_EQ(Fixed(R"({"conditions": null})"),
            Parsed(R"({"conditions": null})"));
  EXPECT_EQ(Fixed(R"({"conditions": []})"), Parsed(R"({"conditions": []})"));
}

TEST(FixConditionTimesTest, WhatIsNoListOfConditionsStays) {
  for (const char* status : {
           R"({"conditions": {"type": "T"}})",
           R"({"conditions": "none"})",
           R"({"conditions": ["T"]})",
           R"({"conditions": [{"type": 1}]})",
           R"({"conditions": [{"status": true}]})",
           R"({"conditions": [{"message": ["m"]}]})",
           R"({"conditions": [{"observedGeneration": 1.5}]})",
           R"({"conditions": [{"observedGeneration": "1"}]})",
           R"({"conditions": [{"observedGeneration": 9223372036854775808}]})",
           R"({"conditions": [{"observedGeneration": 1e19}]})",
           R"({"conditions": [{"lastTransitionTime": 5}]})",
           R"({"conditions": [{"type": "T"}, {"lastTransitionTime": ""}]})",
           R"("text")",
           R"(["a"])",
           "3",
       }) {
    EXPECT_EQ(Fixed(status), Parsed(status)) << status;
  }
}

TEST(FixConditionTimesTest, TimesAreThoseOfRfc3339AsGoReadsIt) {
  const auto taken = [](const std::string& time) {
    const text::Json fixed =
        Fixed(R"({"conditions": [{"lastTransitionTime": ")" + time + R"("}]})");
    return fixed["conditions"][0]["lastTransitionTime"] == kTime;
  };
  for (const char* time :
       {"2026-08-01T12:30:00Z", "2024-02-29T23:59:59Z", "2000-02-29T00:00:00Z",
        "2026-08-01T12:30:00.5Z", "2026-08-01T12:30:00,25+01:30",
        "2026-08-01T12:30:00-00:00", "2026-08-01T1:30:00Z",
        "0000-01-01T00:00:00Z"}) {
    EXPECT_TRUE(taken(time)) << time;
  }
  for (const char* time : {"2026-08-01",
                           "2026-08-01 12:30:00Z",
                           "2026-08-01T12:30:00",
                           "2026-08-01T12:30:00z",
                           "2026-08-01t12:30:00Z",
                           "2023-02-29T00:00:00Z",
                           "1900-02-29T00:00:00Z",
                           "2026-04-31T00:00:00Z",
                           "2026-13-01T00:00:00Z",
                           "2026-00-01T00:00:00Z",
                           "2026-08-00T00:00:00Z",
                           "2026-08-01T24:00:00Z",
                           "2026-08-01T12:60:00Z",
                           "2026-08-01T12:30:60Z",
                           "2026-08-01T12:30:00.Z",
                           "2026-08-01T12:30:00+1:00",
                           "2026-08-01T12:30:00+25:00",
                           "2026-08-01T12:30:00+01:00Z",
                           "2026-08-01T12:30:00ZZ",
                           "soon",
                           "26-08-01T12:30:00Z",
                           "2026-08-01T12:3:00Z"}) {
    EXPECT_FALSE(taken(time)) << time;
  }
}

TEST(FixConditionTimesTest, NamesOfFieldsAreComparedWithoutCase) {
  EXPECT_EQ(Fixed(R"({"conditions": [{"TYPE": "A", "type": "B",
                       "Reason": "R"}]})"),
            Parsed(R"({"conditions": [{"type": "B", "status": "",
              "reason": "R", "lastTransitionTime": "2024-01-01T00:00:00Z"}]})"));
}

TEST(FixConditionTimesTest, ANullStatusIsAnError) {
  text::Json object = Parsed(R"({"status": null})");
  EXPECT_THAT(std::string(FixConditionTimes(&object).message()),
              HasSubstr("status is not an object"));
  text::Json none = Parsed(R"({"spec": {}})");
  EXPECT_TRUE(FixConditionTimes(&none).ok());
  EXPECT_EQ(none, Parsed(R"({"spec": {}})"));
}

CompositeOutput Output(const std::string& json) {
  return FromJson<CompositeOutput>(json);
}

std::vector<text::Json> Documents(
    const CompositeOutput& output, const RenderOutputOptions& options = {},
    const text::Json& input = text::Json::object()) {
  const auto made = OutputDocuments(input, output, absl::nullopt, options);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *made : std::vector<text::Json>();
}

TEST(OutputDocumentsTest, ComposedResourcesComeByTheBytesOfTheirNames) {
  const auto resource = [](const std::string& name) {
    return R"({"apiVersion": "v1", "kind": "K", "metadata": {"annotations": {
        "crossplane.io/composition-resource-name": ")" +
           name + R"("}}})";
  };
  const auto documents = Documents(
      Output(R"({"compositeResource": {"kind": "XR"}, "composedResources": [)" +
             resource("b") + "," + resource("a10") + "," + resource("a2") +
             R"(, {"apiVersion": "v1", "kind": "Nameless"}]})"));
  ASSERT_EQ(documents.size(), 5u);
  EXPECT_EQ(documents[0]["kind"], "XR");
  EXPECT_EQ(documents[1]["kind"], "Nameless");
  const auto name = [&](int i) {
    return documents[i]["metadata"]["annotations"]
                    ["crossplane.io/composition-resource-name"]
                        .get<std::string>();
  };
  EXPECT_EQ(name(2), "a10");
  EXPECT_EQ(name(3), "a2");
  EXPECT_EQ(name(4), "b");
}

TEST(OutputDocumentsTest, AResourceWithoutKindPrintsItEmpty) {
  const auto documents = Documents(Output(
      R"({"compositeResource": {}, "composedResources": [{"spec": {}}]})"));
  EXPECT_EQ(documents[1],
            Parsed(R"({"apiVersion": "", "kind": "", "spec": {}})"));
}

TEST(OutputDocumentsTest, ConditionsOfComposedResourcesGetTheFixedTimeToo) {
  const auto documents = Documents(Output(
      R"({"compositeResource": {"status": {}}, "composedResources": [
        {"apiVersion": "v1", "kind": "K", "status": {"conditions": [
          {"type": "T", "lastTransitionTime": "2026-08-01T12:30:00Z"}]}}]})"));
  EXPECT_EQ(documents[0], Parsed(R"({"status": {"conditions": null}})"));
  EXPECT_EQ(documents[1]["status"]["conditions"][0]["lastTransitionTime"],
            kTime);
}

TEST(OutputDocumentsTest, ANullStatusNamesItsResource) {
  const auto made =
      OutputDocuments(text::Json::object(),
                      Output(R"({"compositeResource": {}, "composedResources": [
        {"metadata": {"name": "n"}, "status": null}]})"),
                      absl::nullopt, {});
  EXPECT_EQ(made.status().message(),
            "cannot replace condition timestamps in composed resource n: "
            "cannot set condition timestamps: status is not an object");
  EXPECT_EQ(
      OutputDocuments(text::Json::object(),
                      Output(R"({"compositeResource": {"status": null}})"),
                      absl::nullopt, {})
          .status()
          .message(),
      "cannot replace condition timestamps in xr: cannot set condition "
      "timestamps: status is not an object");
}

TEST(OutputDocumentsTest, ResultsAreTheEventsInTheirOrder) {
  const CompositeOutput output = Output(R"({"compositeResource": {}, "events": [
        {"type": "Normal", "reason": "B", "message": "second"},
        {"type": "Warning", "reason": "A", "message": "first"}, {}]})");
  EXPECT_EQ(Documents(output).size(), 1u);
  RenderOutputOptions options;
  options.results = true;
  const auto documents = Documents(output, options);
  ASSERT_EQ(documents.size(), 4u);
  EXPECT_EQ(documents[1], Parsed(R"({
    "apiVersion": "render.crossplane.io/v1beta1", "kind": "Result",
    "severity": "Normal", "reason": "B", "message": "second"})"));
  EXPECT_EQ(documents[2]["message"], "first");
  EXPECT_EQ(documents[3]["severity"], "");
}

TEST(OutputDocumentsTest, TheFullCompositeIsMergedOverTheInput) {
  RenderOutputOptions options;
  options.full_composite = true;
  const auto documents =
      Documents(Output(R"({"compositeResource": {"kind": "XR",
          "spec": {"crossplane": {"resourceRefs": []}, "zero": 0},
          "status": {"new": 1}}})"),
                options, Parsed(R"({"kind": "XR",
          "spec": {"a": 9007199254740993, "zero": 5},
          "status": {"old": true}})"));
  EXPECT_EQ(documents[0], Parsed(R"({"kind": "XR",
      "spec": {"a": 9007199254740993, "zero": 0,
               "crossplane": {"resourceRefs": []}},
      "status": {"old": true, "new": 1, "conditions": null}})"));
}

TEST(OutputDocumentsTest, AContextIsTheLastDocument) {
  google::protobuf::Struct context;
  const auto made =
      OutputDocuments(text::Json::object(),
                      Output(R"({"compositeResource": {}})"), context, {});
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(made->size(), 2u);
  EXPECT_EQ((*made)[1], Parsed(R"({"fields": {}, "kind": "Context",
      "apiVersion": "render.crossplane.io/v1beta1"})"));
}

TEST(PrintDocumentsTest, SeparatesEveryDocumentFromWhatIsBefore) {
  EXPECT_EQ(PrintDocuments({Parsed(R"({"b": 1, "a": "x"})"), Parsed("{}")}),
            "---\na: x\nb: 1\n---\n{}\n");
}

}  // namespace
}  // namespace fncache::runner::render
