// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/rendered_composite.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runner/engine/conditions.h"
#include "runner/engine/metadata.h"
#include "tests/runner/messages.h"
#include "text/rfc3339.h"

namespace fncache::runner::engine {
namespace {

namespace fn = apiextensions::fn::proto::v1;

constexpr CompositeSchema kModern = CompositeSchema::kModern;
constexpr CompositeSchema kLegacy = CompositeSchema::kLegacy;

const absl::Time kNow = absl::FromUnixSeconds(1700000000);
constexpr char kTime[] = "2023-11-14T22:13:20Z";

Struct Object(absl::string_view json) { return FromJson<Struct>(json); }

PreparedComposite Prepared(absl::string_view json,
                           CompositeSchema schema = kModern) {
  Composition composition;
  composition.name = "c";
  return PrepareComposite(Object(json), schema, composition, kNow);
}

constexpr char kPlain[] =
    R"({"apiVersion": "ex.org/v1", "kind": "XR",
        "metadata": {"name": "a", "namespace": "n", "uid": "u",
                     "labels": {"l": "v"}},
        "spec": {"size": 1}})";

RenderedComposite Rendered(absl::string_view desired = "{}") {
  RenderedComposite rendered;
  rendered.desired = Object(desired);
  rendered.references.mutable_list_value();
  return rendered;
}

fn::Condition Given(absl::string_view type, absl::string_view more = "") {
  return FromJson<fn::Condition>(absl::StrCat(
      R"({"type": ")", type,
      R"(", "status": "STATUS_CONDITION_TRUE", "reason": "R")", more, "}"));
}

// The conditions as "TYPE STATUS REASON", and the message behind.
std::vector<std::string> Lines(const Struct& composite) {
  std::vector<std::string> lines;
  for (const Condition& condition : ConditionsOf(composite)) {
    lines.push_back(absl::StrCat(
        condition.type, " ", condition.status, " ", condition.reason,
        condition.message.empty() ? "" : " ", condition.message));
  }
  return lines;
}

using Wanted = std::vector<std::string>;
constexpr char kResponsive[] = "Responsive True WatchCircuitClosed";
constexpr char kSynced[] = "Synced True ReconcileSuccess";
constexpr char kAvailable[] = "Ready True Available";

Condition Last(const Struct& composite) {
  const std::vector<Condition> conditions = ConditionsOf(composite);
  return conditions.empty() ? Condition() : conditions.back();
}

TEST(CompositeOutputTest, OnlyTypeNameReferencesAndStatusArePutOut) {
  RenderedComposite rendered = Rendered();
  rendered.references.mutable_list_value()->add_values()->set_string_value("r");
  ExpectJson(SuccessfulComposite(Prepared(kPlain), kModern, rendered, kNow),
             absl::StrCat(R"({"apiVersion": "ex.org/v1", "kind": "XR",
          "metadata": {"name": "a", "namespace": "n"},
          "spec": {"crossplane": {"resourceRefs": ["r"]}},
          "status": {"conditions": [
              {"type": "Responsive", "status": "True",
               "reason": "WatchCircuitClosed", "lastTransitionTime": ")",
                          kTime, R"("},
              {"type": "Synced", "status": "True",
               "reason": "ReconcileSuccess", "lastTransitionTime": ")",
                          kTime, R"("},
              {"type": "Ready", "status": "True", "reason": "Available",
               "lastTransitionTime": ")",
                          kTime, R"("}]}})"));
}

TEST(CompositeOutputTest, ReferencesOfALegacyOneAreBelowSpec) {
  const Struct composite =
      SuccessfulComposite(Prepared(kPlain, kLegacy), kLegacy, Rendered(), kNow);
  ExpectJson(*text::FindMap(composite, {"spec"}), R"({"resourceRefs": []})");
}

