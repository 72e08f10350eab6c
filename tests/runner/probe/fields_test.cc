// SPDX-License-Identifier: Apache-2.0
#include "runner/probe/fields.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "cache/key/mask.h"
#include "cache/key/reencode.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "tests/runner/messages.h"
#include "text/deterministic_bytes.h"

namespace fncache::runner::probe {
namespace {

using apiextensions::fn::proto::v1::RunFunctionRequest;
using ::testing::ElementsAre;

RunFunctionRequest Everything() {
  return FromJson<RunFunctionRequest>(R"({
    "input": {"a": 1},
    "desired": {"composite": {"resource": {"spec": {"x": 1}}}},
    "context": {"example.org/now": {"zone": "utc"}},
    "observed": {
      "composite": {"resource": {
        "spec": {"size": 3, "on": true, "none": null, "empty": {}, "list": []},
        "status": {"conditions": [{"type": "Ready", "status": "True"},
                                  {"type": "Synced", "status": "True"}],
                   "zones": ["a", "b"]}}},
      "resources": {"my.db": {"resource": {"status": {"arn": "x"}}}}},
    "requiredResources": {"env": {"items": [
      {"resource": {"data": {"k": "v"}}},
      {"resource": {"data": {"l": "w"}}}]}}
  })");
}

std::vector<std::string> MasksOf(const RequestFields& fields) {
  std::vector<std::string> masks;
  for (const Field& field : fields.fields()) masks.push_back(field.mask);
  return masks;
}

size_t IndexOf(const RequestFields& fields, const std::string& mask) {
  const std::vector<std::string> masks = MasksOf(fields);
  const auto found = std::find(masks.begin(), masks.end(), mask);
  EXPECT_NE(found, masks.end()) << mask;
  return found - masks.begin();
}

TEST(RequestFields, AreWhatAMaskMayHide) {
  const RequestFields fields({Everything()});
  const std::string c = "observed.composite.resource.";
  EXPECT_THAT(
      MasksOf(fields),
      ElementsAre(
          "context.\"example.org/now\"", "context.\"example.org/now\".zone",
          c + "spec", c + "spec.empty", c + "spec.list", c + "spec.none",
          c + "spec.on", c + "spec.size", c + "status", c + "status.conditions",
          c + "status.conditions.*", c + "status.conditions.*.status",
          c + "status.conditions.*.type", c + "status.zones",
          c + "status.zones.*", "observed.resources.\"my.db\".resource.status",
          "observed.resources.\"my.db\".resource.status.arn",
          "required_resources.env.items.*.resource.data",
          "required_resources.env.items.*.resource.data.k",
          "required_resources.env.items.*.resource.data.l"));
  for (const Field& field : fields.fields()) {
    EXPECT_TRUE(cache::key::MaskSet::Parse({field.mask},
                                           cache::key::MaskRules::kAnyPath)
                    .ok())
        << field.mask;
  }
}

TEST(RequestFields, ParentsEncloseTheirFields) {
  const RequestFields fields({Everything()});
  const auto& all = fields.fields();
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    EXPECT_GT(all[i].end, i);
    if (all[i].parent < 0) continue;
    EXPECT_LT(all[i].parent, i);
    EXPECT_LE(all[i].end, all[all[i].parent].end);
    EXPECT_TRUE(all[all[i].parent].container);
  }
}

// Removing is what masking is, but for elements of lists: those become null,
// which every function takes.
TEST(RequestFields, RemovingIsMasking) {
  const RequestFields fields({Everything()});
  for (size_t i = 0; i < fields.fields().size(); ++i) {
    const std::string& mask = fields.fields()[i].mask;
    if (mask.back() == '*') continue;
    std::vector<Change> changes(fields.fields().size(), Change::kKeep);
    changes[i] = Change::kRemove;
    RunFunctionRequest masked = Everything();
    cache::key::ClearMasked(
        *cache::key::MaskSet::Parse({mask}, cache::key::MaskRules::kAnyPath),
        &masked);
    EXPECT_EQ(text::DeterministicBytes(fields.Changed(0, changes, 1)),
              text::DeterministicBytes(masked))
        << mask;
  }
}

