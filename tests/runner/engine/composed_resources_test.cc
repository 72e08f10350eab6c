// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/composed_resources.h"

#include <time.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "runner/engine/metadata.h"
#include "tests/runner/messages.h"

namespace fncache::runner::engine {
namespace {

namespace fn = apiextensions::fn::proto::v1;

constexpr char kUid[] = "a5bed749-a7e2-5d72-b9a0-69e69d416c63";

Struct Object(absl::string_view json) { return FromJson<Struct>(json); }

Struct Composite(absl::string_view own_namespace = "",
                 absl::string_view more_labels = "") {
  Struct composite = Object(absl::StrCat(
      R"({"apiVersion": "ex.org/v1", "kind": "XR", "metadata": {"name": "a",
          "uid": ")",
      kUid, R"(", "labels": {"crossplane.io/composite": "pre")", more_labels,
      "}}}"));
  SetMetadataText(&composite, "namespace", own_namespace);
  return composite;
}

fn::State Desired(absl::string_view name, absl::string_view json) {
  fn::State desired;
  *(*desired.mutable_resources())[std::string(name)].mutable_resource() =
      Object(json);
  return desired;
}

absl::StatusOr<Composed> Composing(const Struct& composite, fn::State desired,
                                   const ObservedResources& observed = {}) {
  return Compose(composite, observed, std::move(desired), [] { return 0; });
}

// The one composed resource that `json` becomes under the name `r`.
Struct One(absl::string_view json, const Struct& composite = Composite(),
           const ObservedResources& observed = {}) {
  absl::StatusOr<Composed> composed =
      Composing(composite, Desired("r", json), observed);
  EXPECT_TRUE(composed.ok()) << composed.status();
  if (!composed.ok()) return Struct();
  EXPECT_EQ(composed->resources.size(), 1);
  return composed->resources[0].resource;
}

TEST(ComposeTest, AResourceGetsNameOwnerLabelAndAnnotation) {
  ExpectJson(
      One(R"({"apiVersion": "v1", "kind": "K", "spec": {"x": null}})"),
      absl::StrCat(R"({"apiVersion": "v1", "kind": "K", "spec": {"x": null},
          "metadata": {"generateName": "pre-", "name": ")",
                   ComposedName("pre-", kUid, "r"), R"(",
          "annotations": {"crossplane.io/composition-resource-name": "r"},
          "labels": {"crossplane.io/composite": "pre"},
          "ownerReferences": [{"apiVersion": "ex.org/v1", "kind": "XR",
              "name": "a", "uid": ")",
                   kUid, R"(", "controller": true,
              "blockOwnerDeletion": true}]}})"));
}

TEST(ComposeTest, AnObservedResourceKeepsItsNames) {
  const Struct observed = Object(R"({"metadata": {"name": "old",
      "namespace": "there", "generateName": "gen-"}, "spec": {"y": 1}})");
  const Struct resource = One(R"({"kind": "K", "metadata": {"name": "new"}})",
                              Composite(), {{"r", &observed}});
  EXPECT_EQ(NameOf(resource), "old");
  EXPECT_EQ(NamespaceOf(resource), "there");
  EXPECT_EQ(text::FindText(resource, {"metadata", "generateName"}), "gen-");
}

TEST(ComposeTest, NamesThatAnObservedResourceHasNotGo) {
  const Struct observed = Object(R"({"metadata": {"name": "old"}})");
  const Struct resource = One(
      R"({"kind": "K", "metadata": {"namespace": "n", "generateName": "g-"}})",
      Composite(), {{"r", &observed}});
  EXPECT_EQ(NameOf(resource), "old");
  EXPECT_EQ(text::Find(resource, {"metadata", "namespace"}), nullptr);
  EXPECT_EQ(text::Find(resource, {"metadata", "generateName"}), nullptr);
}

TEST(ComposeTest, NothingElseOfAnObservedResourceIsMergedIn) {
  const Struct observed = Object(
      R"({"metadata": {"name": "old", "labels": {"l": "v"}, "uid": "w"},
          "spec": {"y": 1}, "status": {"z": 1}})");
  const Struct resource =
      One(R"({"kind": "K"})", Composite(), {{"r", &observed}});
  EXPECT_EQ(text::Find(resource, {"spec"}), nullptr);
  EXPECT_EQ(text::Find(resource, {"status"}), nullptr);
  EXPECT_EQ(UidOf(resource), "");
  EXPECT_EQ(LabelOf(resource, "l"), "");
}

