// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/composition_revision.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/runner/messages.h"
#include "text/json.h"

namespace fncache::runner::engine {
namespace {

using google::protobuf::Struct;

text::Json Revision(const std::string& json) {
  const auto composition = ParseComposition(FromJson<Struct>(json));
  EXPECT_TRUE(composition.ok()) << composition.status();
  return text::FromStruct(
      CompositionRevision(*composition, absl::FromUnixSeconds(1700000000)));
}

// The hashes are those that Crossplane's Composition.Hash gives.
TEST(CompositionRevisionTest, IsTheReferences) {
  const text::Json revision = Revision(R"({
      "metadata": {"name": "c"},
      "spec": {"compositeTypeRef": {"apiVersion": "ex.org/v1", "kind": "XR"},
               "mode": "Pipeline",
               "pipeline": [{"step": "s", "functionRef": {"name": "f"}}]}})");
  EXPECT_EQ(revision, text::Json::parse(R"({
      "apiVersion": "apiextensions.crossplane.io/v1",
      "kind": "CompositionRevision",
      "metadata": {
        "name": "c-ee065b9",
        "labels": {
          "crossplane.io/composition-name": "c",
          "crossplane.io/composition-hash":
            "ee065b93defa33c7ccd730d720b349a9f8ce374ac1727f664a069d0427435a7"},
        "ownerReferences": [{
          "apiVersion": "apiextensions.crossplane.io/v1",
          "kind": "Composition", "name": "c", "uid": "",
          "controller": true, "blockOwnerDeletion": true}]},
      "spec": {
        "compositeTypeRef": {"apiVersion": "ex.org/v1", "kind": "XR"},
        "mode": "Pipeline", "revision": 1,
        "pipeline": [{"step": "s", "functionRef": {"name": "f"}}]},
      "status": {"conditions": [{
        "type": "ValidPipeline", "status": "True", "reason": "ValidPipeline",
        "lastTransitionTime": "2023-11-14T22:13:20Z"}]}})"))
      << revision.dump(1);
}

TEST(CompositionRevisionTest, TheHashIsOfAllFields) {
  const text::Json revision = Revision(R"({
      "metadata": {"name": "c", "uid": "u", "labels": {"a": "b"},
                   "annotations": {"x": "yes"}},
      "spec": {"compositeTypeRef": {"apiVersion": "ex.org/v1", "kind": "XR"},
               "mode": "Pipeline", "writeConnectionSecretsToNamespace": "false",
               "pipeline": [{"step": "s", "functionRef": {"name": "f"},
                 "input": {"v": [1, 2.5, null, {}], "t": "a\nb"},
                 "credentials": [{"name": "k", "source": "Secret",
                   "secretRef": {"name": "s", "namespace": "false"}}],
                 "requirements": {
                   "requiredResources": [
                     {"requirementName": "r", "apiVersion": "v1",
                      "kind": "ConfigMap", "name": "x", "namespace": "false"},
                     {"requirementName": "l", "apiVersion": "v1",
                      "kind": "ConfigMap", "matchLabels": {"a": "b"}}],
                   "requiredSchemas": [
                     {"requirementName": "q", "apiVersion": "v1",
                      "kind": "Pod"}]}}]}})");
  EXPECT_EQ(revision["metadata"]["name"], "c-f11f257");
  EXPECT_EQ(revision["metadata"]["labels"]["a"], "b");
  EXPECT_EQ(revision["metadata"]["ownerReferences"][0]["uid"], "u");
}

// The revision of a Composition with these fields, selectors and steps besides.
text::Json RevisionWith(const std::string& metadata, const std::string& spec,
                        const std::string& selectors = "",
                        const std::string& steps = "") {
  return Revision(absl::StrCat(
      R"({"metadata": {"name": "things")", metadata, R"(}, "spec": {
          "compositeTypeRef": {"apiVersion": "example.org/v1",
                               "kind": "XThing"},
          "mode": "Pipeline")",
      spec, R"(, "pipeline": [{"step": "s0", "functionRef": {"name": "fn"},
          "input": {"responses": [{"passDesired": true}]},
          "requirements": {"requiredResources": [{"requirementName": "a",
            "apiVersion": "apiextensions.crossplane.io/v1",
            "kind": "CompositionRevision", "matchLabels":
              {"crossplane.io/composition-name": "things"}})",
      selectors, "]}}", steps, "]}}"));
}

// Names that Crossplane v2.4.0 gave.
TEST(CompositionRevisionTest, TheHashTellsEmptyFromAbsent) {
  const auto name = [](const text::Json& revision) {
    return revision["metadata"]["name"].get<std::string>();
  };
  EXPECT_EQ(name(RevisionWith("", "")), "things-2b14717");
  EXPECT_EQ(name(RevisionWith(R"(, "labels": {})", "")), "things-e10744f");
  EXPECT_EQ(name(RevisionWith(R"(, "annotations": {})", "")), "things-d964677");
  const text::Json connection =
      RevisionWith("", R"(, "writeConnectionSecretsToNamespace": "")");
  EXPECT_EQ(name(connection), "things-586480d");
  EXPECT_EQ(connection["spec"]["writeConnectionSecretsToNamespace"], "");
}

TEST(CompositionRevisionTest, RequirementsAreAsGoWritesThem) {
  const text::Json both = RevisionWith(
      "", "",
      R"(, {"requirementName": "z", "apiVersion": "v1", "kind": "A",
            "name": "n", "matchLabels": {"a": "b"}})");
  EXPECT_EQ(both["metadata"]["name"], "things-9884920");
  const text::Json& selectors =
      both["spec"]["pipeline"][0]["requirements"]["requiredResources"];
  EXPECT_EQ(selectors[1]["matchLabels"], text::Json::parse(R"({"a": "b"})"));
  for (const char* requirements : {"{}", R"({"requiredResources": [],
                                            "requiredSchemas": []})"}) {
    const text::Json second = RevisionWith(
        "", "", "",
        absl::StrCat(R"(, {"step": "s1", "functionRef": {"name": "fn"},
            "input": {"responses": [{"passDesired": true}]},
            "requirements": )",
                     requirements, "}"));
    EXPECT_EQ(second["metadata"]["name"], "things-7e1d7e8") << requirements;
    EXPECT_EQ(second["spec"]["pipeline"][1]["requirements"],
              text::Json::object());
  }
}

TEST(CompositionRevisionTest, EmptyMatchLabelsAreLeftOut) {
  const std::string selector =
      R"(, {"requirementName": "z", "apiVersion": "v1", "kind": "A")";
  const text::Json empty =
      RevisionWith("", "", selector + R"(, "matchLabels": {}})");
  EXPECT_EQ(empty, RevisionWith("", "", selector + "}"));
  EXPECT_EQ(empty["metadata"]["name"], "things-0bb47aa");
}

TEST(CompositionRevisionTest, AnnotationsAreCopied) {
  const text::Json revision =
      RevisionWith(R"(, "annotations": {"b": "<&>é", "a": "{}"})", "");
  EXPECT_EQ(revision["metadata"]["name"], "things-7ceeb22");
  EXPECT_EQ(revision["metadata"]["annotations"],
            text::Json::parse(R"({"b": "<&>é", "a": "{}"})"));
  EXPECT_FALSE(RevisionWith(R"(, "annotations": {})", "")["metadata"].contains(
      "annotations"));
}

}  // namespace
}  // namespace fncache::runner::engine
