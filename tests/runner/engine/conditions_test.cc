// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/conditions.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "tests/runner/messages.h"
#include "text/rfc3339.h"

namespace fncache::runner::engine {
namespace {

namespace fn = apiextensions::fn::proto::v1;

Struct Object(absl::string_view json) { return FromJson<Struct>(json); }

const absl::Time kNow =
    absl::FromUnixSeconds(1700000000) + absl::Milliseconds(750);

Condition Some(absl::string_view type) {
  Condition condition;
  condition.type = std::string(type);
  condition.status = "True";
  condition.reason = "R";
  condition.last_transition_time = kNow;
  return condition;
}

TEST(ConditionsTest, ExistingOnesKeepOnlyTheKnownFields) {
  Struct object = Object(R"({"status": {"x": 1, "conditions": [
      {"type": "A", "status": "False", "reason": "Q", "message": "m",
       "lastTransitionTime": "2024-05-06T07:08:09Z", "observedGeneration": 3,
       "severity": "High"}]}})");
  SetConditions({}, &object);
  ExpectJson(object, R"({"status": {"x": 1, "conditions": [
      {"type": "A", "status": "False", "reason": "Q", "message": "m",
       "lastTransitionTime": "2024-05-06T07:08:09Z",
       "observedGeneration": 3}]}})");
}

TEST(ConditionsTest, MissingTimeBecomesNullAndMissingTextEmpty) {
  Struct object = Object(R"({"status": {"conditions": [
      {"type": "A"}, {"status": "True", "lastTransitionTime": null}]}})");
  SetConditions({}, &object);
  ExpectJson(object, R"({"status": {"conditions": [
      {"type": "A", "status": "", "reason": "", "lastTransitionTime": null},
      {"type": "", "status": "True", "reason": "",
       "lastTransitionTime": null}]}})");
}

TEST(ConditionsTest, FractionsOfSecondsGoAndZonesBecomeUtc) {
  Struct object = Object(R"({"status": {"conditions": [
      {"type": "A", "lastTransitionTime": "2024-05-06T07:08:09.999Z"},
      {"type": "B", "lastTransitionTime": "2024-01-01T00:30:00+02:00"}]}})");
  SetConditions({}, &object);
  ExpectJson(object, R"({"status": {"conditions": [
      {"type": "A", "status": "", "reason": "",
       "lastTransitionTime": "2024-05-06T07:08:09Z"},
      {"type": "B", "status": "", "reason": "",
       "lastTransitionTime": "2023-12-31T22:30:00Z"}]}})");
}

TEST(ConditionsTest, FieldsOfTheWrongTypeAreEmpty) {
  Struct object = Object(R"({"status": {"conditions": [
      {"type": 1, "status": true, "reason": [], "message": {},
       "observedGeneration": 1.5}, "text", null]}})");
  SetConditions({}, &object);
  ExpectJson(object, R"({"status": {"conditions": [
      {"type": "", "status": "", "reason": "", "lastTransitionTime": null},
      {"type": "", "status": "", "reason": "", "lastTransitionTime": null},
      {"type": "", "status": "", "reason": "",
       "lastTransitionTime": null}]}})");
}

TEST(ConditionsTest, ATimeThatOnlyGoReadsEndsNothing) {
  Struct object = Object(R"({"status": {"conditions": [
      {"type": "A", "lastTransitionTime": "2024-05-06T7:08:09Z"},
      {"type": "B", "lastTransitionTime": "2024-05-06T07:08:09,5Z"},
      {"type": "C", "lastTransitionTime": "2024-05-06T07:08:09+24:60"}]}})");
  SetConditions({}, &object);
  ExpectJson(object, R"({"status": {"conditions": [
      {"type": "A", "status": "", "reason": "",
       "lastTransitionTime": "2024-05-06T07:08:09Z"},
      {"type": "B", "status": "", "reason": "",
       "lastTransitionTime": "2024-05-06T07:08:09Z"},
      {"type": "C", "status": "", "reason": "",
       "lastTransitionTime": "2024-05-05T06:08:09Z"}]}})");
}

TEST(ConditionsTest, ATimeThatIsNoneEndsTheList) {
  for (const char* const time : {R"("yesterday")", "7"}) {
    Struct object = Object(absl::StrCat(
        R"({"status": {"conditions": [{"type": "A"},
            {"type": "B", "lastTransitionTime": )",
        time, R"(}, {"type": "C"}]}})"));
    SetConditions({}, &object);
    ExpectJson(object, R"({"status": {"conditions": [
        {"type": "A", "status": "", "reason": "", "lastTransitionTime": null},
        {"type": "", "status": "", "reason": "",
         "lastTransitionTime": null}]}})");
  }
}

TEST(ConditionsTest, ConditionsThatAreNoListAreReplaced) {
  Struct object = Object(R"({"status": {"conditions": "x"}})");
  SetConditions({Some("A")}, &object);
  ExpectJson(object, R"({"status": {"conditions": [
      {"type": "A", "status": "True", "reason": "R",
       "lastTransitionTime": "2023-11-14T22:13:20Z"}]}})");
}

TEST(ConditionsTest, AnAbsentStatusIsMade) {
  Struct object;
  SetConditions({Some("A")}, &object);
  ExpectJson(object, R"({"status": {"conditions": [
      {"type": "A", "status": "True", "reason": "R",
       "lastTransitionTime": "2023-11-14T22:13:20Z"}]}})");
}