TEST(ComposeTest, AnotherNamespaceThanTheCompositesGivesAWarning) {
  const auto composed = Composing(
      Composite("shops"), Desired("r", R"({"metadata": {"namespace": "x"}})"));
  ASSERT_TRUE(composed.ok()) << composed.status();
  EXPECT_EQ(NamespaceOf(composed->resources[0].resource), "shops");
  ASSERT_EQ(composed->events.size(), 1);
  EXPECT_EQ(composed->events[0].type(), "Warning");
  EXPECT_EQ(composed->events[0].reason(), "NamespaceOverridden");
  EXPECT_EQ(composed->events[0].message(),
            "cannot create composed resource \"r\" in namespace \"x\", using "
            "XR namespace \"shops\" instead");
}

TEST(ComposeTest, TheCompositesNamespaceOrNoneGivesNoWarning) {
  for (const char* const json :
       {R"({"metadata": {"namespace": "shops"}})", "{}"}) {
    const auto composed = Composing(Composite("shops"), Desired("r", json));
    ASSERT_TRUE(composed.ok()) << composed.status();
    EXPECT_TRUE(composed->events.empty());
    EXPECT_EQ(NamespaceOf(composed->resources[0].resource), "shops");
  }
}

TEST(ComposeTest, AClusterScopedCompositeLeavesNamespacesAlone) {
  const auto composed = Composing(
      Composite(), Desired("r", R"({"metadata": {"namespace": "x"}})"));
  ASSERT_TRUE(composed.ok()) << composed.status();
  EXPECT_EQ(NamespaceOf(composed->resources[0].resource), "x");
  EXPECT_TRUE(composed->events.empty());
  EXPECT_EQ(text::Find(One("{}"), {"metadata", "namespace"}), nullptr);
}

TEST(ComposeTest, ClusterScopedKindsGetANamespacedCompositesNamespaceToo) {
  EXPECT_EQ(NamespaceOf(One(R"({"apiVersion": "v1", "kind": "Namespace"})",
                            Composite("shops"))),
            "shops");
}

TEST(ComposeTest, AResourceWithANameGetsNoGenerateName) {
  const Struct resource = One(R"({"metadata": {"name": "mine"}})");
  EXPECT_EQ(NameOf(resource), "mine");
  EXPECT_EQ(text::Find(resource, {"metadata", "generateName"}), nullptr);
}

TEST(ComposeTest, AGenerateNameStaysAndBeginsTheName) {
  const Struct resource = One(R"({"metadata": {"generateName": "gen"}})");
  EXPECT_EQ(text::FindText(resource, {"metadata", "generateName"}), "gen");
  EXPECT_TRUE(absl::StartsWith(NameOf(resource), "gen-")) << NameOf(resource);
}

TEST(ComposeTest, ClaimLabelsComeFromTheCompositeIfBothAreThere) {
  const char* const both = R"(, "crossplane.io/claim-name": "cn",
                              "crossplane.io/claim-namespace": "cs")";
  ExpectJson(
      *text::FindMap(One("{}", Composite("", both)), {"metadata", "labels"}),
      R"({"crossplane.io/composite": "pre",
                 "crossplane.io/claim-name": "cn",
                 "crossplane.io/claim-namespace": "cs"})");
  for (const char* const one : {R"(, "crossplane.io/claim-name": "cn")",
                                R"(, "crossplane.io/claim-name": "",
           "crossplane.io/claim-namespace": "cs")"}) {
    ExpectJson(
        *text::FindMap(One("{}", Composite("", one)), {"metadata", "labels"}),
        R"({"crossplane.io/composite": "pre"})");
  }
}

TEST(ComposeTest, MapsWithAValueThatIsNoTextAreReplaced) {
  const Struct resource =
      One(R"({"metadata": {"labels": {"l": 1}, "annotations": {"n": null}}})");
  ExpectJson(*text::FindMap(resource, {"metadata", "labels"}),
             R"({"crossplane.io/composite": "pre"})");
  // A null is the text "".
  ExpectJson(*text::FindMap(resource, {"metadata", "annotations"}),
             R"({"n": "", "crossplane.io/composition-resource-name": "r"})");
}

