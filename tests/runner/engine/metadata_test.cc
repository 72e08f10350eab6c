// SPDX-License-Identifier: Apache-2.0
#include "runner/engine/metadata.h"

#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "tests/runner/messages.h"

namespace fncache::runner::engine {
namespace {

Struct Object(absl::string_view json) { return FromJson<Struct>(json); }

OwnerReference Owner(absl::string_view uid) {
  OwnerReference owner;
  owner.api_version = "ex.org/v1";
  owner.kind = "XR";
  owner.name = "a";
  owner.uid = std::string(uid);
  owner.controller = true;
  owner.block_owner_deletion = true;
  return owner;
}

TEST(MetadataTest, NestedValuesAreSetBelowMapsThatAreMade) {
  Struct object;
  EXPECT_TRUE(SetNested(&object, {"a", "b", "c"}, text::TextValue("x")));
  ExpectJson(object, R"({"a": {"b": {"c": "x"}}})");
  EXPECT_TRUE(SetNested(&object, {"a", "b"}, text::TextValue("y")));
  ExpectJson(object, R"({"a": {"b": "y"}})");
}

TEST(MetadataTest, NothingIsSetBelowWhatIsNoMap) {
  for (const char* const json :
       {R"({"a": null})", R"({"a": "x"})", R"({"a": [{}]})"}) {
    Struct object = Object(json);
    EXPECT_FALSE(SetNested(&object, {"a", "b"}, text::TextValue("y")));
    ExpectJson(object, json);
  }
}

TEST(MetadataTest, EmptyTextRemovesTheField) {
  Struct object = Object(R"({"metadata": {"name": "a", "namespace": "n"}})");
  SetMetadataText(&object, "namespace", "");
  SetMetadataText(&object, "name", "b");
  ExpectJson(object, R"({"metadata": {"name": "b"}})");
}

TEST(MetadataTest, LabelsWithAValueThatIsNoTextCountAsAbsent) {
  Struct object = Object(R"({"metadata": {"labels": {"a": "x", "b": 1}}})");
  EXPECT_EQ(LabelOf(object, "a"), "");
  Struct removed = object;
  RemoveLabels(&removed, {"a"});
  ExpectJson(removed, R"({"metadata": {"labels": {"a": "x", "b": 1}}})");
  AddLabels(&object, {{"c", "z"}});
  ExpectJson(object, R"({"metadata": {"labels": {"c": "z"}}})");
}

TEST(MetadataTest, ANullAmongLabelsIsEmptyText) {
  Struct object = Object(R"({"metadata": {"labels": {"a": "x", "b": null}}})");
  EXPECT_EQ(LabelOf(object, "a"), "x");
  EXPECT_EQ(LabelOf(object, "b"), "");
  Struct removed = object;
  RemoveLabels(&removed, {"a"});
  ExpectJson(removed, R"({"metadata": {"labels": {"b": ""}}})");
  AddLabels(&object, {{"c", "z"}});
  ExpectJson(object,
             R"({"metadata": {"labels": {"a": "x", "b": "", "c": "z"}}})");
  Struct none = Object(R"({"metadata": {"labels": null}})");
  AddLabels(&none, {{"c", "z"}});
  ExpectJson(none, R"({"metadata": {"labels": {"c": "z"}}})");
}

TEST(MetadataTest, LabelsAndAnnotationsAreAddedToThoseThatAreThere) {
  Struct object = Object(R"({"metadata": {"labels": {"a": "x", "b": "y"}}})");
  AddLabels(&object, {{"b", "z"}});
  AddAnnotations(&object, {{"c", "w"}});
  ExpectJson(object, R"({"metadata": {"labels": {"a": "x", "b": "z"},
                                      "annotations": {"c": "w"}}})");
  EXPECT_EQ(LabelOf(object, "b"), "z");
  EXPECT_EQ(AnnotationOf(object, "c"), "w");
}

TEST(MetadataTest, RemovedLabelsLeaveTheMap) {
  Struct object = Object(R"({"metadata": {"labels": {"a": "x"}}})");
  RemoveLabels(&object, {"a", "b"});
  ExpectJson(object, R"({"metadata": {"labels": {}}})");
}

TEST(MetadataTest, TheControllerIsTheFirstOwnerThatSaysSo) {
  const Struct object = Object(R"({"metadata": {"ownerReferences": [
      {"uid": "1"}, {"uid": "2", "controller": false},
      {"uid": "3", "controller": "true"}, {"uid": "4", "controller": true},
      {"uid": "5", "controller": true}]}})");
  ASSERT_TRUE(ControllerOf(object).has_value());
  EXPECT_EQ(ControllerOf(object)->uid, "4");
  EXPECT_FALSE(ControllerOf(Object("{}")).has_value());
}

TEST(MetadataTest, OwnersOfWhichOneIsNoMapAreNone) {
  const Struct object = Object(R"({"metadata": {"ownerReferences": [
      {"uid": "4", "controller": true}, "x"]}})");
  EXPECT_FALSE(ControllerOf(object).has_value());
}

TEST(MetadataTest, ControllerIsAppendedToOtherOwners) {
  Struct object = Object(R"({"metadata": {"ownerReferences": [
      {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1",
       "other": 5}]}})");
  ASSERT_TRUE(SetController(Owner("u"), &object).ok());
  ExpectJson(object, R"({"metadata": {"ownerReferences": [
      {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"},
      {"apiVersion": "ex.org/v1", "kind": "XR", "name": "a", "uid": "u",
       "controller": true, "blockOwnerDeletion": true}]}})");
}

TEST(MetadataTest, ControllerTakesThePlaceOfAnOwnerWithItsUid) {
  Struct object = Object(R"({"metadata": {"ownerReferences": [
      {"uid": "u", "name": "old"},
      {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1",
       "blockOwnerDeletion": false}]}})");
  ASSERT_TRUE(SetController(Owner("u"), &object).ok());
  ExpectJson(object, R"({"metadata": {"ownerReferences": [
      {"apiVersion": "ex.org/v1", "kind": "XR", "name": "a", "uid": "u",
       "controller": true, "blockOwnerDeletion": true},
      {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1",
       "blockOwnerDeletion": false}]}})");
}

TEST(MetadataTest, AnotherControllerIsAnErrorThatNamesIt) {
  Struct object = Object(R"({"metadata": {"name": "n", "ownerReferences": [
      {"kind": "Pod", "name": "p", "uid": "1", "controller": true}]}})");
  const absl::Status status = SetController(Owner("u"), &object);
  EXPECT_EQ(status.message(), "n is already controlled by Pod p (UID 1)");
}

}  // namespace
}  // namespace fncache::runner::engine