TEST(CompositeOutputTest, TheDesiredStatusReplacesTheInputs) {
  const Struct composite = SuccessfulComposite(
      Prepared(R"({"metadata": {"name": "a", "annotations":
                   {"crossplane.io/reconcile-requested-at": "t"}},
                   "status": {"old": 1, "both": 2}})"),
      kModern, Rendered(R"({"metadata": {"name": "b", "labels": {"l": "v"}},
                   "spec": {"x": 1}, "status": {"both": 3, "new": null}})"),
      kNow);
  EXPECT_EQ(NameOf(composite), "a");
  ExpectJson(*text::FindMap(composite, {"spec"}),
             R"({"crossplane": {"resourceRefs": []}})");
  EXPECT_EQ(text::Find(composite, {"status", "old"}), nullptr);
  EXPECT_EQ(text::Find(composite, {"status", "both"})->number_value(), 3);
  EXPECT_EQ(text::Find(composite, {"status", "new"})->kind_case(),
            Value::kNullValue);
  EXPECT_EQ(text::Find(composite, {"status", "lastHandledReconcileAt"}),
            nullptr);
}

TEST(CompositeOutputTest, ATopLevelConditionsIsCopied) {
  const Struct composite = SuccessfulComposite(
      Prepared(kPlain), kModern, Rendered(R"({"conditions": ["x"]})"), kNow);
  ASSERT_NE(text::FindList(composite, {"conditions"}), nullptr);
  EXPECT_EQ(text::FindList(composite, {"conditions"})->values(0).string_value(),
            "x");
}

TEST(CompositeOutputTest, ADesiredStatusThatIsNoMapGetsNoConditions) {
  const Struct composite = SuccessfulComposite(
      Prepared(kPlain), kModern, Rendered(R"({"status": "x"})"), kNow);
  EXPECT_EQ(text::FindText(composite, {"status"}), "x");
}

TEST(CompositeOutputTest, ConditionsAreSetInTheRunnersOrder) {
  RenderedComposite rendered = Rendered(R"({"status": {"conditions": [
      {"type": "Desired", "status": "True", "reason": "D"},
      {"type": "Old", "status": "False", "reason": "D"}]}})");
  rendered.conditions = {Given("Given"), Given("Old")};
  const Struct composite = SuccessfulComposite(
      Prepared(R"({"metadata": {"name": "a"}, "status": {"conditions": [
                   {"type": "Old", "status": "True", "reason": "O"},
                   {"type": "Older", "status": "True", "reason": "O"}]}})"),
      kModern, rendered, kNow);
  EXPECT_EQ(Lines(composite),
            Wanted({"Desired True D", "Old True R", "Older True O", kResponsive,
                    "Given True R", kSynced, kAvailable}));
}

TEST(CompositeOutputTest, FunctionsDoNotSetTheRunnersConditions) {
  RenderedComposite rendered = Rendered();
  rendered.conditions = {Given("Ready"),      Given("Synced"),
                         Given("Healthy"),    Given("UpToDate"),
                         Given("Responsive"), Given("Mine")};
  EXPECT_EQ(
      Lines(SuccessfulComposite(Prepared(kPlain), kModern, rendered, kNow)),
      Wanted({kResponsive, "Mine True R", kSynced, kAvailable}));
}

TEST(CompositeOutputTest, EqualConditionsKeepTheirTime) {
  const Struct composite = SuccessfulComposite(
      Prepared(R"({"metadata": {"name": "a"}, "status": {"x": 1, "conditions": [
                   {"type": "Ready", "status": "True", "reason": "Available",
                    "lastTransitionTime": "2020-01-01T00:00:00Z"}]}})"),
      kModern, Rendered(), kNow);
  EXPECT_EQ(
      text::FormatRfc3339(*ConditionsOf(composite)[0].last_transition_time),
      "2020-01-01T00:00:00Z");
}

TEST(CompositeOutputTest, OnlyResponsiveOfASuccessHasTheGeneration) {
  RenderedComposite rendered = Rendered();
  rendered.conditions = {Given("Mine")};
  const Struct composite = SuccessfulComposite(
      Prepared(R"({"metadata": {"name": "a", "generation": 6}})"), kModern,
      rendered, kNow);
  for (const Condition& condition : ConditionsOf(composite)) {
    EXPECT_EQ(condition.observed_generation,
              condition.type == "Responsive" ? 6 : 0)
        << condition.type;
  }
}

