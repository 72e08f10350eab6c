// SPDX-License-Identifier: Apache-2.0
#include "proxy/serving/mask_use.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::proxy::serving {
namespace {

using cache::key::MaskNode;
using cache::key::MaskSet;
using ::testing::IsEmpty;

MaskSet Masks(const std::vector<std::string>& paths) {
  auto masks = MaskSet::Parse(paths);
  EXPECT_TRUE(masks.ok()) << masks.status();
  return *std::move(masks);
}

// As a digest of a request that has this field does.
void Match(const MaskSet& masks, const std::vector<std::string>& path) {
  const MaskNode* node = masks.root();
  for (const std::string& name : path) {
    ASSERT_NE(node, nullptr);
    node = node->Find(name);
  }
  ASSERT_NE(node, nullptr);
  EXPECT_TRUE(node->LeavesOut());
}

TEST(MaskUseTest, WithoutMasksThereIsNone) {
  EXPECT_THAT(UseOfMasks(MaskSet()), IsEmpty());
}

TEST(MaskUseTest, APathIsInUseOnceItHasMatched) {
  const MaskSet masks = Masks({"context.b", "context.a"});
  Match(masks, {"context", "b"});
  const auto uses = UseOfMasks(masks);
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].mask, "context.a");
  EXPECT_EQ(uses[0].paths, 1u);
  EXPECT_EQ(uses[0].matched, 0u);
  EXPECT_EQ(uses[1].mask, "context.b");
  EXPECT_EQ(uses[1].matched, 1u);
}

TEST(MaskUseTest, ANamedSetStandsForItsPaths) {
  const MaskSet masks = Masks({"context.a", "@versions"});
  Match(masks,
        {"observed", "composite", "resource", "metadata", "resourceVersion"});
  const auto uses = UseOfMasks(masks);
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].mask, "@versions");
  EXPECT_EQ(uses[0].paths, Masks({"@versions"}).canonical().size());
  EXPECT_EQ(uses[0].matched, 1u);
  EXPECT_EQ(uses[1].mask, "context.a");
}

}  // namespace
}  // namespace fncache::proxy::serving
