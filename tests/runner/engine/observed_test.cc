// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/observed.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runner/engine/metadata.h"
#include "tests/runner/messages.h"

namespace fncache::runner::engine {

using google::protobuf::ListValue;
namespace {

constexpr CompositeSchema kModern = CompositeSchema::kModern;
constexpr CompositeSchema kLegacy = CompositeSchema::kLegacy;

Struct Object(absl::string_view json) { return FromJson<Struct>(json); }

// A bucket with this name and composition resource name, and perhaps more.
Struct Bucket(absl::string_view name, absl::string_view resource_name,
              absl::string_view more_metadata = "",
              absl::string_view spec = "{}") {
  return Object(absl::StrCat(
      R"({"apiVersion": "s3/v1", "kind": "Bucket", "metadata": {"name": ")",
      name,
      R"(", "annotations": {"crossplane.io/composition-resource-name": ")",
      resource_name, "\"}", more_metadata, R"(}, "spec": )", spec, "}"));
}

// A composite that refers to buckets of these names.
Struct Referring(const std::vector<std::string>& names,
                 absl::string_view own_namespace = "") {
  Struct composite = Object(
      R"({"apiVersion": "ex.org/v1", "kind": "XR",
          "metadata": {"name": "a", "uid": "u"},
          "spec": {"crossplane": {"resourceRefs": []}}})");
  if (!own_namespace.empty()) {
    SetMetadataText(&composite, "namespace", own_namespace);
  }
  ListValue* const references =
      text::Ensure(&composite, {"spec", "crossplane", "resourceRefs"})
          ->mutable_list_value();
  for (const std::string& name : names) {
    *references->add_values()->mutable_struct_value() =
        Object(absl::StrCat(R"({"apiVersion": "s3/v1", "kind": "Bucket",
                                "name": ")",
                            name, "\"}"));
  }
  return composite;
}

std::vector<std::string> NamesOf(const Observation& observation) {
  std::vector<std::string> names;
  for (const auto& [name, object] : observation.resources) {
    names.push_back(name);
  }
  return names;
}

using Wanted = std::vector<std::string>;

TEST(ObservedTest, AnotherControllerIsAnError) {
  const Struct composite = Referring({});
  EXPECT_TRUE(CheckObserved(composite, {Bucket("b", "r")}).ok());
  EXPECT_TRUE(CheckObserved(composite, {Bucket("b", "r",
                                               R"(, "ownerReferences": [
                                       {"uid": "u", "controller": true}])")})
                  .ok());
  EXPECT_TRUE(CheckObserved(composite, {Bucket("b", "r",
                                               R"(, "ownerReferences": [
                                          {"uid": "v"}])")})
                  .ok());
  EXPECT_EQ(
      CheckObserved(composite, {Bucket("b", "r",
                                       R"(, "ownerReferences": [
                                          {"uid": "v", "controller": true}])")})
          .message(),
      "invalid observed resources: observed resource b has a controller ref "
      "but is not controlled by the XR");
}

TEST(ObservedTest, AnotherNamespaceThanANamespacedCompositesIsAnError) {
  const std::vector<Struct> observed = {
      Bucket("b", "r", R"(, "namespace": "n")"),
      Bucket("c", "s", R"(, "namespace": "other")"), Bucket("d", "t")};
  EXPECT_TRUE(CheckObserved(Referring({}), observed).ok());
  const std::string message(
      CheckObserved(Referring({}, "n"), observed).message());
  EXPECT_EQ(message.find("resource b"), std::string::npos) << message;
  EXPECT_NE(message.find("resource c"), std::string::npos) << message;
  EXPECT_NE(message.find("resource d"), std::string::npos) << message;
}

TEST(ObservedTest, SeveralErrorsAreJoinedInBracketsEachOnce) {
  const char* const owned = R"(, "ownerReferences": [
                               {"uid": "v", "controller": true}])";
  EXPECT_EQ(CheckObserved(Referring({}),
                          {Bucket("b", "r", owned), Bucket("c", "s", owned),
                           Bucket("b", "t", owned)})
                .message(),
            "invalid observed resources: [observed resource b has a controller "
            "ref but is not controlled by the XR, observed resource c has a "
            "controller ref but is not controlled by the XR]");
}

TEST(ObservedTest, ResourceRefsAreReplacedInInputOrder) {
  Struct composite = Referring({"old"});
  ReferToObserved({Bucket("z", "r", R"(, "namespace": "n")"),
                   Object(R"({"kind": "K", "metadata": {"name": "y"}})"),
                   Object(R"({"spec": {}})")},
                  kModern, &composite);
  ExpectJson(*text::FindMap(composite, {"spec"}),
             R"({"crossplane": {"resourceRefs": [
      {"apiVersion": "s3/v1", "kind": "Bucket", "name": "z", "namespace": "n"},
      {"kind": "K", "name": "y"}]}})");
}