TEST(CompositeOutputTest, ReadyFollowsTheResourcesIfTheFunctionsDoNotSay) {
  RenderedComposite rendered = Rendered();
  rendered.unready = {"x", "y"};
  const Condition ready =
      Last(SuccessfulComposite(Prepared(kPlain), kModern, rendered, kNow));
  EXPECT_EQ(ready.type, "Ready");
  EXPECT_EQ(ready.status, "False");
  EXPECT_EQ(ready.reason, "Creating");
  EXPECT_EQ(ready.message, "Unready resources: x, y");
}

TEST(CompositeOutputTest, ReadyIsTrueIfTheFunctionsSaySo) {
  RenderedComposite rendered = Rendered();
  rendered.unready = {"x"};
  rendered.ready = fn::READY_TRUE;
  EXPECT_EQ(
      Lines(SuccessfulComposite(Prepared(kPlain), kModern, rendered, kNow))
          .back(),
      kAvailable);
}

TEST(CompositeOutputTest, ReadyIsFalseWithoutMessageIfTheFunctionsSaySo) {
  RenderedComposite rendered = Rendered();
  rendered.unready = {"x"};
  rendered.ready = fn::READY_FALSE;
  EXPECT_EQ(
      Lines(SuccessfulComposite(Prepared(kPlain), kModern, rendered, kNow))
          .back(),
      "Ready False Creating");
}

TEST(CompositeOutputTest, UnreadyNamesAreListedUpToThree) {
  EXPECT_EQ(SomeOf({"a"}), "a");
  EXPECT_EQ(SomeOf({"a", "b"}), "a, b");
  EXPECT_EQ(SomeOf({"a", "b", "c"}), "a, b, and c");
  EXPECT_EQ(SomeOf({"a", "b", "c", "d"}), "a, b, c, and 1 more");
  EXPECT_EQ(SomeOf({"a", "b", "c", "d", "e"}), "a, b, c, and 2 more");
}

TEST(CompositeOutputTest, EachUnreadyResourceHasAnEvent) {
  const Unready unready =
      UnreadyOf({{"", false}, {"z", false}, {"b", true}, {"a", false}});
  EXPECT_EQ(unready.names, Wanted({"0", "a", "z"}));
  ASSERT_EQ(unready.events.size(), 3);
  EXPECT_EQ(unready.events[1].type(), "Normal");
  EXPECT_EQ(unready.events[1].reason(), "ComposeResources");
  EXPECT_EQ(unready.events[1].message(),
            "Composed resource \"z\" is not yet ready");
}

// A composite as it comes from a cluster where nothing changes.
constexpr char kSettled[] =
    R"({"apiVersion": "ex.org/v1", "kind": "XR",
        "metadata": {"name": "a", "uid": "u", "labels": {%s}},
        "spec": {"size": 1}, "status": {"x": 1, "conditions": [
          {"type": "Synced", "status": "True", "reason": "ReconcileSuccess",
           "lastTransitionTime": "2020-01-01T00:00:00Z"},
          {"type": "Ready", "status": "True", "reason": "Available",
           "lastTransitionTime": "2020-01-02T00:00:00Z"},
          {"type": "Responsive", "status": "True",
           "reason": "WatchCircuitClosed",
           "lastTransitionTime": "2020-01-03T00:00:00Z"}]}})";

std::string Settled(absl::string_view labels) {
  std::string json = kSettled;
  json.replace(json.find("%s"), 2, std::string(labels));
  return json;
}

// Null takes no conditions, and equals the status that was not there.
TEST(CompositeOutputTest, ANullStatusLeavesWhatWasWrittenBefore) {
  const PreparedComposite prepared = Prepared(
      R"({"apiVersion": "ex.org/v1", "kind": "XR", "metadata": {"name": "a"}})");
  const Struct composite = SuccessfulComposite(
      prepared, kModern, Rendered(R"({"status": null})"), kNow);
  EXPECT_TRUE(text::Equal(composite, prepared.composite)) << ToJson(composite);
}

TEST(CompositeOutputTest, AnUnchangedStatusLeavesWhatWasWrittenBefore) {
  const PreparedComposite prepared = Prepared(Settled(""));
  const Struct composite = SuccessfulComposite(
      prepared, kModern, Rendered(R"({"status": {"x": 1}})"), kNow);
  EXPECT_TRUE(text::Equal(composite, prepared.composite)) << ToJson(composite);
  EXPECT_EQ(UidOf(composite), "u");
  ExpectJson(*text::FindMap(composite, {"spec"}),
             R"({"size": 1, "crossplane": {"compositionRef": {"name": "c"}}})");
}

