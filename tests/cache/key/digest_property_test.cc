// SPDX-License-Identifier: Apache-2.0
// The key contract over random requests: keys are equal if and only if the
// messages are; with `key: tag`, if and only if the tags are, and the messages
// without what these stand for.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/key_checker.h"
#include "tests/cache/key/key_oracle.h"
#include "tests/cache/key/random_encoding.h"
#include "tests/cache/key/random_request.h"
#include "tests/cache/key/request_data.h"
#include "tests/common/long_form.h"

namespace fncache::cache::key {
namespace {

using apiextensions::fn::proto::v1::RunFunctionRequest;

// Pairs tried for each.
constexpr int kPairs = 7;

struct Count {
  int pairs = 0;
  int equal = 0;
  int fast = 0;  // by tag: keyed by it
  int slow = 0;  // by tag: keyed by content
};

void CheckRequest(RunFunctionRequest request, KeyChecker* checker,
                  Random* random, Count* count) {
  const std::string plain = Encode(request, Style::kPlain, random);
  const std::string wild = Encode(request, Style::kWild, random);
  const std::string any = Encode(request, Style::kAnyEncoder, random);
  // Both encodings take the fast path.
  for (const std::string& bytes : {plain, any}) {
    bool fast = false;
    ASSERT_EQ(checker->CheckOne(bytes, &fast), "");
    ASSERT_TRUE(fast) << request.ShortDebugString();
    ++count->fast;
  }
  bool fast = false;
  ASSERT_EQ(checker->CheckOne(wild, &fast), "");
  ++(fast ? count->fast : count->slow);
  RunFunctionRequest changed = request;
  Mutate(&changed, random);
  const std::string other = Encode(
      changed, random->OneIn(2) ? Style::kAnyEncoder : Style::kWild, random);
  RunFunctionRequest retagged = request;
  retagged.mutable_meta()->set_tag("another tag");
  const RunFunctionRequest unrelated = RandomRequest(random);
  const std::string second = Encode(unrelated, Style::kWild, random);
  const struct {
    std::string a;
    std::string b;
    bool must_be_equal;
  } pairs[kPairs] = {
      {plain, wild, true},
      {any, Encode(request, Style::kAnyEncoder, random), true},
      {plain, Encode(request, Style::kPlain, random), true},
      {wild, other, false},
      {plain, Encode(retagged, Style::kWild, random), request.has_meta()},
      // Two requests in one are their merger.
      {wild + second, plain + Encode(unrelated, Style::kPlain, random), false},
      {plain + other, other + plain, false},
  };
  for (const auto& pair : pairs) {
    bool equal = false;
    ASSERT_EQ(checker->CheckPair(pair.a, pair.b, &equal), "");
    if (pair.must_be_equal) {
      ASSERT_TRUE(equal) << request.ShortDebugString();
    }
    ++count->pairs;
    count->equal += equal ? 1 : 0;
  }
}

uint64_t SeedOr(uint64_t seed) {
  const char* other = std::getenv("FNCACHE_TEST_SEED");
  return other != nullptr ? std::strtoull(other, nullptr, 10) : seed;
}

void CheckRandomRequests(uint64_t seed, int requests) {
  seed = SeedOr(seed);
  Random random(seed);
  std::deque<KeyChecker> checkers;
  for (const MaskSet& masks : MaskSets()) checkers.emplace_back(masks);
  for (const MaskSet& masks : {MaskSets()[0], MaskSets()[3]}) {
    checkers.emplace_back(masks, KeySource::kContent, KeyHash::kSha256);
  }
  Count count;
  for (int i = 0; i < requests; ++i) {
    // Half of them without masks.
    KeyChecker& checker =
        checkers[random.OneIn(2) ? 0 : random.Below(checkers.size())];
    CheckRequest(RandomRequest(&random), &checker, &random, &count);
    if (::testing::Test::HasFatalFailure()) {
      FAIL() << "request " << i << " of seed " << seed;
    }
  }
  std::printf(
      "%d pairs, %d of them equal; %d requests by the fast path, %d by "
      "the slow one\n",
      count.pairs, count.equal, count.fast, count.slow);
  EXPECT_EQ(count.pairs, requests * kPairs);
  // Both outcomes and both paths are well tried.
  EXPECT_GT(count.equal, count.pairs / 3);
  EXPECT_GT(count.pairs - count.equal, count.pairs / 10);
  EXPECT_GT(count.fast, requests / 2);
  // By chance 289 to 329 of 800: the order of maps differs in each process.
  EXPECT_GT(count.slow, requests / 4);
}

// As CheckRequest, with `key: tag`.
void CheckTagged(const RunFunctionRequest& request, KeyChecker* checker,
                 Random* random, Count* count) {
  const std::string& tag = request.meta().tag();
  const bool by_tag =
      tag.size() == 64 &&
      tag.find_first_not_of("0123456789abcdefABCDEF") == tag.npos;
  ++(by_tag ? count->fast : count->slow);
  const std::string plain = Encode(request, Style::kPlain, random);
  const std::string wild = Encode(request, Style::kWild, random);
  // Bytes that cannot be read may be skipped, in front and behind.
  const std::string skipped =
      SkippedByTag(random) + wild + SkippedByTag(random);
  for (const std::string& bytes : {plain, wild, skipped}) {
    ASSERT_EQ(checker->CheckOne(bytes), "");
  }
  RunFunctionRequest changed = request;
  Mutate(&changed, random);
  const std::string other = Encode(
      changed, random->OneIn(2) ? Style::kAnyEncoder : Style::kWild, random);
  RunFunctionRequest retagged = request;
  retagged.mutable_meta()->set_tag(std::string(64, 'd'));
  RunFunctionRequest stripped = request;
  stripped.clear_observed();
  stripped.clear_desired();
  stripped.clear_input();
  stripped.clear_credentials();
  const RunFunctionRequest unrelated = RandomRequest(random);
  const std::string second = Encode(unrelated, Style::kWild, random);
  const struct {
    std::string a;
    std::string b;
    bool must_be_equal;
  } pairs[kPairs] = {
      {plain, wild, true},
      {Encode(request, Style::kAnyEncoder, random), plain, true},
      {plain, Encode(stripped, Style::kWild, random), by_tag},
      {skipped, other, false},
      {plain, Encode(retagged, Style::kWild, random), false},
      {wild + SkippedByTag(random) + second,
       plain + Encode(unrelated, Style::kPlain, random), false},
      {plain + other, other + plain, false},
  };
  for (const auto& pair : pairs) {
    bool equal = false;
    ASSERT_EQ(checker->CheckPair(pair.a, pair.b, &equal), "");
    if (pair.must_be_equal) {
      ASSERT_TRUE(equal) << request.ShortDebugString();
    }
    ++count->pairs;
    count->equal += equal ? 1 : 0;
  }
}

void CheckRandomTags(uint64_t seed, int requests) {
  seed = SeedOr(seed);
  Random random(seed);
  KeyChecker xxh3(MaskSet(), KeySource::kTag, KeyHash::kXxh3);
  KeyChecker sha256(MaskSet(), KeySource::kTag, KeyHash::kSha256);
  Count count;
  for (int i = 0; i < requests; ++i) {
    RunFunctionRequest request = RandomRequest(&random);
    if (random.OneIn(2)) {
      request.mutable_meta()->set_tag(
          std::string(64, random.OneIn(2) ? 'a' : 'A'));
    }
    CheckTagged(request, random.OneIn(2) ? &xxh3 : &sha256, &random, &count);
    if (::testing::Test::HasFatalFailure()) {
      FAIL() << "request " << i << " of seed " << seed;
    }
  }
  std::printf(
      "%d pairs, %d of them equal; %d requests by their tag, %d by their "
      "content\n",
      count.pairs, count.equal, count.fast, count.slow);
  EXPECT_EQ(count.pairs, requests * kPairs);
  EXPECT_GT(count.equal, count.pairs / 4);
  EXPECT_GT(count.pairs - count.equal, count.pairs / 4);
  EXPECT_GT(count.fast, requests / 4);
  EXPECT_GT(count.slow, requests / 4);
}

TEST(DigestProperty, KeysAreEqualIfAndOnlyIfMessagesAre) {
  CheckRandomRequests(1, fncache::testing::FewerSanitized(800));
}

TEST(DigestProperty, TagKeysAreEqualIfAndOnlyIfTagsAndTheRestAre) {
  CheckRandomTags(3, fncache::testing::FewerSanitized(800));
}

TEST(DigestPropertyHeavy, TagKeysAreEqualIfAndOnlyIfTagsAndTheRestAre) {
  CheckRandomTags(4, fncache::testing::ShortOrLong(1500, 17000));
}

TEST(DigestPropertyHeavy, KeysAreEqualIfAndOnlyIfMessagesAre) {
  CheckRandomRequests(2, fncache::testing::ShortOrLong(1500, 17000));
}

// Cut off at every length, and with one byte in four gone: CheckOne keeps what
// is left on the heap, of exactly its size.
TEST(DigestProperty, RequestsCutOffAnywhereAreKeyedAsProtobufParsesThem) {
  Random random(SeedOr(6));
  std::deque<KeyChecker> checkers;
  for (const MaskSet& masks : MaskSets()) checkers.emplace_back(masks);
  checkers.emplace_back(MaskSet(), KeySource::kTag);
  std::vector<std::string> requests;
  for (std::string& bytes :
       RequestsBelow(std::filesystem::path(FNCACHE_SOURCE_DIR) / "tests" /
                     "data" / "recorded")) {
    if (bytes.size() < 1100) requests.push_back(std::move(bytes));
  }
  ASSERT_FALSE(requests.empty());
  while (requests.size() < 20) {
    std::string bytes =
        Encode(RandomRequest(&random),
               random.OneIn(3) ? Style::kWild : Style::kAnyEncoder, &random);
    if (bytes.size() > 300 && bytes.size() < 900) {
      requests.push_back(std::move(bytes));
    }
  }
  size_t fast_ones = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const absl::string_view bytes = requests[i];
    KeyChecker& checker = checkers[i % checkers.size()];
    for (size_t at = 0; at < bytes.size(); ++at) {
      bool fast = false;
      ASSERT_EQ(checker.CheckOne(bytes.substr(0, at), &fast), "")
          << "request " << i << " up to " << at;
      fast_ones += fast ? 1 : 0;
      if (at % 4 != i % 4) continue;
      ASSERT_EQ(checker.CheckOne(
                    absl::StrCat(bytes.substr(0, at), bytes.substr(at + 1))),
                "")
          << "request " << i << " without " << at;
    }
  }
  EXPECT_GT(fast_ones, requests.size());
}

TEST(DigestProperty, RecordedRequestsChangedInOneFieldHaveOtherKeys) {
  const std::vector<std::string> recorded = RecordedRequests();
  if (recorded.empty()) GTEST_SKIP() << DataFolder() << " is absent";
  Random random(2);
  KeyChecker checker(MaskSets()[0]);
  int different = 0;
  for (size_t i = 0; i < recorded.size(); i += 2) {
    RunFunctionRequest request;
    ASSERT_TRUE(ProtobufParses(recorded[i], &request));
    EXPECT_EQ(
        checker.CheckPair(recorded[i], Encode(request, Style::kWild, &random)),
        "");
    RunFunctionRequest changed = request;
    Mutate(&changed, &random);
    bool equal = true;
    EXPECT_EQ(checker.CheckPair(
                  recorded[i], Encode(changed, Style::kPlain, &random), &equal),
              "");
    different += equal ? 0 : 1;
  }
  EXPECT_GT(different, 0);
}

TEST(DigestProperty, RecordedRequestsByTagStandForTheirRestOnly) {
  Random random(5);
  KeyChecker checker(MaskSet(), KeySource::kTag, KeyHash::kXxh3);
  const std::vector<std::string> recorded =
      RequestsBelow(std::filesystem::path(FNCACHE_SOURCE_DIR) / "tests" /
                    "data" / "recorded");
  int equal_changes = 0;
  int other_changes = 0;
  for (const std::string& bytes : recorded) {
    RunFunctionRequest request;
    ASSERT_TRUE(ProtobufParses(bytes, &request));
    for (int i = 0; i < fncache::testing::FewerSanitized(40); ++i) {
      RunFunctionRequest changed = request;
      Mutate(&changed, &random);
      bool equal = false;
      EXPECT_EQ(checker.CheckPair(bytes, Encode(changed, Style::kWild, &random),
                                  &equal),
                "");
      ++(equal ? equal_changes : other_changes);
    }
  }
  EXPECT_GT(equal_changes, 0);
  EXPECT_GT(other_changes, 0);
}

}  // namespace
}  // namespace fncache::cache::key
