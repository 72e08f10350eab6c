// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/prepared_composite.h"

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

constexpr CompositeSchema kModern = CompositeSchema::kModern;
constexpr CompositeSchema kLegacy = CompositeSchema::kLegacy;

const absl::Time kNow = absl::FromUnixSeconds(1700000000);

Struct Object(absl::string_view json) { return FromJson<Struct>(json); }

Struct Named(absl::string_view metadata) {
  return Object(absl::StrCat(R"({"apiVersion": "ex.org/v1", "kind": "XR",
                                 "metadata": {)",
                             metadata, "}}"));
}

Composition Named() {
  Composition composition;
  composition.name = "c";
  return composition;
}

PreparedComposite Prepare(absl::string_view json,
                          CompositeSchema schema = kModern,
                          const Composition& composition = Named()) {
  return PrepareComposite(Object(json), schema, composition, kNow);
}

std::vector<std::string> Lines(const std::vector<Event>& events) {
  std::vector<std::string> lines;
  for (const Event& event : events) {
    lines.push_back(
        absl::StrCat(event.type(), " ", event.reason(), " ", event.message()));
  }
  return lines;
}

using Wanted = std::vector<std::string>;
constexpr char kSelected[] =
    "Normal SelectComposition Successfully selected composition: c";

TEST(CompositeTest, UidIsMadeOfTypeNamespaceAndName) {
  EXPECT_EQ(DefaultUid(Named(R"("name": "a")")),
            "35f48afd-9bc6-556b-bb0e-1b8e7b7b9edb");
  EXPECT_NE(DefaultUid(Named(R"("name": "a", "namespace": "n")")),
            DefaultUid(Named(R"("name": "a")")));
  EXPECT_NE(DefaultUid(Named(R"("name": "b")")),
            DefaultUid(Named(R"("name": "a")")));
  // As in a recording of the reference runner.
  EXPECT_EQ(DefaultUid(Object(R"({"apiVersion": "shop.example.org/v1alpha1",
                                  "kind": "WebService", "metadata":
                                  {"name": "storefront",
                                   "namespace": "shops"}})")),
            "a5bed749-a7e2-5d72-b9a0-69e69d416c63");
}

TEST(CompositeTest, UidIsSetOnlyIfItIsEmpty) {
  Struct none = Named(R"("name": "a")");
  IdentifyComposite(&none);
  EXPECT_EQ(UidOf(none), "35f48afd-9bc6-556b-bb0e-1b8e7b7b9edb");
  Struct empty = Named(R"("name": "a", "uid": "")");
  IdentifyComposite(&empty);
  EXPECT_EQ(UidOf(empty), "35f48afd-9bc6-556b-bb0e-1b8e7b7b9edb");
  Struct own = Named(R"("name": "a", "uid": "mine")");
  IdentifyComposite(&own);
  EXPECT_EQ(UidOf(own), "mine");
}

TEST(CompositeTest, ResourceVersionIsAlways999) {
  Struct composite = Named(R"("name": "a", "resourceVersion": "12")");
  IdentifyComposite(&composite);
  EXPECT_EQ(text::FindText(composite, {"metadata", "resourceVersion"}), "999");
}

TEST(CompositeTest, NothingElseIsAddedAndNullsAndEmptiesStay) {
  const PreparedComposite prepared = Prepare(
      R"({"apiVersion": "ex.org/v1", "kind": "XR", "metadata": {"name": "a"},
          "spec": {"x": null, "y": {}, "z": []}, "other": null})");
  ExpectJson(prepared.composite, R"({
      "apiVersion": "ex.org/v1", "kind": "XR",
      "metadata": {"name": "a", "labels": {"crossplane.io/composite": "a"}},
      "spec": {"x": null, "y": {}, "z": [],
               "crossplane": {"compositionRef": {"name": "c"}}},
      "other": null,
      "status": {"conditions": [
          {"type": "Responsive", "status": "True",
           "reason": "WatchCircuitClosed",
           "lastTransitionTime": "2023-11-14T22:13:20Z"}]}})");
  EXPECT_FALSE(prepared.finished);
}

