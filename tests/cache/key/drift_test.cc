// SPDX-License-Identifier: Apache-2.0
// Drift is taken out of keys, and goes into the drift digest.
#include "cache/key/drift.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cache/key/digest.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"
#include "tests/cache/key/drift_oracle.h"
#include "tests/cache/key/key_checker.h"
#include "tests/cache/key/random_drift.h"
#include "tests/cache/key/random_encoding.h"
#include "tests/cache/key/random_request.h"
#include "tests/cache/key/request_data.h"
#include "tests/common/long_form.h"

namespace fncache::cache::key {
namespace {

namespace pb = google::protobuf;
using apiextensions::fn::proto::v1::Resource;
using apiextensions::fn::proto::v1::RunFunctionRequest;

TEST(DriftTime, IsWhatRfc3339SaysInUpperCase) {
  for (const char* time :
       {"2026-11-22T09:42:57Z", "2026-11-22T09:42:57.1Z",
        "2026-11-22T09:42:57.123456789Z", "2026-11-22T09:42:57+00:00",
        "2026-11-22T09:42:57.123456789-23:59", "2024-02-29T23:59:59Z",
        "0000-01-01T00:00:00Z"}) {
    EXPECT_TRUE(IsTime(time)) << time;
    EXPECT_TRUE(IsTimeByExpression(time)) << time;
  }
  for (const char* text : {"",
                           "2026-11-22",
                           "2026-11-22 09:42:57Z",
                           "2026-11-22T09:42:57",
                           "2026-11-22T09:42:57z",
                           "2026-11-22t09:42:57Z",
                           "2026-11-22T09:42:57.Z",
                           "2026-11-22T09:42:57.1234567890Z",
                           "2026-11-22T09:42:57 Z",
                           " 2026-11-22T09:42:57Z",
                           "2026-11-22T09:42:57Z ",
                           "2026-13-22T09:42:57Z",
                           "2026-00-22T09:42:57Z",
                           "2026-11-31T09:42:57Z",
                           "2026-02-29T09:42:57Z",
                           "2026-11-22T24:42:57Z",
                           "2026-11-22T09:60:57Z",
                           "2026-11-22T09:42:60Z",
                           "2026-11-22T09:42:57+0000",
                           "2026-11-22T09:42:57+24:00",
                           "2026-11-22T09:42:57+00:60",
                           "2026-11-22T09:42:5:Z",
                           "2026-11-22T09:42:57.1234567890+00:00"}) {
    EXPECT_FALSE(IsTime(text)) << text;
    EXPECT_FALSE(IsTimeByExpression(text)) << text;
  }
  Random random(36);
  int times = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = RandomTime(&random);
    ASSERT_EQ(IsTime(text), IsTimeByExpression(text)) << text;
    times += IsTime(text) ? 1 : 0;
  }
  EXPECT_GT(times, 1000);
  EXPECT_LT(times, 2900);
}

TEST(DriftVersion, HasOneToTwentyDigits) {
  EXPECT_TRUE(IsVersion("0"));
  EXPECT_TRUE(IsVersion("12345678901234567890"));
  for (const char* text :
       {"", "123456789012345678901", "1a", "-1", " 1", "1.0"}) {
    EXPECT_FALSE(IsVersion(text)) << text;
  }
}

TEST(DriftBytes, AreReadAsTheyWereWritten) {
  std::string bytes;
  const std::string large(70000, 'x');
  const std::vector<Drift> drifts = {
      {DriftSection::kComposite, DriftType::kVersion, "resourceVersion", "12"},
      {DriftSection::kRequired, DriftType::kManagedFields, "managedFields",
       large},
      {DriftSection::kComposed, DriftType::kTime, "", ""},
  };
  for (const Drift& drift : drifts) AppendDrift(drift, &bytes);
  absl::string_view rest = bytes;
  Drift drift;
  for (const Drift& expected : drifts) {
    ASSERT_TRUE(TakeDrift(&rest, &drift));
    EXPECT_EQ(drift.section, expected.section);
    EXPECT_EQ(drift.type, expected.type);
    EXPECT_EQ(drift.key, expected.key);
    EXPECT_EQ(drift.value, expected.value);
  }
  EXPECT_FALSE(TakeDrift(&rest, &drift));
}

// Makes digests with and without tuning.
class Tuned {
 public:
  Digest operator()(const RunFunctionRequest& request) {
    bytes_ = request.SerializeAsString();
    return digester_.Compute({bytes_}, &scratch_);
  }

 private:
  const Digester digester_{
      Seed{},
      {"f", "m", "g", KeySource::kContent, KeyHash::kXxh3, /*drift=*/true},
      MaskSet()};
  std::string bytes_;
  DigestScratch scratch_;
};

// The Value at a path of keys in an object.
pb::Value& At(Resource* resource, std::vector<std::string> path) {
  pb::Struct* within = resource->mutable_resource();
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    within = (*within->mutable_fields())[path[i]].mutable_struct_value();
  }
  return (*within->mutable_fields())[path.back()];
}