TEST(ComposeTest, LabelsAndAnnotationsOfTheFunctionsStay) {
  const Struct resource = One(
      R"({"metadata": {"labels": {"l": "v", "crossplane.io/composite": "x"},
                       "annotations": {"n": "w"}}})");
  ExpectJson(*text::FindMap(resource, {"metadata", "labels"}),
             R"({"l": "v", "crossplane.io/composite": "pre"})");
  ExpectJson(*text::FindMap(resource, {"metadata", "annotations"}),
             R"({"n": "w", "crossplane.io/composition-resource-name": "r"})");
}

TEST(ComposeTest, AnotherControllerIsAnError) {
  const auto composed =
      Composing(Composite(), Desired("r", R"({"metadata": {"name": "n",
          "ownerReferences": [{"kind": "Other", "name": "o", "uid": "w",
                               "controller": true}]}})"));
  EXPECT_EQ(composed.status().message(),
            "cannot render metadata for composed resource \"r\": cannot set "
            "controller reference: n is already controlled by Other o (UID w)");
}

TEST(ComposeTest, NoPrefixIsAnErrorIfAnythingIsDesired) {
  Struct composite = Composite();
  text::SetText(&composite, {"metadata", "labels", "crossplane.io/composite"},
                "");
  EXPECT_EQ(Composing(composite, Desired("r", "{}")).status().message(),
            "cannot render metadata for composed resource \"r\": cannot find "
            "top-level composite resource name label "
            "\"crossplane.io/composite\" in composite resource metadata");
  EXPECT_TRUE(Composing(composite, fn::State()).ok());
}

TEST(ComposeTest, NamesAreAHashOfUidAndName) {
  // As in a recording of the reference runner.
  EXPECT_EQ(ComposedName("storefront-", kUid, "deployment"),
            "storefront-23ca6fdd267b");
  EXPECT_EQ(ComposedName("storefront-", kUid, "ingress-0"),
            "storefront-cd9fb5fd97f2");
}

TEST(ComposeTest, ADashIsPutBetweenPrefixAndHash) {
  EXPECT_EQ(ComposedName("storefront", kUid, "deployment"),
            "storefront-23ca6fdd267b");
  EXPECT_EQ(ComposedName("storefront--", kUid, "deployment"),
            "storefront--23ca6fdd267b");
}

TEST(ComposeTest, LongNamesAreCutTo63) {
  const std::string fifty(50, 'x');
  EXPECT_EQ(ComposedName(fifty, kUid, "deployment"), fifty + "-23ca6fdd267b");
  EXPECT_EQ(ComposedName(fifty + "-", kUid, "deployment"),
            fifty + "-23ca6fdd267b");
  EXPECT_EQ(ComposedName(fifty + "-y", kUid, "deployment"),
            fifty + "-23ca6fdd267b");
  EXPECT_EQ(ComposedName(fifty + "yz", kUid, "deployment"),
            fifty + "-23ca6fdd267b");
  EXPECT_EQ(ComposedName(fifty + "y", kUid, "deployment").size(), 63);
  EXPECT_EQ(ComposedName(std::string(49, 'x') + "-yz", kUid, "deployment"),
            std::string(49, 'x') + "--23ca6fdd267b");
}

TEST(ComposeTest, AnEmptyNameGivesARandomNameAndNoAnnotation) {
  uint64_t next = 0;
  const auto composed =
      Compose(Composite(), {}, Desired("", "{}"), [&next] { return next++; });
  ASSERT_TRUE(composed.ok()) << composed.status();
  const Struct& resource = composed->resources[0].resource;
  EXPECT_EQ(NameOf(resource), "pre-bcdfg");
  EXPECT_EQ(text::Find(resource, {"metadata", "annotations"}), nullptr);
}

TEST(ComposeTest, AnInvalidNameIsAnError) {
  EXPECT_EQ(
      Composing(Composite(), Desired("r", R"({"metadata": {"name": "A_b"}})"))
          .status()
          .message(),
      "cannot apply composed resource \"r\" because it has an invalid name "
      "\"A_b\". Must be a valid RFC 1123 subdomain name.");
}

TEST(ComposeTest, NamesAreSubdomains) {
  for (const char* const name : {"a", "0", "a-b", "a.b", "a--b.0c"}) {
    EXPECT_TRUE(IsValidName("v1", "K", name)) << name;
  }
  for (const char* const name :
       {"", "-a", "a-", ".a", "a.", "a..b", "a-.b", "a.-b", "A", "a_b", "a:b",
        "a/b", "\xc3\xa4"}) {
    EXPECT_FALSE(IsValidName("v1", "K", name)) << name;
  }
  EXPECT_TRUE(IsValidName("v1", "K", std::string(253, 'a')));
  EXPECT_FALSE(IsValidName("v1", "K", std::string(254, 'a')));
}