TEST(CompositeTest, ResponsiveIsSetBehindExistingConditions) {
  const PreparedComposite prepared = Prepare(
      R"({"metadata": {"name": "a"}, "status": {"conditions": [
          {"type": "Ready", "status": "True", "reason": "Available",
           "x": "y"}]}})");
  const std::vector<Condition> conditions = ConditionsOf(prepared.composite);
  ASSERT_EQ(conditions.size(), 2);
  EXPECT_EQ(conditions[0].type, "Ready");
  EXPECT_EQ(conditions[1].type, "Responsive");
  EXPECT_EQ(conditions[1].status, "True");
  EXPECT_EQ(conditions[1].reason, "WatchCircuitClosed");
  EXPECT_EQ(conditions[1].last_transition_time, kNow);
  EXPECT_EQ(conditions[1].observed_generation, 0);
}

TEST(CompositeTest, ResponsiveHasTheGeneration) {
  const PreparedComposite prepared =
      Prepare(R"({"metadata": {"name": "a", "generation": 4}})");
  EXPECT_EQ(ConditionsOf(prepared.composite)[0].observed_generation, 4);
}

TEST(CompositeTest, AnEqualResponsiveKeepsItsTime) {
  const PreparedComposite prepared = Prepare(
      R"({"metadata": {"name": "a"}, "status": {"conditions": [
          {"type": "Responsive", "status": "True",
           "reason": "WatchCircuitClosed",
           "lastTransitionTime": "2020-01-01T00:00:00Z"}]}})");
  EXPECT_EQ(text::FormatRfc3339(
                *ConditionsOf(prepared.composite)[0].last_transition_time),
            "2020-01-01T00:00:00Z");
}

TEST(CompositeTest, APausedOneIsNotComposed) {
  const PreparedComposite prepared = Prepare(R"({"metadata": {"name": "a",
      "deletionTimestamp": "2024-01-01T00:00:00Z",
      "annotations": {"crossplane.io/paused": "true",
                      "crossplane.io/reconcile-requested-at": "t"}}})");
  EXPECT_TRUE(prepared.finished);
  EXPECT_FALSE(prepared.updated);
  EXPECT_EQ(Lines(prepared.events),
            Wanted({"Normal ReconciliationPaused Reconciliation is paused via "
                    "the pause annotation"}));
  const std::vector<Condition> conditions = ConditionsOf(prepared.composite);
  ASSERT_EQ(conditions.size(), 2);
  EXPECT_EQ(conditions[0].type, "Responsive");
  EXPECT_EQ(conditions[1].type, "Synced");
  EXPECT_EQ(conditions[1].status, "False");
  EXPECT_EQ(conditions[1].reason, "ReconcilePaused");
  EXPECT_EQ(conditions[1].message,
            "Reconciliation (including deletion) is paused via the pause "
            "annotation");
  EXPECT_EQ(text::Find(prepared.composite, {"spec"}), nullptr);
  EXPECT_EQ(LabelOf(prepared.composite, kCompositeLabel), "");
}

TEST(CompositeTest, OnlyTheTextTruePauses) {
  for (const char* const value : {R"("false")", "true", R"("True")", R"("")"}) {
    EXPECT_FALSE(
        Prepare(absl::StrCat(R"({"metadata": {"name": "a", "annotations":
                                 {"crossplane.io/paused": )",
                             value, "}}}"))
            .finished)
        << value;
  }
}

TEST(CompositeTest, ADeletedOneIsNotComposedAndHasNoEvent) {
  const PreparedComposite prepared = Prepare(R"({"metadata": {"name": "a",
      "deletionTimestamp": "2024-01-01T00:00:00Z"}})");
  EXPECT_TRUE(prepared.finished);
  EXPECT_TRUE(prepared.events.empty());
  const std::vector<Condition> conditions = ConditionsOf(prepared.composite);
  ASSERT_EQ(conditions.size(), 3);
  EXPECT_EQ(conditions[0].type, "Responsive");
  EXPECT_EQ(conditions[1].type, "Ready");
  EXPECT_EQ(conditions[1].status, "False");
  EXPECT_EQ(conditions[1].reason, "Deleting");
  EXPECT_EQ(conditions[2].type, "Synced");
  EXPECT_EQ(conditions[2].status, "True");
  EXPECT_EQ(conditions[2].reason, "ReconcileSuccess");
}

