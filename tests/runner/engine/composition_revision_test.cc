// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/composition_revision.h"

#include <string>

#include "absl/time/time.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runner/text/json.h"
#include "tests/runner/messages.h"

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

}  // namespace
}  // namespace fncache::runner::engine