TEST(ObservedTest, ResourceRefsOfANamespacedCompositeHaveNoNamespace) {
  Struct composite = Referring({}, "n");
  ReferToObserved({Bucket("z", "r", R"(, "namespace": "n")")}, kModern,
                  &composite);
  ExpectJson(*text::FindMap(composite, {"spec"}),
             R"({"crossplane": {"resourceRefs": [
      {"apiVersion": "s3/v1", "kind": "Bucket", "name": "z"}]}})");
}

TEST(ObservedTest, ResourceRefsOfALegacyCompositeAreBelowSpec) {
  Struct composite = Object("{}");
  ReferToObserved({Bucket("z", "r")}, kLegacy, &composite);
  ExpectJson(composite, R"({"spec": {"resourceRefs": [
      {"apiVersion": "s3/v1", "kind": "Bucket", "name": "z"}]}})");
}

TEST(ObservedTest, ResourceRefsStayIfNothingIsObserved) {
  Struct composite = Referring({"old"});
  const Struct before = composite;
  ReferToObserved({}, kModern, &composite);
  EXPECT_TRUE(text::Equal(composite, before));
}

TEST(ObservedTest, WhatIsReferredToIsObservedByItsAnnotation) {
  ObjectStore objects;
  objects.Add(Bucket("b", "r", "", R"({"x": 1})"));
  objects.Add(Bucket("c", "s"));
  objects.Add(Bucket("unnamed", "t"));
  const auto observation = Observe(Referring({"b", "c"}), kModern, objects);
  ASSERT_TRUE(observation.ok()) << observation.status();
  EXPECT_EQ(NamesOf(*observation), Wanted({"r", "s"}));
  EXPECT_EQ(observation->state.resources_size(), 2);
  EXPECT_TRUE(text::Equal(observation->state.resources().at("r").resource(),
                          Bucket("b", "r", "", R"({"x": 1})")));
  EXPECT_TRUE(text::Equal(observation->state.composite().resource(),
                          Referring({"b", "c"})));
}

TEST(ObservedTest, RefsWithoutANameOrObjectAreSkipped) {
  ObjectStore objects;
  objects.Add(Bucket("b", "r"));
  Struct composite = Referring({"b", "", "missing"});
  ListValue* const references =
      text::Ensure(&composite, {"spec", "crossplane", "resourceRefs"})
          ->mutable_list_value();
  references->add_values()->set_string_value("text");
  references->add_values()->set_null_value(google::protobuf::NULL_VALUE);
  const auto observation = Observe(composite, kModern, objects);
  ASSERT_TRUE(observation.ok()) << observation.status();
  EXPECT_EQ(NamesOf(*observation), Wanted({"r"}));
}

TEST(ObservedTest, WhatAnotherObjectControlsIsSkipped) {
  ObjectStore objects;
  objects.Add(Bucket("b", "r",
                     R"(, "ownerReferences": [
                        {"uid": "v", "controller": true}])"));
  objects.Add(Bucket("c", "s",
                     R"(, "ownerReferences": [
                        {"uid": "u", "controller": true}])"));
  const auto observation = Observe(Referring({"b", "c"}), kModern, objects);
  ASSERT_TRUE(observation.ok()) << observation.status();
  EXPECT_EQ(NamesOf(*observation), Wanted({"s"}));
}

TEST(ObservedTest, ANamespacedCompositesRefsAreInItsNamespace) {
  ObjectStore objects;
  objects.Add(Bucket("b", "here", R"(, "namespace": "n")"));
  objects.Add(Bucket("b", "cluster"));
  EXPECT_EQ(NamesOf(*Observe(Referring({"b"}, "n"), kModern, objects)),
            Wanted({"here"}));
  EXPECT_EQ(NamesOf(*Observe(Referring({"b"}), kModern, objects)),
            Wanted({"cluster"}));
}

TEST(ObservedTest, AClusterScopedCompositesRefsHaveTheirOwnNamespaces) {
  ObjectStore objects;
  objects.Add(Bucket("b", "there", R"(, "namespace": "n")"));
  Struct composite = Referring({"b"});
  Value& reference =
      *text::Ensure(&composite, {"spec", "crossplane", "resourceRefs"})
           ->mutable_list_value()
           ->mutable_values(0);
  text::SetText(reference.mutable_struct_value(), {"namespace"}, "n");
  EXPECT_EQ(NamesOf(*Observe(composite, kModern, objects)), Wanted({"there"}));
}

TEST(ObservedTest, AnObjectWithoutTheAnnotationIsAnError) {
  ObjectStore objects;
  objects.Add(Bucket("b", ""));
  EXPECT_EQ(Observe(Referring({"b"}), kModern, objects).status().message(),
            "cannot get existing composed resources: encountered composed "
            "resource without required "
            "\"crossplane.io/composition-resource-name\" annotation");
}