Resource* Composed(RunFunctionRequest* request) {
  return &(*request->mutable_observed()->mutable_resources())["bucket"];
}

TEST(DriftKey, HasAMarkInsteadOfEachDrift) {
  Tuned tuned;
  RunFunctionRequest request;
  At(Composed(&request), {"metadata", "resourceVersion"}).set_string_value("1");
  At(Composed(&request), {"status", "t"})
      .set_string_value("2026-11-22T09:42:57Z");
  const Digest first = tuned(request);
  const Key key = first.key;
  const Key drift = first.drift;
  At(Composed(&request), {"metadata", "resourceVersion"})
      .set_string_value("12345678901234567890");
  EXPECT_EQ(tuned(request).key, key);
  const Key second = tuned(request).drift;
  EXPECT_NE(second, drift);
  At(Composed(&request), {"status", "t"})
      .set_string_value("2026-11-22T09:42:57.123456+02:00");
  EXPECT_EQ(tuned(request).key, key);
  EXPECT_NE(tuned(request).drift, second);
  At(Composed(&request), {"metadata", "resourceVersion"}).set_string_value("1");
  At(Composed(&request), {"status", "t"})
      .set_string_value("2026-11-22T09:42:57Z");
  EXPECT_EQ(tuned(request).drift, drift);
}

// A request with another value instead of a drift is another request, unless
// that is a drift of the same type.
TEST(DriftKey, EverythingElseCountsAsItStands) {
  using Set = std::function<void(pb::Value*)>;
  const auto text = [](std::string what) {
    return Set([what](pb::Value* value) { value->set_string_value(what); });
  };
  const std::vector<Set> values = {
      [](pb::Value* value) { value->Clear(); },
      text(""),
      text("x"),
      text("2026-11-22"),
      [](pb::Value* value) { value->set_null_value(pb::NULL_VALUE); },
      [](pb::Value* value) { value->set_number_value(0); },
      [](pb::Value* value) { value->set_bool_value(false); },
      [](pb::Value* value) { value->mutable_struct_value(); },
      // Drift at some of the paths below, and else not.
      text("0"),
      text("2026-11-22T09:42:57Z"),
      [](pb::Value* value) { value->mutable_list_value(); },
  };
  constexpr size_t kVersion = 8;
  constexpr size_t kTime = 9;
  constexpr size_t kList = 10;
  const struct {
    std::vector<std::string> path;
    std::vector<size_t> drift;  // indices of `values`
  } cases[] = {
      {{"metadata", "resourceVersion"}, {kVersion}},
      {{"metadata", "managedFields"}, {kList}},
      {{"metadata", "creationTimestamp"}, {}},
      {{"status", "a", "resourceVersion"}, {kVersion, kTime}},
      {{"status", "a", "managedFields"}, {kTime, kList}},
      {{"status", "a", "b"}, {kTime}},
      {{"spec", "resourceVersion"}, {}},
  };
  Tuned tuned;
  for (const auto& one : cases) {
    std::vector<Key> keys;
    std::vector<bool> has_drift;
    for (const Set& set : values) {
      RunFunctionRequest request;
      set(&At(Composed(&request), one.path));
      const Digest digest = tuned(request);
      keys.push_back(digest.key);
      has_drift.push_back(!digest.drifts.empty());
    }
    {
      RunFunctionRequest absent;
      At(Composed(&absent), one.path);
      At(Composed(&absent), {one.path.begin(), one.path.end() - 1})
          .mutable_struct_value()
          ->clear_fields();
      keys.push_back(tuned(absent).key);
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        EXPECT_NE(keys[i], keys[j]) << one.path.back() << ' ' << i << ' ' << j;
      }
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const bool expected =
          std::find(one.drift.begin(), one.drift.end(), i) != one.drift.end();
      EXPECT_EQ(has_drift[i], expected) << one.path.back() << ' ' << i;
    }
  }
}

// Sizes decide which instructions write an entry. They change with drift, and
// the key does not.
TEST(DriftKey, IsTheSameWhateverSizeTheDriftHas) {
  Tuned tuned;
  std::vector<size_t> sizes;
  for (size_t size = 0; size < 300; ++size) sizes.push_back(size);
  for (const size_t large : {16384, 65536}) {
    for (size_t size = large - 110; size < large + 20; ++size) {
      sizes.push_back(size);
    }
  }
  for (const size_t size : sizes) {
    std::vector<Digest> digests;
    for (const bool other : {false, true}) {
      RunFunctionRequest request;
      const std::string time =
          other ? "2026-11-22T09:42:57.123456+02:00" : "2026-11-22T09:42:57Z";
      // In texts of 100 bytes, as longer ones are rare.
      const auto fill = [&](pb::ListValue* list) {
        for (size_t left = size; left > 0;
             left -= std::min<size_t>(left, 100)) {
          list->add_values()->set_string_value(
              std::string(std::min<size_t>(left, 100), 'x'));
        }
      };
      At(Composed(&request), {"metadata", "managedFields"})
          .mutable_list_value();
      if (other) {
        fill(At(Composed(&request), {"metadata", "managedFields"})
                 .mutable_list_value());
      }
      At(Composed(&request), {"status", "inner", "t"}).set_string_value(time);
      fill(At(Composed(&request), {"status", "inner", "fill"})
               .mutable_list_value());
      pb::Struct* const element = At(Composed(&request), {"status", "list"})
                                      .mutable_list_value()
                                      ->add_values()
                                      ->mutable_struct_value();
      (*element->mutable_fields())["t"].set_string_value(time);
      fill((*element->mutable_fields())["fill"].mutable_list_value());
      digests.push_back(tuned(request));
    }
    ASSERT_TRUE(digests[0].keyed && digests[1].keyed);
    ASSERT_FALSE(digests[0].reencoded || digests[1].reencoded) << size;
    ASSERT_EQ(digests[0].key, digests[1].key) << size;
    ASSERT_NE(digests[0].drift, digests[1].drift) << size;
  }
}

