// SPDX-License-Identifier: Apache-2.0
#include "runner/load/model/changed_fields.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runner/messages.h"

namespace fncache::runner::load::model {
namespace {

namespace fn = apiextensions::fn::proto::v1;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Wanted Of(const std::string& desired) {
  Wanted wanted;
  wanted.desired = FromJson<fn::State>(desired);
  return wanted;
}

TEST(ChangedFieldsTest, NamesFieldsAndNotTheirValues) {
  const Wanted before = Of(R"({
    "composite": {"resource": {"status": {"token": "s3cret", "same": 1}}},
    "resources": {
      "bucket": {"resource": {"spec": {"list": [1, {"a": 2}], "gone": {}}}},
      "old": {"resource": {}},
      "same": {"resource": {"spec": {"x": [true]}}, "ready": "READY_TRUE"},
      "there": {"resource": {}, "ready": "READY_FALSE"}}})");
  const Wanted after = Of(R"({
    "composite": {"resource": {"status": {"token": "other", "same": 1}}},
    "resources": {
      "bucket": {"resource": {"spec": {"list": [1, {"a": 3}], "new": {}}}},
      "same": {"resource": {"spec": {"x": [true]}}, "ready": "READY_TRUE"},
      "there": {"resource": {}, "ready": "READY_TRUE"}}})");
  EXPECT_THAT(
      ChangedFields(before, after, 10),
      ElementsAre("composite: status.token", "resource bucket: spec.gone",
                  "resource bucket: spec.list[1].a",
                  "resource bucket: spec.new",
                  "resource old: whether it is desired",
                  "resource there: whether it is ready"));
  EXPECT_THAT(ChangedFields(before, after, 2), SizeIs(2));
  EXPECT_THAT(ChangedFields(before, before, 10), IsEmpty());
}

TEST(ChangedFieldsTest, NamesThatReplaceOthersAreOneChange) {
  EXPECT_THAT(ChangedFields(Of(R"({"resources": {"a-1": {"resource": {}},
                               "same": {"resource": {"spec": {"x": 1}}}}})"),
                            Of(R"({"resources": {"a-2": {"resource": {}},
                               "same": {"resource": {"spec": {"x": 2}}}}})"),
                            10),
              ElementsAre("the names of the desired resources",
                          "resource same: spec.x"));
}

TEST(ChangedFieldsTest, ListsOfOtherLengthAndOtherTypesAreNamedWhole) {
  EXPECT_THAT(
      ChangedFields(
          Of(R"({"composite": {"resource": {"a": [1], "b": {"c": 1}}}})"),
          Of(R"({"composite": {"resource": {"a": [1, 2], "b": 1}}})"), 10),
      ElementsAre("composite: a", "composite: b"));
}

TEST(ChangedFieldsTest, ConditionsAreNamedByType) {
  Wanted before;
  before.conditions.push_back(
      FromJson<fn::Condition>(R"({"type": "Healthy", "message": "at 12:00"})"));
  before.conditions.push_back(FromJson<fn::Condition>(R"({"type": "Same"})"));
  Wanted after = before;
  after.conditions[0].set_message("at 12:01");
  EXPECT_THAT(ChangedFields(before, after, 10),
              ElementsAre("condition Healthy"));
}

}  // namespace
}  // namespace fncache::runner::load::model