TEST(CompositeOutputTest, AnUnchangedStatusCountsOnlyIfAllWasWrittenBefore) {
  const Struct composite = SuccessfulComposite(
      Prepared(Settled(R"("crossplane.io/composite": "a")")), kModern,
      Rendered(R"({"status": {"x": 1}})"), kNow);
  EXPECT_EQ(UidOf(composite), "");
  ExpectJson(*text::FindMap(composite, {"spec"}),
             R"({"crossplane": {"resourceRefs": []}})");
}

TEST(CompositeOutputTest, AChangedStatusIsWritten) {
  RenderedComposite unready = Rendered(R"({"status": {"x": 1}})");
  unready.unready = {"r"};
  for (const RenderedComposite& rendered :
       {Rendered(R"({"status": {"x": 2}})"), Rendered(), unready}) {
    EXPECT_EQ(UidOf(SuccessfulComposite(Prepared(Settled("")), kModern,
                                        rendered, kNow)),
              "");
  }
}

TEST(CompositeOutputTest, WholeCompositeIsWhatWasWrittenBack) {
  const PreparedComposite prepared = Prepared(kPlain);
  EXPECT_TRUE(
      text::Equal(WholeComposite(prepared, Struct()), prepared.composite));
}

TEST(CompositeOutputTest, WholeCompositeHasNoCompositionRefIfOnlyStatusWas) {
  const Struct stored = Object(
      R"({"metadata": {"name": "a", "uid": "u",
                       "labels": {"crossplane.io/composite": "a"}},
          "spec": {"size": 1}, "status": {"x": 1}})");
  const Struct composite = WholeComposite(Prepared(ToJson(stored)), stored);
  ExpectJson(*text::FindMap(composite, {"spec"}), R"({"size": 1})");
  EXPECT_EQ(UidOf(composite), "u");
  EXPECT_EQ(Lines(composite), Wanted({kResponsive}));
  EXPECT_NE(text::Find(composite, {"status", "x"}), nullptr);
}

TEST(CompositeOutputTest, FatalSetsSyncedThenTheFunctionsConditions) {
  Struct composite = Prepared(kPlain).composite;
  SetFatalConditions({Given("Mine"), Given("Ready")}, kModern,
                     "cannot compose resources: boom", kNow, &composite);
  EXPECT_EQ(Lines(composite),
            Wanted({kResponsive,
                    "Synced False ReconcileError cannot compose resources: "
                    "boom",
                    "Mine True R"}));
}

TEST(CompositeOutputTest, FatalMakesConditionsThatNoStepSetUnknown) {
  Struct composite = Prepared(R"({"status": {"conditions": [
          {"type": "Mine", "status": "False", "reason": "O"},
          {"type": "Lost", "status": "True", "reason": "O", "message": "m"},
          {"type": "Ready", "status": "True", "reason": "Available"}]}})")
                         .composite;
  SetFatalConditions({Given("Mine")}, kModern, "e", kNow, &composite);
  EXPECT_EQ(Lines(composite),
            Wanted({"Mine True R",
                    "Lost Unknown FatalError A fatal error occurred before the "
                    "status of this condition could be determined.",
                    kAvailable, kResponsive, "Synced False ReconcileError e"}));
}

TEST(CompositeOutputTest, SyncedOfAFatalHasTheGeneration) {
  Struct composite =
      Prepared(R"({"metadata": {"name": "a", "generation": 6}})").composite;
  SetFatalConditions({Given("Mine")}, kModern, "e", kNow, &composite);
  const std::vector<Condition> conditions = ConditionsOf(composite);
  ASSERT_EQ(conditions.size(), 3);
  EXPECT_EQ(conditions[0].observed_generation, 6);  // Responsive
  EXPECT_EQ(conditions[1].observed_generation, 6);  // Synced
  EXPECT_EQ(conditions[2].observed_generation, 0);  // the function's
}

