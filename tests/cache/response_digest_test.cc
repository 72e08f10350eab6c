// SPDX-License-Identifier: Apache-2.0
#include "cache/response_digest.h"

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/random_encoding.h"
#include "tests/cache/key/random_request.h"
#include "tests/cache/response_digest_checker.h"
#include "tests/common/long_form.h"

namespace fncache::cache {
namespace {

using key::Encode;
using key::Random;
using key::Style;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A meta that may be anywhere in a response.
std::string SomeMeta(Random* random) {
  v1::RunFunctionResponse response;
  if (random->OneIn(3)) return "";
  response.mutable_meta()->set_tag(random->OneIn(2) ? "a" : "another");
  if (random->OneIn(2)) {
    response.mutable_meta()->mutable_ttl()->set_seconds(
        static_cast<int64_t>(random->Below(100)));
  }
  return response.SerializeAsString();
}

void CheckRandomResponses(uint64_t seed, int responses) {
  Random random(seed);
  ResponseDigestChecker checker;
  int pairs = 0, equal_pairs = 0;
  for (int i = 0; i < responses; ++i) {
    SCOPED_TRACE(::testing::Message()
                 << "response " << i << " of seed " << seed);
    const v1::RunFunctionResponse response = key::RandomResponse(&random);
    v1::RunFunctionResponse changed = response;
    key::Mutate(&changed, &random);
    const v1::RunFunctionResponse unrelated = key::RandomResponse(&random);
    const std::string plain = Encode(response, Style::kPlain, &random);
    const std::string any = Encode(response, Style::kAnyEncoder, &random);
    const std::string wild = Encode(response, Style::kWild, &random);
    const std::string other = Encode(
        changed, random.OneIn(2) ? Style::kAnyEncoder : Style::kWild, &random);
    const std::string second = Encode(unrelated, Style::kWild, &random);
    // Both encodings take the fast path.
    for (const std::string& bytes : {plain, any}) {
      bool fast = false;
      ASSERT_EQ(checker.CheckOne(bytes, &fast), "");
      ASSERT_TRUE(fast) << response.ShortDebugString();
    }
    for (const std::string& bytes : {wild, other, second}) {
      ASSERT_EQ(checker.CheckOne(bytes), "");
    }
    const struct {
      std::string a;
      std::string b;
      bool must_be_equal;
    } all[] = {
        {plain, wild, true},
        {any, wild, true},
        {any, SomeMeta(&random) + plain + SomeMeta(&random), true},
        {SomeMeta(&random) + wild, SomeMeta(&random) + any, true},
        {plain, other, false},
        {wild, other, false},
        // Two responses in one are their merger.
        {wild + SomeMeta(&random) + second,
         plain + Encode(unrelated, Style::kPlain, &random), false},
        {plain + other, other + plain, false},
    };
    for (const auto& pair : all) {
      bool equal = false;
      ASSERT_EQ(checker.CheckPair(pair.a, pair.b, &equal), "");
      if (pair.must_be_equal) {
        ASSERT_TRUE(equal) << response.ShortDebugString();
      }
      ++pairs;
      equal_pairs += equal ? 1 : 0;
    }
  }
  // Both outcomes are well tried.
  EXPECT_GT(equal_pairs, pairs / 2);
  EXPECT_GT(pairs - equal_pairs, pairs / 8);
}

TEST(ResponseDigestProperty, DigestsAreEqualIfAndOnlyIfMessagesAre) {
  CheckRandomResponses(1, fncache::testing::FewerSanitized(1600));
}

TEST(ResponseDigestPropertyHeavy, DigestsAreEqualIfAndOnlyIfMessagesAre) {
  CheckRandomResponses(2, fncache::testing::ShortOrLong(3000, 30000));
}

TEST(ResponseDigest, AnyBytesAreReadableIfAndOnlyIfProtobufReadsThem) {
  Random random(3);
  ResponseDigestChecker checker;
  int readable = 0, refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string bytes =
        Encode(key::RandomResponse(&random), Style::kWild, &random);
    if (bytes.empty()) continue;
    for (size_t flips = 1 + random.Below(3); flips > 0; --flips) {
      bytes[random.Below(bytes.size())] ^=
          static_cast<char>(1 << random.Below(8));
    }
    ASSERT_EQ(checker.CheckOne(bytes), "") << i;
    ++(checker.Compute(bytes).readable ? readable : refused);
  }
  EXPECT_GT(readable, 500);
  EXPECT_GT(refused, 500);
}

TEST(ResponseDigest, SaysWhichFieldsDiffer) {
  v1::RunFunctionResponse a;
  a.add_results()->set_message("x");
  a.mutable_desired()->mutable_composite()->set_ready(v1::READY_TRUE);
  v1::RunFunctionResponse b = a;
  ResponseDigestChecker checker;
  const auto differing = [&] {
    return ResponseDigester::FieldsDiffering(
        checker.Compute(a.SerializeAsString()),
        checker.Compute(b.SerializeAsString()));
  };
  EXPECT_THAT(differing(), IsEmpty());
  b.mutable_meta()->set_tag("meta does not count");
  EXPECT_THAT(differing(), IsEmpty());
  b.add_results();
  b.mutable_output();
  EXPECT_THAT(differing(), ElementsAre("results", "output"));
  b.GetReflection()->MutableUnknownFields(&b)->AddVarint(77, 1);
  EXPECT_THAT(differing(), ElementsAre("results", "output", "?"));
}

TEST(ResponseDigest, TwoDigestersHaveNothingInCommon) {
  ResponseDigestChecker one, another;
  EXPECT_NE(one.Compute("").digest, another.Compute("").digest);
  EXPECT_TRUE(one.Compute("").readable);
}

}  // namespace
}  // namespace fncache::cache