TEST(ObservedTest, TheLastOfTwoWithOneNameCounts) {
  ObjectStore objects;
  objects.Add(Bucket("b", "r", "",
                     R"({"writeConnectionSecretToRef":
                         {"name": "s", "namespace": "n"}})"));
  objects.Add(Bucket("c", "r"));
  objects.Add(Object(R"({"apiVersion": "v1", "kind": "Secret", "metadata":
                         {"name": "s", "namespace": "n"},
                         "data": {"k": "dg=="}})"));
  const auto observation = Observe(Referring({"b", "c"}), kModern, objects);
  ASSERT_TRUE(observation.ok()) << observation.status();
  const auto& resource = observation->state.resources().at("r");
  EXPECT_EQ(NameOf(resource.resource()), "c");
  EXPECT_EQ(NameOf(*observation->resources.at("r")), "c");
  EXPECT_EQ(resource.connection_details_size(), 0);
}

TEST(ObservedTest, ConnectionDetailsAreTheSecretsDataNotItsStringData) {
  ObjectStore objects;
  objects.Add(Bucket("b", "r", "",
                     R"({"writeConnectionSecretToRef":
                         {"name": "s", "namespace": "n"}})"));
  objects.Add(Object(R"({"apiVersion": "v1", "kind": "Secret",
                         "metadata": {"name": "s", "namespace": "n"},
                         "data": {"k": "dg=="}, "stringData": {"l": "w"}})"));
  const auto observation = Observe(Referring({"b"}), kModern, objects);
  ASSERT_TRUE(observation.ok()) << observation.status();
  const auto& details =
      observation->state.resources().at("r").connection_details();
  ASSERT_EQ(details.size(), 1);
  EXPECT_EQ(details.at("k"), "v");
}

TEST(ObservedTest, TheSecretIsInTheResourcesOwnNamespaceIfItHasOne) {
  ObjectStore objects;
  objects.Add(Bucket("b", "r", R"(, "namespace": "own")",
                     R"({"writeConnectionSecretToRef":
                         {"name": "s", "namespace": "n"}})"));
  for (const char* const secret_namespace : {"own", "n"}) {
    Struct secret = Object(R"({"apiVersion": "v1", "kind": "Secret",
                               "metadata": {"name": "s"}, "data": {}})");
    SetMetadataText(&secret, "namespace", secret_namespace);
    text::SetText(&secret, {"data", secret_namespace}, "dg==");
    objects.Add(std::move(secret));
  }
  const auto observation = Observe(Referring({"b"}, "own"), kModern, objects);
  ASSERT_TRUE(observation.ok()) << observation.status();
  const auto& details =
      observation->state.resources().at("r").connection_details();
  EXPECT_EQ(details.size(), 1);
  EXPECT_EQ(details.count("own"), 1);
}

TEST(ObservedTest, AMissingSecretGivesNoConnectionDetails) {
  ObjectStore objects;
  objects.Add(
      Bucket("b", "r", "", R"({"writeConnectionSecretToRef": {"name": "s"}})"));
  const auto observation = Observe(Referring({"b"}), kModern, objects);
  ASSERT_TRUE(observation.ok()) << observation.status();
  EXPECT_EQ(observation->state.resources().at("r").connection_details_size(),
            0);
}

TEST(ObservedTest, ABrokenSecretIsAnErrorThatNamesTheResource) {
  ObjectStore objects;
  objects.Add(
      Bucket("b", "r", "", R"({"writeConnectionSecretToRef": {"name": "s"}})"));
  objects.Add(Object(R"({"apiVersion": "v1", "kind": "Secret", "metadata":
                         {"name": "s"}, "data": {"k": "?"}})"));
  const std::string message(
      Observe(Referring({"b"}), kModern, objects).status().message());
  EXPECT_EQ(message.rfind("cannot get existing composed resources: cannot "
                          "fetch connection details for composed resource "
                          "\"r\" (a Bucket named b): ",
                          0),
            0)
      << message;
}

TEST(ObservedTest, OnlyALegacyCompositeHasConnectionDetails) {
  ObjectStore objects;
  objects.Add(Object(R"({"apiVersion": "v1", "kind": "Secret", "metadata":
                         {"name": "s", "namespace": "n"},
                         "data": {"k": "dg=="}})"));
  const Struct composite = Object(R"({"spec": {"writeConnectionSecretToRef":
                                      {"name": "s", "namespace": "n"}}})");
  EXPECT_EQ(Observe(composite, kLegacy, objects)
                ->state.composite()
                .connection_details()
                .at("k"),
            "v");
  EXPECT_EQ(Observe(composite, kModern, objects)
                ->state.composite()
                .connection_details_size(),
            0);
}

}  // namespace
}  // namespace fncache::runner::engine