TEST(CompositeOutputTest, ConditionsOfALegacyClaimAreListedOnce) {
  RenderedComposite rendered =
      Rendered(R"({"status": {"claimConditionTypes": ["Old", "Mine"]}})");
  const char* const both = R"(, "target": "TARGET_COMPOSITE_AND_CLAIM")";
  rendered.conditions = {
      Given("Mine", both),  Given("New", both),
      Given("Ready", both), Given("Other", R"(, "target": "TARGET_COMPOSITE")"),
      Given("Untold"),      Given("New", both)};
  const Struct legacy =
      SuccessfulComposite(Prepared(kPlain, kLegacy), kLegacy, rendered, kNow);
  Struct types;
  *text::Ensure(&types, {"types"}) =
      *text::Find(legacy, {"status", "claimConditionTypes"});
  ExpectJson(types, R"({"types": ["Old", "Mine", "New"]})");

  rendered.desired.Clear();
  EXPECT_EQ(
      text::Find(SuccessfulComposite(Prepared(kPlain), kModern, rendered, kNow),
                 {"status", "claimConditionTypes"}),
      nullptr);
}

Event EventFor(absl::string_view json, bool detailed = true) {
  return EventOf({"s \"1\"", FromJson<fn::Result>(json)}, detailed);
}

TEST(CompositeOutputTest, ResultsAreEventsThatNameTheStep) {
  const Event normal =
      EventFor(R"({"severity": "SEVERITY_NORMAL", "message": "m"})");
  EXPECT_EQ(normal.type(), "Normal");
  EXPECT_EQ(normal.reason(), "ComposeResources");
  EXPECT_EQ(normal.message(), "Pipeline step \"s \\\"1\\\"\": m");
  const Event warning = EventFor(
      R"({"severity": "SEVERITY_WARNING", "message": "m", "reason": "Q"})");
  EXPECT_EQ(warning.type(), "Warning");
  EXPECT_EQ(warning.reason(), "Q");
  EXPECT_EQ(warning.message(), "Pipeline step \"s \\\"1\\\"\": m");
}

TEST(CompositeOutputTest, AnEmptyReasonIsTheDefault) {
  EXPECT_EQ(
      EventFor(R"({"severity": "SEVERITY_NORMAL", "reason": ""})").reason(),
      "ComposeResources");
}

TEST(CompositeOutputTest, AnUnspecifiedSeverityIsAWarningThatSaysSo) {
  const Event event = EventFor(R"({"message": "m"})");
  EXPECT_EQ(event.type(), "Warning");
  EXPECT_EQ(event.message(),
            "Pipeline step \"s \\\"1\\\"\" returned a result of unknown "
            "severity (assuming warning): m");
}

TEST(CompositeOutputTest, AnySeverityBeyondIsAnEmptyEvent) {
  const Event event =
      EventFor(R"({"severity": 9, "message": "m", "reason": "Q"})");
  EXPECT_EQ(event.type(), "");
  EXPECT_EQ(event.reason(), "");
  EXPECT_EQ(event.message(), "");
}

TEST(CompositeOutputTest, AClaimsEventDoesNotNameTheStep) {
  EXPECT_EQ(EventFor(R"({"severity": "SEVERITY_WARNING", "message": "m"})",
                     /*detailed=*/false)
                .message(),
            "m");
}

TEST(CompositeOutputTest, OnlyALegacyCompositeHasAClaimIfItIsInTheStore) {
  const Struct composite = Object(R"({"spec": {"claimRef": {
      "apiVersion": "ex.org/v1", "kind": "Claim", "namespace": "n",
      "name": "c"}}})");
  ObjectStore objects;
  EXPECT_FALSE(HasClaim(composite, kLegacy, objects));
  objects.Add(Object(R"({"apiVersion": "ex.org/v1", "kind": "Claim",
                         "metadata": {"namespace": "n", "name": "c"}})"));
  EXPECT_TRUE(HasClaim(composite, kLegacy, objects));
  EXPECT_FALSE(HasClaim(composite, kModern, objects));
  EXPECT_FALSE(HasClaim(Struct(), kLegacy, objects));
}

}  // namespace
}  // namespace fncache::runner::engine