TEST(DriftKey, IsNeverThatWithoutTuning) {
  Tuned tuned;
  const Digester off(Seed{}, {"f", "m", "g"}, MaskSet());
  DigestScratch scratch;
  const RunFunctionRequest empty;
  EXPECT_NE(tuned(empty).key, off.Compute({""}, &scratch).key);
}

TEST(DriftKey, TheCompositesStatusIsNoDrift) {
  Tuned tuned;
  for (const char* key : {"resourceVersion", "t"}) {
    RunFunctionRequest request;
    At(request.mutable_observed()->mutable_composite(), {"status", key})
        .set_string_value("2026-11-22T09:42:57Z");
    EXPECT_TRUE(tuned(request).drifts.empty());
    At(request.mutable_observed()->mutable_composite(),
       {"metadata", "resourceVersion"})
        .set_string_value("1");
    EXPECT_FALSE(tuned(request).drifts.empty());
  }
}

struct Count {
  int equal = 0;
  int other = 0;
  int fast = 0;
  int slow = 0;
};

void CheckRequest(RunFunctionRequest request, KeyChecker* checker,
                  Random* random, Count* count) {
  AddDrift(&request, random);
  const std::string plain = Encode(request, Style::kPlain, random);
  const std::string wild = Encode(request, Style::kWild, random);
  const std::string any = Encode(request, Style::kAnyEncoder, random);
  bool fast = false;
  ASSERT_EQ(checker->CheckOne(plain, &fast), "");
  ASSERT_TRUE(fast) << request.ShortDebugString();
  for (const std::string& bytes : {any, wild}) {
    ASSERT_EQ(checker->CheckOne(bytes, &fast), "");
    ++(fast ? count->fast : count->slow);
  }
  RunFunctionRequest drifted = request;
  for (size_t i = random->Below(4); i > 0; --i) MutateDrift(&drifted, random);
  RunFunctionRequest changed = drifted;
  Mutate(&changed, random);
  for (const RunFunctionRequest& other : {request, drifted, changed}) {
    for (const std::string& bytes : {plain, wild}) {
      bool equal = false;
      ASSERT_EQ(checker->CheckPair(bytes, Encode(other, Style::kWild, random),
                                   &equal),
                "");
      ++(equal ? count->equal : count->other);
    }
  }
}

void CheckRandomRequests(uint64_t seed, int requests) {
  Random random(seed);
  std::deque<KeyChecker> checkers;
  for (const MaskSet& masks : MaskSets()) {
    checkers.emplace_back(masks, KeySource::kContent, KeyHash::kXxh3, true);
  }
  const auto masks = [](const std::vector<std::string>& paths) {
    return MaskSet::Parse(paths).value();
  };
  for (const KeyHash hash : {KeyHash::kXxh3, KeyHash::kSha256}) {
    checkers.emplace_back(masks({"@versions", "@times"}), KeySource::kContent,
                          hash, true);
    checkers.emplace_back(
        masks({"observed.resources.*.resource.metadata.managedFields.*.time",
               "observed.resources.*.resource.status.*.resourceVersion",
               "observed.resources.*.resource.status.conditions.*"}),
        KeySource::kContent, hash, true);
  }
  Count count;
  for (int i = 0; i < requests; ++i) {
    KeyChecker& checker =
        checkers[random.OneIn(2) ? 0 : random.Below(checkers.size())];
    CheckRequest(RandomRequest(&random), &checker, &random, &count);
    if (::testing::Test::HasFatalFailure()) {
      FAIL() << "request " << i << " of seed " << seed;
    }
  }
  std::printf("%d pairs with one key, %d with two; %d fast, %d slow\n",
              count.equal, count.other, count.fast, count.slow);
  EXPECT_GT(count.equal, requests);
  EXPECT_GT(count.other, requests / 2);
  EXPECT_GT(count.fast, requests / 4);
  EXPECT_GT(count.slow, requests / 4);
}

TEST(DriftProperty, KeysAndDigestsAreTheModels) {
  CheckRandomRequests(36, testing::ShortOrLong(600, 60'000));
}

}  // namespace
}  // namespace fncache::cache::key