TEST(RequestFields, AlteringChangesNothingElse) {
  const RequestFields fields({Everything()});
  for (size_t i = 0; i < fields.fields().size(); ++i) {
    const std::string& mask = fields.fields()[i].mask;
    std::vector<Change> changes(fields.fields().size(), Change::kKeep);
    changes[i] = Change::kAlter;
    RunFunctionRequest altered = fields.Changed(0, changes, 1);
    RunFunctionRequest original = Everything();
    // An element that is an object gets another key; the list stays.
    const bool changed =
        text::DeterministicBytes(altered) != text::DeterministicBytes(original);
    EXPECT_TRUE(changed) << mask;
    const auto masks =
        *cache::key::MaskSet::Parse({mask}, cache::key::MaskRules::kAnyPath);
    cache::key::ClearMasked(masks, &altered);
    cache::key::ClearMasked(masks, &original);
    EXPECT_EQ(text::DeterministicBytes(altered),
              text::DeterministicBytes(original))
        << mask;
  }
}

TEST(RequestFields, SeedsMakeOtherValuesAndTheSameOnesAgain) {
  const RequestFields fields({Everything()});
  std::vector<Change> changes(fields.fields().size(), Change::kKeep);
  changes[IndexOf(fields, "observed.composite.resource.spec.size")] =
      Change::kAlter;
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::string bytes =
        text::DeterministicBytes(fields.Changed(0, changes, seed));
    EXPECT_EQ(bytes,
              text::DeterministicBytes(fields.Changed(0, changes, seed)));
    seen.insert(bytes);
  }
  EXPECT_GT(seen.size(), 3u);
}

google::protobuf::Value Text(const std::string& text) {
  google::protobuf::Value value;
  value.set_string_value(text);
  return value;
}

TEST(RequestFields, WhatIsNotThereIsAddedWithTheObjectsThatItIsIn) {
  const std::string c = "observed.composite.resource";
  const std::vector<Addition> additions = {
      {c, {"status", "at", "id"}, {Text("x"), Text("y")}, false},
      // Another value is on the path.
      {c, {"spec", "size", "more"}, {Text("x")}, false},
      {c, {"spec", "list", "more"}, {Text("x")}, false},
      {c, {"status", "zones", absl::nullopt}, {Text("c")}, false},
      {"observed.resources.none.resource", {"a"}, {Text("x")}, false}};
  const RequestFields fields({Everything()}, additions);
  std::vector<Change> changes(fields.fields().size(), Change::kKeep);
  const size_t id = IndexOf(fields, c + ".status.at.id");
  const Field& field = fields.fields()[id];
  EXPECT_FALSE(field.held);
  EXPECT_FALSE(field.real);
  EXPECT_EQ(field.likely, 2);
  EXPECT_EQ(fields.fields()[IndexOf(fields, c + ".status.zones.*")].likely, 1);
  EXPECT_THAT(MasksOf(fields),
              ::testing::Not(::testing::Contains(c + ".spec.size.more")));
  changes[id] = Change::kSet;
  EXPECT_TRUE(fields.HasAny(0, changes));
  for (const auto& [seed, text] :
       {std::make_pair(0, "x"), std::make_pair(1, "y")}) {
    RunFunctionRequest wanted = Everything();
    auto& status = (*wanted.mutable_observed()
                         ->mutable_composite()
                         ->mutable_resource()
                         ->mutable_fields())["status"];
    (*(*status.mutable_struct_value()->mutable_fields())["at"]
          .mutable_struct_value()
          ->mutable_fields())["id"] = Text(text);
    EXPECT_EQ(text::DeterministicBytes(fields.Changed(0, changes, seed)),
              text::DeterministicBytes(wanted));
  }
}

TEST(RequestFields, SeveralRequestsHaveTheirFieldsTogether) {
  const auto other = FromJson<RunFunctionRequest>(R"({"observed": {"composite":
      {"resource": {"spec": {"more": "x", "size": "large"}}}}})");
  const RequestFields fields({Everything(), other});
  std::vector<Change> changes(fields.fields().size(), Change::kKeep);
  changes[IndexOf(fields, "observed.composite.resource.spec.more")] =
      Change::kRemove;
  EXPECT_FALSE(fields.HasAny(0, changes));
  EXPECT_TRUE(fields.HasAny(1, changes));
  EXPECT_EQ(text::DeterministicBytes(fields.Changed(0, changes, 1)),
            text::DeterministicBytes(Everything()));
  ExpectJson(fields.Changed(1, changes, 1), R"({"observed": {"composite":
      {"resource": {"spec": {"size": "large"}}}}})");
}

}  // namespace
}  // namespace fncache::runner::probe
