// The key contract over random requests: keys are equal if and only if the
// messages are.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/cache/random_request.h"
#include "tests/cache/request_data.h"

namespace fncache::cache {
namespace {

using apiextensions::fn::proto::v1::RunFunctionRequest;

// Pairs tried for each.
constexpr int kPairs = 6;

struct Count {
  int pairs = 0;
  int equal = 0;
  int fast = 0;
  int slow = 0;
};

void CheckRequest(RunFunctionRequest request, KeyChecker* checker,
                  Random* random, Count* count) {
  const std::string plain = Encode(request, Style::kPlain, random);
  const std::string wild = Encode(request, Style::kWild, random);
  for (const std::string& bytes : {plain, wild}) {
    bool fast = false;
    ASSERT_EQ(checker->CheckOne(bytes, &fast), "");
    ++(fast ? count->fast : count->slow);
  }
  RunFunctionRequest changed = request;
  Mutate(&changed, random);
  const std::string other =
      Encode(changed, random->OneIn(2) ? Style::kPlain : Style::kWild, random);
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

void CheckRandomRequests(uint64_t seed, int requests) {
  const char* other = std::getenv("FNCACHE_TEST_SEED");
  if (other != nullptr) seed = std::strtoull(other, nullptr, 10);
  Random random(seed);
  std::deque<KeyChecker> checkers;
  for (const MaskSet& masks : MaskSets()) checkers.emplace_back(masks);
  Count count;
  for (int i = 0; i < requests; ++i) {
    // Half of them without masks.
    KeyChecker& checker =
        checkers[random.OneIn(2) ? 0 : random.Below(checkers.size())];
    CheckRequest(RandomRequest(&random), &checker, &random, &count);
    if (testing::Test::HasFatalFailure()) {
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
  EXPECT_GT(count.slow, requests / 2);
}

TEST(DigestProperty, KeysAreEqualIfAndOnlyIfMessagesAre) {
  CheckRandomRequests(1, 1000);
}

TEST(DigestPropertyHeavy, KeysAreEqualIfAndOnlyIfMessagesAre) {
  CheckRandomRequests(2, 17000);
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

}  // namespace
}  // namespace fncache::cache
