// SPDX-License-Identifier: Apache-2.0
// The benchmark's requests are what they claim to be: of the make of real ones,
// one message in every encoding, of as many keys as counters.
#include "bench/request_generator.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/load_workload.h"
#include "bench/request_encoding.h"
#include "cache/key/digest.h"
#include "cache/key/drift.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"

namespace fncache::bench {
namespace {

namespace v1 = ::apiextensions::fn::proto::v1;
using ::google::protobuf::Struct;
using ::google::protobuf::Value;
using ::google::protobuf::util::MessageDifferencer;
using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Counts what a message is made of.
struct Make {
  size_t bytes = 0;
  size_t resources = 0;  // map entries of states
  size_t structs = 0;
  size_t entries = 0;  // of structs
  size_t lists = 0;
  size_t elements = 0;
  size_t numbers = 0;
  size_t bools = 0;
  size_t depth = 0;
  std::vector<size_t> key_lengths;
  std::vector<size_t> text_lengths;

  void Add(const Struct& object, size_t level) {
    ++structs;
    depth = std::max(depth, level);
    for (const auto& [key, value] : object.fields()) {
      ++entries;
      key_lengths.push_back(key.size());
      Add(value, level);
    }
  }
  void Add(const Value& value, size_t level) {
    switch (value.kind_case()) {
      case Value::kStructValue:
        return Add(value.struct_value(), level + 1);
      case Value::kListValue:
        ++lists;
        for (const Value& element : value.list_value().values()) {
          ++elements;
          Add(element, level + 1);
        }
        return;
      case Value::kStringValue:
        return text_lengths.push_back(value.string_value().size());
      case Value::kNumberValue:
        ++numbers;
        return;
      case Value::kBoolValue:
        ++bools;
        return;
      default:
        return;
    }
  }
  void Add(const v1::State& state) {
    Add(state.composite().resource(), 1);
    for (const auto& [key, resource] : state.resources()) {
      ++resources;
      Add(resource.resource(), 1);
    }
  }
};

Make MakeOf(const Request& request) {
  Make make;
  make.bytes = request.ByteSizeLong();
  make.Add(request.observed());
  make.Add(request.desired());
  make.Add(request.context(), 1);
  return make;
}

Make MakeOf(const Answer& answer) {
  Make make;
  make.bytes = answer.ByteSizeLong();
  make.Add(answer.desired());
  make.Add(answer.context(), 1);
  return make;
}

void ExpectNear(size_t got, size_t real, double share, const char* what) {
  EXPECT_GE(static_cast<double>(got), static_cast<double>(real) * (1 - share))
      << what;
  EXPECT_LE(static_cast<double>(got), static_cast<double>(real) * (1 + share))
      << what;
}

// Mean, and the lengths at every tenth of the sorted list, within a character
// (two at the ends, where a single text decides).
void ExpectSameLengths(std::vector<size_t> got, std::vector<size_t> real,
                       const char* what) {
  const auto mean = [](const std::vector<size_t>& lengths) {
    double sum = 0;
    for (const size_t length : lengths) sum += static_cast<double>(length);
    return sum / static_cast<double>(lengths.size());
  };
  EXPECT_NEAR(mean(got), mean(real), 0.25) << what;
  std::sort(got.begin(), got.end());
  std::sort(real.begin(), real.end());
  for (int tenth = 0; tenth <= 10; ++tenth) {
    const auto at = [tenth](const std::vector<size_t>& lengths) {
      return static_cast<double>(lengths[(lengths.size() - 1) * tenth / 10]);
    };
    EXPECT_NEAR(at(got), at(real), tenth % 10 == 0 ? 2 : 1)
        << what << ", tenth " << tenth;
  }
}

void ExpectSameMake(const Make& got, const Make& real) {
  ExpectNear(got.bytes, real.bytes, 0.03, "bytes");
  ExpectNear(got.resources, real.resources, 0, "resources");
  ExpectNear(got.structs, real.structs, 0.01, "structs");
  ExpectNear(got.entries, real.entries, 0.01, "entries");
  ExpectNear(got.lists, real.lists, 0.01, "lists");
  ExpectNear(got.elements, real.elements, 0.02, "elements");
  ExpectNear(got.numbers, real.numbers, 0.02, "numbers");
  ExpectNear(got.bools, real.bools, 0.01, "bools");
  EXPECT_EQ(got.depth, real.depth);
  ExpectSameLengths(got.key_lengths, real.key_lengths, "keys");
  ExpectSameLengths(got.text_lengths, real.text_lengths, "texts");
}

std::filesystem::path Requests() {
  const auto all = std::filesystem::path(FNCACHE_SOURCE_DIR) / ".." / "shared" /
                   "data" / "requests";
  return std::filesystem::exists(all)
             ? all
             : std::filesystem::path(FNCACHE_SOURCE_DIR) / "tests" / "data" /
                   "requests";
}

constexpr Shape kRealShapes[] = {Shape::k4K, Shape::k17K, Shape::k130K,
                                 Shape::k1M};

TEST(RequestGenerator, RequestsAreMadeAsRealOnesAre) {
  size_t compared = 0;
  for (const Shape shape : kRealShapes) {
    SCOPED_TRACE(ShapeName(shape));
    const auto path = Requests() / absl::StrCat(ShapeName(shape), ".req.bin");
    if (!std::filesystem::exists(path)) continue;  // 1m is not copied
    Request real;
    ASSERT_TRUE(real.ParseFromString(ReadFile(path)));
    const Make real_make = MakeOf(real);
    for (uint64_t number = 0; number < (shape == Shape::k1M ? 4 : 64);
         ++number) {
      SCOPED_TRACE(number);
      ExpectSameMake(MakeOf(MakeRequest(shape, 1, number)), real_make);
    }
    ++compared;
  }
  EXPECT_GE(compared, 3u);
}

TEST(RequestGenerator, TheLargeShapeHasTheEntriesOfARealRequest) {
  const Make make = MakeOf(MakeRequest(Shape::k130K, 7, 3));
  EXPECT_NEAR(static_cast<double>(make.entries), 5200, 52);
  EXPECT_NEAR(static_cast<double>(make.structs), 1500, 15);
}

TEST(RequestGenerator, SmallOnesWeighSome300Bytes) {
  EXPECT_THAT(MakeRequest(Shape::kSmall, 1, 0).ByteSizeLong(),
              AllOf(Ge(280u), Le(320u)));
  const Answer answer = MakeAnswer(AnswerShape::kSmall, 1);
  EXPECT_THAT(answer.ByteSizeLong() - answer.meta().ByteSizeLong(),
              AllOf(Ge(290u), Le(330u)));
}

TEST(RequestGenerator, TheAnswerIsMadeAsTheRealOne) {
  const auto path = std::filesystem::path(FNCACHE_SOURCE_DIR) / ".." /
                    "shared" / "data" / "requests" / "13k.rsp.bin";
  Answer real;
  if (std::filesystem::exists(path)) {
    ASSERT_TRUE(real.ParseFromString(ReadFile(path)));
    for (uint64_t seed = 0; seed < 16; ++seed) {
      ExpectSameMake(MakeOf(MakeAnswer(AnswerShape::k13K, seed)), MakeOf(real));
    }
  }
  EXPECT_THAT(MakeAnswer(AnswerShape::k13K, 1).ByteSizeLong(),
              AllOf(Ge(12700u), Le(13500u)));
}

TEST(RequestGenerator, TheAnswersTtlIsWhatWasAsked) {
  EXPECT_EQ(MakeAnswer(AnswerShape::k13K, 1).meta().ttl().seconds(), 3600);
  const Answer odd =
      MakeAnswer(AnswerShape::kSmall, 1, absl::Milliseconds(1500));
  EXPECT_EQ(odd.meta().ttl().seconds(), 1);
  EXPECT_EQ(odd.meta().ttl().nanos(), 500'000'000);
  EXPECT_TRUE(MakeAnswer(AnswerShape::kSmall, 1, absl::ZeroDuration())
                  .meta()
                  .has_ttl());
  EXPECT_FALSE(
      MakeAnswer(AnswerShape::kSmall, 1, absl::nullopt).meta().has_ttl());
}

TEST(RequestGenerator, ASeedNamesItsMessagesForGood) {
  EXPECT_TRUE(MessageDifferencer::Equals(MakeRequest(Shape::k17K, 5, 2),
                                         MakeRequest(Shape::k17K, 5, 2)));
  EXPECT_EQ(Encode(MakeRequest(Shape::k17K, 5, 2), 3).bytes,
            Encode(MakeRequest(Shape::k17K, 5, 2), 3).bytes);
  EXPECT_FALSE(MessageDifferencer::Equals(MakeRequest(Shape::k17K, 5, 2),
                                          MakeRequest(Shape::k17K, 6, 2)));
  EXPECT_FALSE(MessageDifferencer::Equals(MakeRequest(Shape::k17K, 5, 2),
                                          MakeRequest(Shape::k17K, 5, 3)));
}

TEST(RequestEncoding, EveryOrderIsTheSameMessageOfTheSameLength) {
  for (const Shape shape : {Shape::kSmall, Shape::k4K, Shape::k130K}) {
    const Request request = MakeRequest(shape, 1, 0);
    std::set<std::string> seen;
    for (uint64_t order = 0; order < 16; ++order) {
      const std::string bytes = EncodeShuffled(request, order);
      EXPECT_EQ(bytes.size(), request.ByteSizeLong());
      seen.insert(bytes);
      Request parsed;
      ASSERT_TRUE(parsed.ParseFromString(bytes));
      EXPECT_TRUE(MessageDifferencer::Equals(parsed, request));
    }
    EXPECT_GE(seen.size(), shape == Shape::kSmall ? 10u : 16u);
  }
}

// All fields that the protocol has, as real traffic uses them.
TEST(RequestEncoding, RecordedMessagesKeepEverything) {
  size_t requests = 0;
  size_t answers = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(
           std::filesystem::path(FNCACHE_SOURCE_DIR) / "tests" / "data" /
           "recorded")) {
    const std::string name = file.path().filename();
    if (name.size() < 8 || name.substr(name.size() - 4) != ".bin") continue;
    SCOPED_TRACE(file.path());
    if (name.substr(name.size() - 8) == ".req.bin") {
      Request real;
      Request parsed;
      ASSERT_TRUE(real.ParseFromString(ReadFile(file.path())));
      ASSERT_TRUE(parsed.ParseFromString(EncodeShuffled(real, requests)));
      EXPECT_TRUE(MessageDifferencer::Equals(parsed, real));
      ++requests;
    } else {
      Answer real;
      Answer parsed;
      ASSERT_TRUE(real.ParseFromString(ReadFile(file.path())));
      ASSERT_TRUE(parsed.ParseFromString(EncodeShuffled(real, answers)));
      EXPECT_TRUE(MessageDifferencer::Equals(parsed, real));
      ++answers;
    }
  }
  EXPECT_GT(requests, 10u);
  EXPECT_GT(answers, 10u);
}

// In which order an encoding has the keys of the composite and of one of the
// resources' specs, and the resources themselves: Go shuffles all of them.
TEST(RequestEncoding, MapsAreShuffledAtEveryLevel) {
  const Request request = MakeRequest(Shape::k17K, 1, 0);
  std::set<bool> top;
  std::set<bool> resources;
  std::set<bool> inner;
  for (uint64_t order = 0; order < 32; ++order) {
    const std::string bytes = EncodeShuffled(request, order);
    const size_t composite = bytes.find("resourceRefs");
    top.insert(composite < bytes.find("WatchCircuitClosed"));
    resources.insert(bytes.find("bucket-0-0") < bytes.find("bucket-1-0"));
    inner.insert(bytes.find("\x0a\x04name", composite) <
                 bytes.find("\x0a\x04kind", composite));
  }
  EXPECT_EQ(top.size(), 2u);
  EXPECT_EQ(resources.size(), 2u);
  EXPECT_EQ(inner.size(), 2u);
}

TEST(RequestEncoding, SlotsAreTheEndsOfTagAndUid) {
  const Request request = MakeRequest(Shape::k130K, 1, 0);
  for (uint64_t order = 0; order < 4; ++order) {
    EncodedRequest encoded = Encode(request, order);
    EXPECT_LT(encoded.tag_slot, encoded.content_slot);
    WriteSlot(0x0123456789abcdef, &encoded.bytes[encoded.tag_slot]);
    WriteSlot(0xfedcba9876543210, &encoded.bytes[encoded.content_slot]);
    Request patched;
    ASSERT_TRUE(patched.ParseFromString(encoded.bytes));
    EXPECT_EQ(patched.meta().tag(),
              request.meta().tag().substr(0, 48) + "0123456789abcdef");
    Request expected = request;
    *expected.mutable_meta() = patched.meta();
    std::string* const uid = (*(*expected.mutable_observed()
                                     ->mutable_composite()
                                     ->mutable_resource()
                                     ->mutable_fields())["metadata"]
                                   .mutable_struct_value()
                                   ->mutable_fields())["uid"]
                                 .mutable_string_value();
    EXPECT_EQ(uid->size(), 36u);
    uid->replace(20, 16, "fedcba9876543210");
    EXPECT_TRUE(MessageDifferencer::Equals(patched, expected));
  }
}

TEST(RequestEncoding, AFrameHasFlagAndLength) {
  EXPECT_EQ(GrpcFrame("abc"), std::string("\0\0\0\0\3abc", 8));
  EXPECT_EQ(GrpcFrame(std::string(0x10203, 'x')).substr(0, 6),
            std::string("\0\0\1\2\3x", 6));
}

using Key = std::tuple<uint64_t, uint64_t>;

Key KeyOf(const cache::key::Digester& digester, const std::string& framed) {
  cache::key::DigestScratch scratch;
  const absl::string_view message = absl::string_view(framed).substr(5);
  const cache::key::Digest digest = digester.Compute({message}, &scratch);
  EXPECT_TRUE(digest.keyed);
  return {digest.key.high, digest.key.low};
}

class WorkloadKeys : public ::testing::TestWithParam<cache::key::KeySource> {};

// The same key of the workload is one key of the cache, in all its encodings,
// and another is another: by content and by tag.
TEST_P(WorkloadKeys, AreTheCachesKeys) {
  cache::key::KeyScope scope;
  scope.source = GetParam();
  const cache::key::Digester digester(cache::key::Seed{}, scope,
                                      cache::key::MaskSet());
  for (const Shape shape : {Shape::kSmall, Shape::k4K, Shape::k17K}) {
    SCOPED_TRACE(ShapeName(shape));
    WorkloadOptions options;
    options.shape = shape;
    options.distinct = 5;
    options.orders = 4;
    const Workload workload(options);
    Random random(1);
    std::set<Key> keys;
    constexpr uint64_t kKeys = 40;
    for (uint64_t i = 0; i < kKeys; ++i) {
      const Key key = KeyOf(digester, workload.Framed(i, {}, &random));
      EXPECT_TRUE(keys.insert(key).second) << i;
      for (int again = 0; again < 4; ++again) {
        EXPECT_EQ(KeyOf(digester, workload.Framed(i, {}, &random)), key);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sources, WorkloadKeys,
                         ::testing::Values(cache::key::KeySource::kContent,
                                           cache::key::KeySource::kTag));

TEST(Workload, TellsTheTagOfAKey) {
  const Workload workload(WorkloadOptions{Shape::k4K, 1, 3, 2});
  Random random(1);
  for (const uint64_t key : {0u, 1u, 2u, 3u, 1000u}) {
    Request request;
    ASSERT_TRUE(
        request.ParseFromString(workload.Framed(key, {}, &random).substr(5)));
    EXPECT_EQ(request.meta().tag(), workload.TagOf(key));
  }
}

// With `tune: on` all drifts of a request have one key, and each has a drift
// digest of its own. Without it each has a key of its own.
TEST(Workload, ADriftChangesNothingElse) {
  cache::key::KeyScope scope;
  const cache::key::Digester plain({}, scope, cache::key::MaskSet());
  scope.drift = true;
  const cache::key::Digester tuned({}, scope, cache::key::MaskSet());
  cache::key::DigestScratch scratch;
  for (const Shape shape : {Shape::k17K, Shape::k130K}) {
    SCOPED_TRACE(ShapeName(shape));
    ASSERT_TRUE(HasDrift(shape));
    const Workload workload(WorkloadOptions{shape, 1, 3, 4});
    Random random(1);
    for (const uint64_t key : {0u, 1u, 2u, 3u}) {
      std::set<Key> plain_keys;
      std::set<Key> tuned_keys;
      std::set<Key> drifts;
      constexpr uint64_t kDrifts = 30;
      for (uint64_t i = 0; i < 4 * (kDrifts + 1); ++i) {
        absl::optional<uint64_t> drift;  // the request's own comes, too
        if (i / 4 > 0) drift = i / 4;
        const std::string framed = workload.Framed(key, drift, &random);
        plain_keys.insert(KeyOf(plain, framed));
        const cache::key::Digest digest =
            tuned.Compute({absl::string_view(framed).substr(5)}, &scratch);
        ASSERT_TRUE(digest.keyed);
        tuned_keys.insert({digest.key.high, digest.key.low});
        drifts.insert({digest.drift.high, digest.drift.low});
        Request request;
        ASSERT_TRUE(request.ParseFromString(framed.substr(5)));
        EXPECT_EQ(request.meta().tag(), workload.TagOf(key));
      }
      EXPECT_EQ(plain_keys.size(), kDrifts + 1);
      EXPECT_EQ(tuned_keys.size(), 1u);
      EXPECT_EQ(drifts.size(), kDrifts + 1);
    }
  }
}

TEST(Workload, ShapesWithoutComposedResourcesHaveNoDriftSlots) {
  for (const Shape shape : {Shape::kSmall, Shape::k4K}) {
    EXPECT_FALSE(HasDrift(shape));
    const Workload workload(WorkloadOptions{shape, 1, 1, 1});
    Random random(1);
    EXPECT_EQ(workload.Framed(0, 7, &random), workload.Framed(0, {}, &random));
  }
}

// By the cache's own definition of drift. Neighbours differ in both, and no
// pair comes twice.
TEST(WriteDrift, WritesVersionsAndTimesThatDoNotRepeat) {
  constexpr uint64_t kTimes = 12 * 28 * 86400;
  std::set<std::string> seen;
  std::string version(kVersionDigits, ' ');
  std::string time(kTimeBytes, ' ');
  for (const uint64_t start :
       {uint64_t{0}, uint64_t{9000}, kTimes - 50, 2 * kTimes - 50,
        8999 * kTimes, uint64_t{100'000'000'000}}) {
    for (uint64_t drift = start; drift < start + 100; ++drift) {
      const std::string last_version = version;
      const std::string last_time = time;
      WriteDrift(drift, &version[0], &time[0]);
      EXPECT_TRUE(cache::key::IsVersion(version)) << version;
      EXPECT_NE(version[0], '0');
      EXPECT_TRUE(cache::key::IsTime(time)) << time;
      EXPECT_NE(version, last_version);
      EXPECT_NE(time, last_time);
      EXPECT_TRUE(seen.insert(version + time).second) << drift;
    }
  }
  for (uint64_t again = 1; again < 8999; ++again) {
    WriteDrift(500 + again * kTimes, &version[0], &time[0]);
    EXPECT_TRUE(seen.insert(version + time).second) << again;
  }
}

}  // namespace
}  // namespace fncache::bench
