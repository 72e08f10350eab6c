// SPDX-License-Identifier: Apache-2.0
#include "text/json.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace fncache::text {
namespace {

using ::testing::HasSubstr;

Json Parsed(absl::string_view text) {
  absl::StatusOr<Json> json = ParseJson(text);
  EXPECT_TRUE(json.ok()) << json.status() << " in " << text;
  return json.ok() ? *std::move(json) : Json();
}

std::string Problem(absl::string_view text) {
  const absl::StatusOr<Json> json = ParseJson(text);
  EXPECT_EQ(json.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(json.status().message());
}

Json FromNumber(double number) {
  google::protobuf::Value value;
  value.set_number_value(number);
  return FromValue(value);
}

Json Merged(absl::string_view into, absl::string_view from) {
  Json merged = Parsed(into);
  MergeInto(&merged, Parsed(from));
  return merged;
}

TEST(JsonTest, WholeNumbersOf64BitsStayExact) {
  EXPECT_EQ(Parsed("9007199254740993").get<int64_t>(), 9007199254740993);
  EXPECT_EQ(Parsed("-9223372036854775808").get<int64_t>(),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Parsed("18446744073709551615").get<uint64_t>(),
            std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(Parsed("18446744073709551616").is_number_float());
}

TEST(JsonTest, TheLastOfEqualKeysWins) {
  EXPECT_EQ(Parsed(R"({"a": {"x": 1}, "b": 2, "a": [3]})").dump(),
            R"({"a":[3],"b":2})");
}

TEST(JsonTest, FaultsSayWhere) {
  EXPECT_THAT(Problem("{\"a\": 1,\n \"b\": }"), HasSubstr("line 2"));
  EXPECT_THAT(Problem("{} x"), HasSubstr("not JSON from byte"));
  EXPECT_THAT(Problem(""), HasSubstr("not JSON from byte"));
  EXPECT_THAT(Problem("1e999"), HasSubstr("not JSON from byte"));
  EXPECT_THAT(Problem("\"\xff\""), HasSubstr("not JSON from byte"));
}

TEST(JsonTest, NestingIsBounded) {
  const auto nested = [](int depth) {
    return absl::StrCat(std::string(depth, '['), std::string(depth, ']'));
  };
  EXPECT_TRUE(ParseJson(nested(kMaxJsonDepth)).ok());
  EXPECT_THAT(Problem(nested(kMaxJsonDepth + 1)),
              HasSubstr("nested more than 1000 deep"));
  EXPECT_THAT(Problem(std::string(1000000, '[')), HasSubstr("nested"));
}

TEST(JsonTest, StructsHoldDoubles) {
  const auto object = ToStruct(
      Parsed(R"({"big": 9007199254740993, "whole": 18446744073709551615,
                 "zero": -0.0, "half": 0.5})"));
  const auto number = [&object](const char* key) {
    return object.fields().at(key).number_value();
  };
  EXPECT_EQ(number("big"), 9007199254740992.0);
  EXPECT_EQ(number("whole"), 18446744073709551616.0);
  EXPECT_EQ(number("zero"), 0.0);
  EXPECT_FALSE(std::signbit(number("zero")));
  EXPECT_EQ(number("half"), 0.5);
}

TEST(JsonTest, NullsAndEmptyMapsAndListsStay) {
  const Json json = Parsed(
      R"({"null": null, "map": {}, "list": [], "in": [null, {}, []],
          "text": "", "no": false})");
  EXPECT_EQ(FromStruct(ToStruct(json)), json);
  EXPECT_EQ(FromValue(google::protobuf::Value()), nullptr);
}

TEST(JsonTest, ShortestDigitsOfADoubleThatAreWholeAreWhole) {
  EXPECT_EQ(FromNumber(3.0).dump(), "3");
  EXPECT_EQ(FromNumber(-0.0).dump(), "0");
  EXPECT_EQ(FromNumber(-5e15).dump(), "-5000000000000000");
  EXPECT_EQ(FromNumber(123456789012345678.0).dump(), "123456789012345680");
  EXPECT_EQ(FromNumber(9007199254740993.0).dump(), "9007199254740992");
  // 2^63 ends in ...808; its shortest digits are beyond int64 only.
  EXPECT_EQ(FromNumber(9223372036854775808.0).dump(), "9223372036854776000");
  EXPECT_EQ(FromNumber(1e19).dump(), "10000000000000000000");
  EXPECT_EQ(FromNumber(18446744073709549568.0).dump(), "18446744073709550000");
}

TEST(JsonTest, EveryOtherDoubleStaysOne) {
  for (const double number :
       {0.75, 123456.5, -9223372036854775808.0, 18446744073709551616.0, 1e20,
        1e21, 1e300, 5e-324, -1e19}) {
    const Json json = FromNumber(number);
    EXPECT_TRUE(json.is_number_float()) << json.dump();
    EXPECT_EQ(json.get<double>(), number);
  }
}

TEST(JsonTest, MapsMergeAndAnythingElseWins) {
  EXPECT_EQ(Merged(R"({"a": {"b": 1, "c": 2}, "d": 3})",
                   R"({"a": {"b": 9, "e": 4}})"),
            Parsed(R"({"a": {"b": 9, "c": 2, "e": 4}, "d": 3})"));
  for (const char* value : {"0", "null", "[]", "false", "\"\"", "[3]"}) {
    EXPECT_EQ(
        Merged(R"({"a": {"b": 1}})", absl::StrCat("{\"a\": ", value, "}")),
        Parsed(absl::StrCat("{\"a\": ", value, "}")));
  }
  EXPECT_EQ(Merged(R"({"a": [1, 2]})", R"({"a": [3]})"),
            Parsed(R"({"a": [3]})"));
}

TEST(JsonTest, AnEmptyMapChangesNothingOfAMap) {
  EXPECT_EQ(Merged(R"({"a": {"b": 1}})", R"({"a": {}})"),
            Parsed(R"({"a": {"b": 1}})"));
  EXPECT_EQ(Merged(R"({"a": {"b": 1}})", "{}"), Parsed(R"({"a": {"b": 1}})"));
  EXPECT_EQ(Merged("{}", R"({"a": {}})"), Parsed(R"({"a": {}})"));
  EXPECT_EQ(Merged(R"({"a": 5})", R"({"a": {}})"), Parsed(R"({"a": {}})"));
}

}  // namespace
}  // namespace fncache::text