TEST(ComposeTest, RbacRolesAndBindingsMayHaveColons) {
  constexpr char kRbac[] = "rbac.authorization.k8s.io/v1";
  for (const char* const kind :
       {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}) {
    // Without its colons a name must be what any other is.
    for (const char* const name : {"system:a:b", ":a", "a:", "::a::", "a:.b"}) {
      EXPECT_TRUE(IsValidName(kRbac, kind, name)) << kind << name;
    }
    for (const char* const name : {":", "-:a", "a:-", "a.:.b", "a:B"}) {
      EXPECT_FALSE(IsValidName(kRbac, kind, name)) << kind << name;
    }
    EXPECT_TRUE(IsValidName(kRbac, kind, std::string(253, 'a') + ":"));
    EXPECT_FALSE(IsValidName("ex.org/v1", kind, "system:a")) << kind;
  }
  EXPECT_FALSE(IsValidName(kRbac, "Other", "system:a"));
  EXPECT_FALSE(IsValidName(kRbac, "Role", "system:A"));
}

TEST(ComposeTest, ReadyIsWhatTheFunctionSays) {
  fn::State desired = Desired("true", "{}");
  (*desired.mutable_resources())["true"].set_ready(fn::READY_TRUE);
  (*desired.mutable_resources())["false"].set_ready(fn::READY_FALSE);
  *(*desired.mutable_resources())["none"].mutable_resource() =
      Object(R"({"status": {"conditions": [
                 {"type": "Ready", "status": "True"}]}})");
  const auto composed = Composing(Composite(), desired);
  ASSERT_TRUE(composed.ok()) << composed.status();
  ASSERT_EQ(composed->resources.size(), 3);
  for (const ComposedResource& resource : composed->resources) {
    EXPECT_EQ(resource.ready, resource.name == "true") << resource.name;
  }
}

TEST(ComposeTest, MissingTypeIsNoErrorButEmpty) {
  const Struct resource = One("{}");
  EXPECT_EQ(text::Find(resource, {"kind"})->kind_case(), Value::kStringValue);
  EXPECT_EQ(text::Find(resource, {"apiVersion"})->kind_case(),
            Value::kStringValue);
  EXPECT_EQ(text::FindText(resource, {"kind"}), "");
}

TEST(ComposeTest, AnApiVersionThatIsNoneLeavesNoType) {
  const auto composed = Composing(
      Composite(), Desired("r", R"({"apiVersion": "a/b/c", "kind": "ConfigMap",
                                    "metadata": {"name": "n"}})"));
  ASSERT_TRUE(composed.ok()) << composed.status();
  const Struct& resource = composed->resources[0].resource;
  EXPECT_EQ(text::Find(resource, {"apiVersion"})->kind_case(),
            Value::kStringValue);
  EXPECT_EQ(text::FindText(resource, {"apiVersion"}), "");
  EXPECT_EQ(text::FindText(resource, {"kind"}), "");
  Struct holder;
  *text::Ensure(&holder, {"refs"}) = composed->references;
  ExpectJson(holder, R"({"refs": [{"name": "n"}]})");
}

TEST(ComposeTest, ReferencesAreSortedByTheirBytesPutTogether) {
  fn::State desired;
  const auto add = [&desired](const char* name, const char* json) {
    *(*desired.mutable_resources())[name].mutable_resource() = Object(json);
  };
  add("1", R"({"apiVersion": "b/v1", "kind": "K",
               "metadata": {"name": "n", "namespace": "z"}})");
  add("2", R"({"apiVersion": "b/v1", "kind": "K",
               "metadata": {"name": "n", "namespace": "y", "uid": "w"}})");
  add("3", R"({"apiVersion": "a/v1", "kind": "Z", "metadata": {"name": "n"}})");
  // By kind Z would come before ZZ, but a/v1ZZn comes before a/v1Zn.
  add("4",
      R"({"apiVersion": "a/v1", "kind": "ZZ", "metadata": {"name": "n"}})");
  const auto composed = Composing(Composite(), desired);
  ASSERT_TRUE(composed.ok()) << composed.status();
  Struct holder;
  *text::Ensure(&holder, {"refs"}) = composed->references;
  ExpectJson(holder, R"({"refs": [
      {"apiVersion": "a/v1", "kind": "ZZ", "name": "n"},
      {"apiVersion": "a/v1", "kind": "Z", "name": "n"},
      {"apiVersion": "b/v1", "kind": "K", "name": "n", "namespace": "y",
       "uid": "w"},
      {"apiVersion": "b/v1", "kind": "K", "name": "n", "namespace": "z"}]})");
}