TEST(CompositeTest, ADeletionTimestampThatIsNoTimeIsNone) {
  EXPECT_FALSE(
      Prepare(R"({"metadata": {"name": "a", "deletionTimestamp": ""}})")
          .finished);
  EXPECT_FALSE(
      Prepare(R"({"metadata": {"name": "a", "deletionTimestamp": null}})")
          .finished);
}

TEST(CompositeTest, ARequestIsHandledBeforeTheCompositionIsSelected) {
  const PreparedComposite prepared = Prepare(R"({"metadata": {"name": "a",
      "annotations": {"crossplane.io/reconcile-requested-at": "noon"}}})");
  EXPECT_EQ(Lines(prepared.events),
            Wanted({"Normal ReconcileRequestHandled Handling reconcile request",
                    kSelected}));
  EXPECT_EQ(
      text::FindText(prepared.composite, {"status", "lastHandledReconcileAt"}),
      "noon");
}

TEST(CompositeTest, ARequestThatWasHandledIsNotHandledAgain) {
  const PreparedComposite prepared = Prepare(R"({"metadata": {"name": "a",
      "annotations": {"crossplane.io/reconcile-requested-at": "noon"}},
      "status": {"lastHandledReconcileAt": "noon"}})");
  EXPECT_EQ(Lines(prepared.events), Wanted({kSelected}));
  EXPECT_EQ(
      text::FindText(prepared.composite, {"status", "lastHandledReconcileAt"}),
      "noon");
}

TEST(CompositeTest, ARequestIsHandledOnADeletedCompositeToo) {
  const PreparedComposite prepared = Prepare(R"({"metadata": {"name": "a",
      "deletionTimestamp": "2024-01-01T00:00:00Z",
      "annotations": {"crossplane.io/reconcile-requested-at": "noon"}}})");
  EXPECT_TRUE(prepared.finished);
  EXPECT_EQ(
      Lines(prepared.events),
      Wanted({"Normal ReconcileRequestHandled Handling reconcile request"}));
}

TEST(CompositeTest, CompositionRefBecomesJustTheName) {
  const PreparedComposite prepared = Prepare(R"({"spec": {"crossplane":
      {"compositionRef": {"name": "old", "kind": "K"}}}})");
  ExpectJson(*text::FindMap(prepared.composite, {"spec"}),
             R"({"crossplane": {"compositionRef": {"name": "c"}}})");
  EXPECT_EQ(Lines(prepared.events), Wanted({kSelected}));
}

TEST(CompositeTest, ACompositionRefThatWasJustTheNameGivesNoEvent) {
  EXPECT_TRUE(
      Prepare(R"({"spec": {"crossplane": {"compositionRef": {"name": "c"}}}})")
          .events.empty());
  EXPECT_TRUE(Prepare(R"({"spec": {"compositionRef": {"name": "c"}}})", kLegacy)
                  .events.empty());
  for (const char* const reference :
       {"null", "{}", R"("c")", R"({"name": "d"})", R"({"name": 5})",
        R"({"name": "c", "namespace": "n"})"}) {
    EXPECT_EQ(Prepare(absl::StrCat(R"({"spec": {"compositionRef": )", reference,
                                   "}}"),
                      kLegacy)
                  .events.size(),
              1)
        << reference;
  }
}

TEST(CompositeTest, ASpecThatIsNoMapGetsNoCompositionRef) {
  const PreparedComposite prepared = Prepare(R"({"spec": null})");
  EXPECT_TRUE(prepared.events.empty());
  EXPECT_EQ(text::Find(prepared.composite, {"spec"})->kind_case(),
            Value::kNullValue);
}

