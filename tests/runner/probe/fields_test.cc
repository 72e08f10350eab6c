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
#include "runner/text/deterministic_bytes.h"
#include "tests/runner/messages.h"

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
    EXPECT_TRUE(cache::key::MaskSet::Parse({field.mask}).ok()) << field.mask;
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
    cache::key::ClearMasked(*cache::key::MaskSet::Parse({mask}), &masked);
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
    const auto masks = *cache::key::MaskSet::Parse({mask});
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