TEST(ComposeTest, ReferencesOfANamespacedCompositeHaveNoNamespace) {
  const auto composed =
      Composing(Composite("shops"),
                Desired("r", R"({"kind": "K", "metadata": {"name": "n"}})"));
  ASSERT_TRUE(composed.ok()) << composed.status();
  Struct holder;
  *text::Ensure(&holder, {"refs"}) = composed->references;
  ExpectJson(holder, R"({"refs": [{"kind": "K", "name": "n"}]})");
}

TEST(ComposeTest, ReferencesAreAnEmptyListIfNothingIsComposed) {
  const auto composed = Composing(Composite(), fn::State());
  ASSERT_TRUE(composed.ok()) << composed.status();
  EXPECT_TRUE(composed->references.has_list_value());
  EXPECT_EQ(composed->references.list_value().values_size(), 0);
}

TEST(ComposeTest, WhatIsNoLongerDesiredIsDeletedWithoutItsLabels) {
  const Struct controlled = Object(absl::StrCat(
      R"({"kind": "K", "metadata": {"name": "n", "labels": {"l": "v",
          "crossplane.io/composite": "pre", "crossplane.io/claim-name": "x",
          "crossplane.io/claim-namespace": "y"},
          "ownerReferences": [{"uid": ")",
      kUid, R"(", "controller": true}]}})"));
  const auto composed =
      Composing(Composite(), Desired("other", "{}"), {{"r", &controlled}});
  ASSERT_TRUE(composed.ok()) << composed.status();
  EXPECT_EQ(composed->resources.size(), 1);
  EXPECT_TRUE(composed->events.empty());
  ASSERT_EQ(composed->deleted.size(), 1);
  EXPECT_EQ(NameOf(composed->deleted[0]), "n");
  ExpectJson(*text::FindMap(composed->deleted[0], {"metadata", "labels"}),
             R"({"l": "v"})");
}

TEST(ComposeTest, WhatTheCompositeDoesNotControlIsLeftAlone) {
  const Struct uncontrolled = Object(R"({"metadata": {"name": "n"}})");
  const auto composed =
      Composing(Composite(), fn::State(), {{"r", &uncontrolled}});
  ASSERT_TRUE(composed.ok()) << composed.status();
  EXPECT_TRUE(composed->deleted.empty());
}

TEST(ComposeTest, WhatIsDesiredIsNotDeleted) {
  const Struct controlled = Object(absl::StrCat(
      R"({"metadata": {"name": "n", "ownerReferences": [{"uid": ")", kUid,
      R"(", "controller": true}]}})"));
  const auto composed =
      Composing(Composite(), Desired("r", "{}"), {{"r", &controlled}});
  ASSERT_TRUE(composed.ok()) << composed.status();
  EXPECT_TRUE(composed->deleted.empty());
}

// The CPU time of this thread: it does not count while the machine stalls.
absl::Duration ThreadCpu() {
  timespec spent = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return absl::DurationFromTimespec(spent);
}

TEST(ComposeTest, AThousandResourcesTakeMilliseconds) {
  constexpr int kResources = 1000;
  fn::State desired;
  std::vector<Struct> objects(kResources);
  ObservedResources observed;
  for (int i = 0; i < kResources; ++i) {
    const std::string name = absl::StrCat("r", i);
    *(*desired.mutable_resources())[name].mutable_resource() =
        Object(R"({"apiVersion": "v1", "kind": "K", "spec": {"x": [1, 2]}})");
    objects[i] = Object(R"({"metadata": {"name": "n"}})");
    observed[name] = &objects[i];
  }
  const absl::Duration start = ThreadCpu();
  const auto composed = Composing(Composite(), std::move(desired), observed);
  const absl::Duration took = ThreadCpu() - start;
  ASSERT_TRUE(composed.ok()) << composed.status();
  EXPECT_EQ(composed->resources.size(), kResources);
  // 5 ms in a release build; the bound only catches what is quadratic.
  EXPECT_LT(took, absl::Seconds(2));
  RecordProperty("microseconds",
                 static_cast<int>(absl::ToInt64Microseconds(took)));
}

}  // namespace
}  // namespace fncache::runner::engine