TEST(CompositeTest, TheCompositeLabelIsSetIfMissingOrEmpty) {
  const auto label = [](absl::string_view labels) {
    return LabelOf(Prepare(absl::StrCat(R"({"metadata": {"name": "a",
                                            "labels": )",
                                        labels, "}}"))
                       .composite,
                   kCompositeLabel);
  };
  EXPECT_EQ(label("{}"), "a");
  EXPECT_EQ(label(R"({"crossplane.io/composite": ""})"), "a");
  EXPECT_EQ(label(R"({"crossplane.io/composite": "b"})"), "b");
}

TEST(CompositeTest, LabelsWithAValueThatIsNoTextAreReplaced) {
  const PreparedComposite prepared =
      Prepare(R"({"metadata": {"name": "a", "labels":
                  {"crossplane.io/composite": "b", "n": 1}}})");
  ExpectJson(*text::FindMap(prepared.composite, {"metadata", "labels"}),
             R"({"crossplane.io/composite": "a"})");
}

TEST(CompositeTest, ACompositeWithoutTheLabelIsWrittenBack) {
  EXPECT_TRUE(Prepare(R"({"metadata": {"name": "a"}})").updated);
  EXPECT_FALSE(Prepare(R"({"metadata": {"name": "a", "labels":
                           {"crossplane.io/composite": "b"}}})")
                   .updated);
}

TEST(CompositeTest, ALegacyOneGetsAConnectionSecretNamedByItsUid) {
  Composition composition = Named();
  composition.connection_secrets_namespace = "secrets";
  const PreparedComposite prepared =
      Prepare(R"({"metadata": {"name": "a", "uid": "u", "labels":
                  {"crossplane.io/composite": "a"}}})",
              kLegacy, composition);
  ExpectJson(*text::FindMap(prepared.composite, {"spec"}),
             R"({"compositionRef": {"name": "c"}, "writeConnectionSecretToRef":
          {"name": "u", "namespace": "secrets"}})");
  EXPECT_TRUE(prepared.updated);
}

TEST(CompositeTest, AnEmptyNamespaceOfConnectionSecretsCounts) {
  Composition composition = Named();
  composition.connection_secrets_namespace = "";
  const PreparedComposite prepared =
      Prepare(R"({"metadata": {"name": "a", "uid": "u", "labels":
                  {"crossplane.io/composite": "a"}}})",
              kLegacy, composition);
  ExpectJson(*text::FindMap(prepared.composite, {"spec"}),
             R"({"compositionRef": {"name": "c"}, "writeConnectionSecretToRef":
          {"name": "u", "namespace": ""}})");
  EXPECT_TRUE(prepared.updated);
}

TEST(CompositeTest, AConnectionSecretThatIsThereStays) {
  Composition composition = Named();
  composition.connection_secrets_namespace = "secrets";
  const PreparedComposite prepared = Prepare(
      R"({"metadata": {"name": "a", "labels": {"crossplane.io/composite": "a"}},
          "spec": {"writeConnectionSecretToRef": {"name": "n"}}})",
      kLegacy, composition);
  ExpectJson(*text::FindMap(prepared.composite, {"spec"}),
             R"({"compositionRef": {"name": "c"},
                 "writeConnectionSecretToRef": {"name": "n"}})");
  EXPECT_FALSE(prepared.updated);
}

TEST(CompositeTest, AModernOneGetsNoConnectionSecret) {
  Composition composition = Named();
  composition.connection_secrets_namespace = "secrets";
  const PreparedComposite prepared =
      Prepare(R"({"metadata": {"name": "a", "labels":
                  {"crossplane.io/composite": "a"}}})",
              kModern, composition);
  ExpectJson(*text::FindMap(prepared.composite, {"spec"}),
             R"({"crossplane": {"compositionRef": {"name": "c"}}})");
  EXPECT_TRUE(prepared.updated);
}

}  // namespace
}  // namespace fncache::runner::engine
