// SPDX-License-Identifier: Apache-2.0
#include "bench/answer_check.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "bench/request_encoding.h"
#include "bench/request_generator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"

namespace fncache::bench {
namespace {

using ::testing::HasSubstr;

constexpr char kTag[] = "caller";

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

// The complaint, "" if there is none; the data arrives in pieces of `piece`.
std::string CheckOf(absl::string_view frame, bool sampled = true,
                    const absl::optional<std::string>& body = Body(),
                    const absl::optional<std::string>& tag = std::string(kTag),
                    size_t piece = 1000) {
  AnswerCheck check;
  check.Reset(true);
  check.OnData("of another call");
  check.Reset(sampled);
  while (!frame.empty()) {
    check.OnData(frame.substr(0, piece));
    frame.remove_prefix(std::min(piece, frame.size()));
  }
  return std::string(check.Check(body, tag).message());
}

TEST(AnswerCheck, ARightAnswerIsRight) {
  const std::string frame = GrpcFrame(Message());
  for (const size_t piece : {1, 3, 7, 16, 17, 100000}) {
    EXPECT_EQ(CheckOf(frame, true, Body(), kTag, piece), "");
    EXPECT_EQ(CheckOf(frame, false, Body(), kTag, piece), "");
  }
}

TEST(AnswerCheck, MetaMayBeOfAnyLengthOrAbsent) {
  for (const bool sampled : {true, false}) {
    for (const int64_t ttl : {0, 1, 1000, 1'000'000}) {
      EXPECT_EQ(CheckOf(GrpcFrame(Message(kTag, ttl)), sampled), "");
    }
    EXPECT_EQ(CheckOf(GrpcFrame(Body()), sampled, Body(), absl::nullopt), "");
    EXPECT_EQ(CheckOf(GrpcFrame(""), sampled, "", absl::nullopt), "");
  }
}

TEST(AnswerCheck, AnAnswerCutShortOrDrawnOutIsAnError) {
  for (const bool sampled : {true, false}) {
    const auto check = [&](absl::string_view frame) {
      return CheckOf(frame, sampled, absl::nullopt);
    };
    std::string frame = GrpcFrame(Message());
    frame.pop_back();
    EXPECT_THAT(check(frame), HasSubstr("were announced"));
    EXPECT_THAT(check(GrpcFrame(Message()) + "x"), HasSubstr("were announced"));
    EXPECT_EQ(check("abc"), "an answer of 3 bytes");
    EXPECT_EQ(check(""), "an answer of 0 bytes");
    frame = GrpcFrame(Message());
    frame[0] = 1;
    EXPECT_EQ(check(frame), "a compressed answer");
  }
}

TEST(AnswerCheck, ABodyOfAnotherLengthIsAnErrorAlsoUnsampled) {
  EXPECT_THAT(CheckOf(GrpcFrame(Message() + "\x1a"), false),
              HasSubstr("its body should"));
  EXPECT_THAT(CheckOf(GrpcFrame(Message().substr(0, 5000)), false),
              HasSubstr("its body should"));
  // A length of meta beyond the message.
  EXPECT_THAT(CheckOf(GrpcFrame("\x0a\x7f")), HasSubstr("its body should"));
}

TEST(AnswerCheck, AWrongByteIsFoundInSamples) {
  std::string frame = GrpcFrame(Message());
  const size_t at = frame.find("region");
  ASSERT_NE(at, std::string::npos);
  frame[at] = 'R';
  EXPECT_EQ(CheckOf(frame), "an answer with other bytes than expected");
  EXPECT_EQ(CheckOf(frame, false), "");
}

TEST(AnswerCheck, ATagOfAnotherCallIsFoundInSamples) {
  const std::string frame = GrpcFrame(Message("another"));
  for (const auto& body :
       {absl::make_optional(Body()), absl::optional<std::string>()}) {
    EXPECT_EQ(CheckOf(frame, true, body),
              "an answer with tag \"another\" to a call with \"caller\"");
    EXPECT_EQ(CheckOf(frame, false, body), "");
    EXPECT_EQ(CheckOf(frame, true, body, absl::nullopt), "");
  }
}

TEST(AnswerCheck, WhatIsNoMessageIsFoundInSamples) {
  for (const absl::string_view message :
       {"\x22\x7f", "\x0a\x02\xff\xff", "\x07", "\x0a\x7f", "\x0a\x80"}) {
    EXPECT_NE(CheckOf(GrpcFrame(std::string(message)), true, absl::nullopt,
                      absl::nullopt),
              "");
  }
  EXPECT_EQ(CheckOf(GrpcFrame(""), true, absl::nullopt, absl::nullopt), "");
}

TEST(MetaBytes, AreThoseOfTheFirstField) {
  EXPECT_EQ(MetaBytes(Message()).value(), Message().size() - Body().size());
  EXPECT_EQ(MetaBytes(Body()).value(), 0);
  EXPECT_EQ(MetaBytes("").value(), 0);
  EXPECT_FALSE(MetaBytes("\x0a").ok());
}

}  // namespace
}  // namespace fncache::bench
