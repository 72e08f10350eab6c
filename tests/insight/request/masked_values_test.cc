// SPDX-License-Identifier: Apache-2.0
#include "insight/request/masked_values.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/key_oracle.h"
#include "tests/cache/key/random_encoding.h"
#include "tests/cache/key/random_request.h"

namespace fncache::insight::request {
namespace {

namespace fn = ::apiextensions::fn::proto::v1;
using cache::key::MaskSet;

std::string FromJson(const std::string& json) {
  fn::RunFunctionRequest request;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &request).ok());
  return request.SerializeAsString();
}

class MaskedValuesTest : public ::testing::Test {
 protected:
  std::vector<uint64_t> Read(const MaskSet& masks, const std::string& bytes) {
    std::vector<uint64_t> values;
    EXPECT_TRUE(masked_.Read(masks, {bytes}, &values));
    EXPECT_EQ(values.size(), masks.canonical().size());
    return values;
  }

  MaskedValues masked_{FingerprintSecret::Random()};
};

TEST_F(MaskedValuesTest, EachMaskHasItsOwn) {
  const MaskSet masks = *MaskSet::Parse(
      {"observed.composite.resource.metadata.resourceVersion",
       "observed.composite.resource.status.conditions.*.lastTransitionTime",
       "observed.resources.*.resource.metadata.generation"});
  const auto read = [&](const std::string& version, const std::string& time,
                        const std::string& generation) {
    return Read(masks, FromJson(R"({"observed": {"composite": {"resource": {
          "metadata": {"name": "n", "resourceVersion": )" +
                                version +
                                R"(}, "status": {"conditions": [
          {"type": "A", "lastTransitionTime": "t"},
          {"type": "B", "lastTransitionTime": )" +
                                time +
                                R"(}]}}},
          "resources": {"r": {"resource": {"metadata": {"generation": )" +
                                generation + "}}}}}}"));
  };
  const auto first = read("1", "1", "1");
  for (const uint64_t value : first) EXPECT_NE(value, 0);
  EXPECT_EQ(read("1", "1", "1"), first);
  const auto version = read("2", "1", "1");
  EXPECT_NE(version[0], first[0]);
  EXPECT_EQ(version[1], first[1]);
  EXPECT_EQ(version[2], first[2]);
  const auto time = read("1", "2", "1");
  EXPECT_EQ(time[0], first[0]);
  EXPECT_NE(time[1], first[1]);
  EXPECT_EQ(time[2], first[2]);
  const auto generation = read("1", "1", "{\"deep\": [1, {}]}");
  EXPECT_EQ(generation[1], first[1]);
  EXPECT_NE(generation[2], first[2]);
}

TEST_F(MaskedValuesTest, WhatIsNotThereIsNoValue) {
  const MaskSet masks = *MaskSet::Parse({"@versions"});
  for (const uint64_t value : Read(masks, FromJson("{}"))) EXPECT_EQ(value, 0);
}

TEST_F(MaskedValuesTest, RequestsOfOneKeyHaveOtherValuesIfAndOnlyIfTheyDiffer) {
  cache::key::Random random(9);
  // The sets of which each path is one that hides something.
  const std::vector<MaskSet>& sets = cache::key::MaskSets();
  int same = 0, other = 0;
  // Protobuf's maps have another order in each process, so each run has other
  // requests, and 30 to 60 changes of masked content in 6,000.
  for (int i = 0; i < 6000 || (other <= 30 && i < 60000); ++i) {
    const MaskSet& masks = sets[2 + random.Below(3)];
    const fn::RunFunctionRequest request = cache::key::RandomRequest(&random);
    fn::RunFunctionRequest changed = request;
    // A tag is left out of every key, and is no mask's.
    cache::key::Mutate(&changed, &random);
    changed.mutable_meta()->set_tag(request.meta().tag());
    if (!request.has_meta()) changed.clear_meta();
    if (!cache::key::SameRequest(masks, request, changed)) continue;
    const bool equal = cache::key::SameMessage(request, changed);
    const auto first =
        Read(masks, Encode(request, cache::key::Style::kAnyEncoder, &random));
    const auto second =
        Read(masks, Encode(changed, cache::key::Style::kWild, &random));
    ASSERT_EQ(first == second, equal)
        << i << ": " << request.ShortDebugString() << "\n"
        << changed.ShortDebugString();
    ++(equal ? same : other);
  }
  EXPECT_GT(same, 300);
  EXPECT_GT(other, 30);
}

}  // namespace
}  // namespace fncache::insight::request