TEST(ConditionsTest, AStatusThatIsNoMapStays) {
  for (const char* const json :
       {R"({"status": null})", R"({"status": "x"})", R"({"status": []})"}) {
    Struct object = Object(json);
    SetConditions({Some("A")}, &object);
    ExpectJson(object, json);
  }
}

TEST(ConditionsTest, TheSameTypeIsOverwrittenInPlaceAndOthersAreAppended) {
  Struct object = Object(R"({"status": {"conditions": [
      {"type": "A", "status": "False", "reason": "R"}, {"type": "B"}]}})");
  SetConditions({Some("A"), Some("C")}, &object);
  ExpectJson(object, R"({"status": {"conditions": [
      {"type": "A", "status": "True", "reason": "R",
       "lastTransitionTime": "2023-11-14T22:13:20Z"},
      {"type": "B", "status": "", "reason": "", "lastTransitionTime": null},
      {"type": "C", "status": "True", "reason": "R",
       "lastTransitionTime": "2023-11-14T22:13:20Z"}]}})");
}

TEST(ConditionsTest, AnEqualOneIsLeftAsItWasTimeIncluded) {
  const char* const json = R"({"status": {"conditions": [
      {"type": "A", "status": "True", "reason": "R",
       "lastTransitionTime": "2020-01-01T00:00:00Z"}]}})";
  Struct object = Object(json);
  SetConditions({Some("A")}, &object);
  ExpectJson(object, json);
}

TEST(ConditionsTest, AnotherStatusReasonOrMessageIsAnotherCondition) {
  const Struct object = Object(R"({"status": {"conditions": [
      {"type": "A", "status": "True", "reason": "R",
       "lastTransitionTime": "2020-01-01T00:00:00Z"}]}})");
  Condition status = Some("A");
  status.status = "False";
  Condition reason = Some("A");
  reason.reason = "S";
  Condition message = Some("A");
  message.message = "m";
  for (const Condition& condition : {status, reason, message}) {
    Struct changed = object;
    SetConditions({condition}, &changed);
    const std::vector<Condition> conditions = ConditionsOf(changed);
    ASSERT_EQ(conditions.size(), 1);
    EXPECT_EQ(conditions[0].status, condition.status);
    EXPECT_EQ(conditions[0].reason, condition.reason);
    EXPECT_EQ(conditions[0].message, condition.message);
    EXPECT_EQ(text::FormatRfc3339(*conditions[0].last_transition_time),
              "2023-11-14T22:13:20Z");
  }
}

TEST(ConditionsTest, ObservedGenerationsAreComparedWhereBothHaveOne) {
  const auto after = [](int64_t before, int64_t generation) {
    Struct object;
    Condition old = Some("A");
    old.last_transition_time = absl::UnixEpoch();
    old.observed_generation = before;
    SetConditions({old}, &object);
    Condition condition = Some("A");
    condition.observed_generation = generation;
    SetConditions({condition}, &object);
    return ConditionsOf(object)[0];
  };
  EXPECT_EQ(after(1, 2).observed_generation, 2);
  EXPECT_EQ(after(0, 2).observed_generation, 0);
  EXPECT_EQ(after(1, 0).observed_generation, 1);
  EXPECT_EQ(after(1, 1).last_transition_time, absl::UnixEpoch());
  EXPECT_NE(after(1, 2).last_transition_time, absl::UnixEpoch());
}

TEST(ConditionsTest, AFunctionsConditionHasNoGeneration) {
  const Condition condition =
      FromFunction(FromJson<fn::Condition>(
                       R"({"type": "A", "status": "STATUS_CONDITION_FALSE",
                           "reason": "R", "message": "m"})"),
                   kNow);
  EXPECT_EQ(condition.type, "A");
  EXPECT_EQ(condition.status, "False");
  EXPECT_EQ(condition.reason, "R");
  EXPECT_EQ(condition.message, "m");
  EXPECT_EQ(condition.last_transition_time, kNow);
  EXPECT_EQ(condition.observed_generation, 0);
}

TEST(ConditionsTest, AFunctionsUnspecifiedStatusIsUnknown) {
  fn::Condition condition;
  EXPECT_EQ(FromFunction(condition, kNow).status, "Unknown");
  condition.set_status(fn::STATUS_CONDITION_UNKNOWN);
  EXPECT_EQ(FromFunction(condition, kNow).status, "Unknown");
  condition.set_status(fn::STATUS_CONDITION_TRUE);
  EXPECT_EQ(FromFunction(condition, kNow).status, "True");
}

TEST(ConditionsTest, FiveTypesAreTheRunnersOwn) {
  for (const char* const type :
       {"Ready", "Synced", "Healthy", "UpToDate", "Responsive"}) {
    EXPECT_TRUE(IsSystemCondition(type)) << type;
  }
  EXPECT_FALSE(IsSystemCondition("ready"));
  EXPECT_FALSE(IsSystemCondition("DatabaseReady"));
}

TEST(ConditionsTest, GenerationIsAWholeNumber) {
  EXPECT_EQ(GenerationOf(Object(R"({"metadata": {"generation": 7}})")), 7);
  EXPECT_EQ(GenerationOf(Object(R"({"metadata": {"generation": 7.5}})")), 0);
  EXPECT_EQ(GenerationOf(Object(R"({"metadata": {"generation": 1e300}})")), 0);
  EXPECT_EQ(GenerationOf(Object(R"({"metadata": {"generation": "7"}})")), 0);
  EXPECT_EQ(GenerationOf(Object("{}")), 0);
}

}  // namespace
}  // namespace fncache::runner::engine
