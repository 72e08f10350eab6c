// SPDX-License-Identifier: Apache-2.0
#include "bench/answer_check.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/request_encoding.h"
#include "bench/request_generator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"

namespace fncache::bench {
namespace {

using ::testing::HasSubstr;

constexpr char kTag[] = "caller";

// A well-formed answer of the 13 KB message, and what may be changed in it.
struct Wire {
  std::string http_status = "200";
  std::string grpc_status = "0";
  std::string cache_status = "fncache; hit; ttl=37";
  std::string frame;
};

std::string Body() {
  Answer answer = MakeAnswer(AnswerShape::k13K, 1);
  answer.clear_meta();
  return EncodeShuffled(answer, 1);
}

// As the daemon makes a hit: a meta, then the stored body.
std::string Message(const std::string& tag = kTag, int64_t ttl = 3600) {
  Answer meta;
  meta.mutable_meta()->set_tag(tag);
  meta.mutable_meta()->mutable_ttl()->set_seconds(ttl);
  return absl::StrCat(meta.SerializeAsString(), Body());
}

Wire Good() {
  Wire wire;
  wire.frame = GrpcFrame(Message());
  return wire;
}

Expectation Expected() {
  Expectation expected;
  expected.body = Body();
  return expected;
}

// The complaint, "" if there is none; the data arrives in pieces of `piece`.
std::string CheckOf(const Wire& wire, const Expectation& expected,
                    bool sampled = true, size_t piece = 1000) {
  AnswerReader reader;
  reader.Reset(sampled);
  reader.OnHeader(":status", wire.http_status);
  reader.OnHeader("content-type", "application/grpc");
  if (!wire.cache_status.empty()) {
    reader.OnHeader("cache-status", wire.cache_status);
  }
  absl::string_view data = wire.frame;
  while (!data.empty()) {
    reader.OnData(data.substr(0, piece));
    data.remove_prefix(std::min(piece, data.size()));
  }
  if (!wire.grpc_status.empty()) {
    reader.OnHeader("grpc-status", wire.grpc_status);
    reader.OnHeader("grpc-message", "why");
  }
  return std::string(
      reader.Check(expected, [] { return std::string(kTag); }).message());
}

TEST(AnswerCheck, ARightAnswerIsRight) {
  for (const size_t piece : {1, 3, 7, 16, 17, 100000}) {
    EXPECT_EQ(CheckOf(Good(), Expected(), true, piece), "");
    EXPECT_EQ(CheckOf(Good(), Expected(), false, piece), "");
  }
}

TEST(AnswerCheck, MetaMayBeOfAnyLengthOrAbsent) {
  Wire wire = Good();
  for (const int64_t ttl : {0, 1, 1000, 1'000'000}) {
    wire.frame = GrpcFrame(Message(kTag, ttl));
    EXPECT_EQ(CheckOf(wire, Expected()), "");
    EXPECT_EQ(CheckOf(wire, Expected(), false), "");
  }
  wire.frame = GrpcFrame(Body());
  Expectation expected = Expected();
  expected.tags = TagCheck::kNone;
  EXPECT_EQ(CheckOf(wire, expected), "");
  EXPECT_EQ(CheckOf(wire, expected, false), "");
  wire.frame = GrpcFrame("");
  expected.body = "";
  EXPECT_EQ(CheckOf(wire, expected), "");
}

TEST(AnswerCheck, OtherStatusesAreErrors) {
  Wire wire = Good();
  wire.http_status = "503";
  EXPECT_EQ(CheckOf(wire, Expected()), "HTTP status 503");
  wire = Good();
  wire.grpc_status = "14";
  EXPECT_EQ(CheckOf(wire, Expected()), "grpc-status 14: why");
  wire.grpc_status = "";
  EXPECT_EQ(CheckOf(wire, Expected()), "no grpc-status");
}

TEST(AnswerCheck, AnAnswerCutShortOrDrawnOutIsAnError) {
  for (const bool sampled : {true, false}) {
    Wire wire = Good();
    wire.frame.pop_back();
    EXPECT_THAT(CheckOf(wire, {}, sampled), HasSubstr("were announced"));
    wire = Good();
    wire.frame += "x";
    EXPECT_THAT(CheckOf(wire, {}, sampled), HasSubstr("were announced"));
    wire.frame = "abc";
    EXPECT_EQ(CheckOf(wire, {}, sampled), "an answer of 3 bytes");
    wire.frame = "";
    EXPECT_EQ(CheckOf(wire, {}, sampled), "an answer of 0 bytes");
    wire = Good();
    wire.frame[0] = 1;
    EXPECT_EQ(CheckOf(wire, {}, sampled), "a compressed answer");
  }
}

TEST(AnswerCheck, ABodyOfAnotherLengthIsAnErrorAlsoUnsampled) {
  Wire wire = Good();
  wire.frame = GrpcFrame(Message() + "\x1a");
  EXPECT_THAT(CheckOf(wire, Expected(), false), HasSubstr("its body should"));
  wire.frame = GrpcFrame(Message().substr(0, 5000));
  EXPECT_THAT(CheckOf(wire, Expected(), false), HasSubstr("its body should"));
}

TEST(AnswerCheck, AWrongByteIsFoundInSamples) {
  Wire wire = Good();
  const size_t at = wire.frame.find("region");
  ASSERT_NE(at, std::string::npos);
  wire.frame[at] = 'R';
  EXPECT_EQ(CheckOf(wire, Expected()),
            "an answer with other bytes than expected");
  EXPECT_EQ(CheckOf(wire, Expected(), false), "");
}

TEST(AnswerCheck, TagsAreTheCallersInHitsAndCollapsedAnswers) {
  Wire wire = Good();
  wire.frame = GrpcFrame(Message("someone"));
  EXPECT_EQ(CheckOf(wire, Expected()),
            "an answer with tag \"someone\" to a call with \"caller\"");
  wire.cache_status = "fncache; fwd=miss; collapsed; stored";
  EXPECT_THAT(CheckOf(wire, Expected()), HasSubstr("someone"));

  // The function's own answer, and a server without a cache.
  wire.cache_status = "fncache; fwd=miss; stored";
  EXPECT_EQ(CheckOf(wire, Expected()), "");
  wire.cache_status = "";
  EXPECT_EQ(CheckOf(wire, Expected()), "");

  Expectation expected = Expected();
  expected.tags = TagCheck::kAll;
  EXPECT_THAT(CheckOf(wire, expected), HasSubstr("someone"));
  wire = Good();
  wire.frame = GrpcFrame(Message("someone"));
  expected.tags = TagCheck::kNone;
  EXPECT_EQ(CheckOf(wire, expected), "");
}

TEST(AnswerCheck, TheExpectedCacheStatusIsTheOnlyOne) {
  Expectation expected = Expected();
  expected.status = CacheStatus::kHit;
  EXPECT_EQ(CheckOf(Good(), expected), "");
  Wire wire = Good();
  wire.cache_status = "fncache; fwd=miss; stored";
  EXPECT_EQ(CheckOf(wire, expected), "cache-status miss instead of hit");
  wire.cache_status = "";
  EXPECT_EQ(CheckOf(wire, expected), "cache-status none instead of hit");
  expected.status = CacheStatus::kNone;
  EXPECT_EQ(CheckOf(wire, expected), "");
}

TEST(AnswerCheck, CacheStatusesAreReadAsRfc9211HasThem) {
  struct Case {
    const char* value;
    CacheStatus status;
    bool stored;
    bool collapsed;
  };
  for (const Case& c : std::vector<Case>{
           {"fncache; hit; ttl=37", CacheStatus::kHit, false, false},
           {"fncache;hit", CacheStatus::kHit, false, false},
           {"fncache; fwd=miss", CacheStatus::kMiss, false, false},
           {"fncache; fwd=miss; stored", CacheStatus::kMiss, true, false},
           {"fncache; fwd=stale; collapsed; stored", CacheStatus::kStale, true,
            true},
           {"fncache; fwd=request; stored", CacheStatus::kRequest, true, false},
           {"fncache; fwd=bypass", CacheStatus::kBypass, false, false},
           {"fncache; fwd=uri-miss", CacheStatus::kOther, false, false},
           {"fncache", CacheStatus::kOther, false, false},
       }) {
    AnswerReader reader;
    reader.Reset(false);
    EXPECT_EQ(reader.cache_status(), CacheStatus::kNone);
    reader.OnHeader("cache-status", c.value);
    EXPECT_EQ(reader.cache_status(), c.status) << c.value;
    EXPECT_EQ(reader.stored(), c.stored) << c.value;
    EXPECT_EQ(reader.collapsed(), c.collapsed) << c.value;
  }
}

TEST(AnswerCheck, AReaderForgetsTheCallBefore) {
  AnswerReader reader;
  reader.Reset(true);
  reader.OnHeader(":status", "200");
  reader.OnHeader("grpc-status", "0");
  reader.OnHeader("cache-status", "fncache; fwd=miss; collapsed; stored");
  reader.OnData(GrpcFrame(Message()));
  reader.Reset(true);
  EXPECT_EQ(reader.cache_status(), CacheStatus::kNone);
  EXPECT_FALSE(reader.stored());
  EXPECT_FALSE(reader.collapsed());
  EXPECT_EQ(reader.Check({}, [] { return std::string(kTag); }).message(),
            "HTTP status 0");
}

TEST(SplitAnswer, TakesEveryMetaOutOfTheBody) {
  Answer first;
  first.mutable_meta()->set_tag("old");
  Answer second;
  second.mutable_meta()->set_tag("new");
  const std::string body("\x22\x02\x0a\x00", 4);
  const auto parts = SplitAnswer(absl::StrCat(first.SerializeAsString(), body,
                                              second.SerializeAsString()));
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(parts->body, body);
  EXPECT_EQ(parts->tag, "new");
}

TEST(SplitAnswer, RefusesWhatIsNoMessage) {
  EXPECT_FALSE(SplitAnswer("\x22\x7f").ok());
  EXPECT_FALSE(SplitAnswer("\x0a\x02\xff\xff").ok());
  EXPECT_FALSE(SplitAnswer("\x07").ok());
  EXPECT_TRUE(SplitAnswer("").ok());
}

}  // namespace
}  // namespace fncache::bench
