// SPDX-License-Identifier: Apache-2.0
#include "text/yaml_scalar.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::text {
namespace {

using Type = YamlScalar::Type;

TEST(YamlScalarTest, TheBooleansOfYaml11) {
  for (const char* text : {"y", "Y", "yes", "Yes", "YES", "true", "True",
                           "TRUE", "on", "On", "ON"}) {
    EXPECT_EQ(ResolveYamlScalar(text).type, Type::kBool) << text;
    EXPECT_TRUE(ResolveYamlScalar(text).truth) << text;
  }
  for (const char* text : {"n", "N", "no", "No", "NO", "false", "False",
                           "FALSE", "off", "Off", "OFF"}) {
    EXPECT_EQ(ResolveYamlScalar(text).type, Type::kBool) << text;
    EXPECT_FALSE(ResolveYamlScalar(text).truth) << text;
  }
  for (const char* text : {"yEs", "tRUE", "oN", "yess", "y ", "nO"}) {
    EXPECT_EQ(ResolveYamlScalar(text).type, Type::kText) << text;
  }
}

TEST(YamlScalarTest, TheNullsOfYaml11) {
  for (const char* text : {"", "~", "null", "Null", "NULL"}) {
    EXPECT_EQ(ResolveYamlScalar(text).type, Type::kNull) << text;
  }
  EXPECT_EQ(ResolveYamlScalar("nULL").type, Type::kText);
  EXPECT_EQ(ResolveYamlScalar("~~").type, Type::kText);
}

TEST(YamlScalarTest, WholeNumbersOfEveryBase) {
  const struct {
    const char* text;
    int64_t value;
  } kNumbers[] = {{"0", 0},
                  {"-0", 0},
                  {"+12", 12},
                  {"010", 8},
                  {"-010", -8},
                  {"0x10", 16},
                  {"0X1f", 31},
                  {"-0x10", -16},
                  {"0o17", 15},
                  {"0O17", 15},
                  {"0b101", 5},
                  {"0B11", 3},
                  {"-0b11", -3},
                  {"0b-1", -1},
                  {"1_000", 1000},
                  {"1_", 1},
                  {"0x_f", 15},
                  {"9223372036854775807", INT64_MAX},
                  {"-9223372036854775808", INT64_MIN}};
  for (const auto& number : kNumbers) {
    const YamlScalar scalar = ResolveYamlScalar(number.text);
    EXPECT_EQ(scalar.type, Type::kInteger) << number.text;
    EXPECT_EQ(scalar.integer, number.value) << number.text;
  }
  EXPECT_EQ(ResolveYamlScalar("9223372036854775808").type, Type::kUnsigned);
  EXPECT_EQ(ResolveYamlScalar("0xffffffffffffffff").whole, UINT64_MAX);
}

TEST(YamlScalarTest, Floats) {
  const struct {
    const char* text;
    double value;
  } kNumbers[] = {{"1.5", 1.5},
                  {"-1.5", -1.5},
                  {"+.5", 0.5},
                  {".5", 0.5},
                  {"1.", 1},
                  {"1e3", 1000},
                  {"1.E-2", 0.01},
                  {"08", 8},
                  {"0_8", 8},
                  {"1_0.5", 10.5},
                  {".1_0", 0.1},
                  {".1e1_0", 1e9},
                  {"1e-400", 0},
                  {"18446744073709551616", 18446744073709551616.0},
                  {"-9223372036854775809", -9223372036854775808.0}};
  for (const auto& number : kNumbers) {
    const YamlScalar scalar = ResolveYamlScalar(number.text);
    EXPECT_EQ(scalar.type, Type::kFloat) << number.text;
    EXPECT_EQ(scalar.number, number.value) << number.text;
  }
  EXPECT_TRUE(std::isinf(ResolveYamlScalar("-.inf").number));
  EXPECT_TRUE(std::isinf(ResolveYamlScalar("+.Inf").number));
  EXPECT_TRUE(std::isnan(ResolveYamlScalar(".NaN").number));
}

TEST(YamlScalarTest, WhatOnlyLooksLikeANumberIsText) {
  for (const char* text : {"-",         "+",     ".",
                           "..",        "._5",   ".1_",
                           ".1__0",     "1e",    "1e+",
                           "1.2.3",     "0x",    "0xg",
                           "0b",        "0b2",   "0o8x",
                           "1:30",      "1e400", "-1e400",
                           "1 ",        "1,000", "0xffffffffffffffffff",
                           "--1",       "+-1",   "1a",
                           "<<",        "inf",   "nan",
                           ".infinity", "e3",    "_1"}) {
    EXPECT_EQ(ResolveYamlScalar(text).type, Type::kText) << text;
  }
}

TEST(YamlScalarTest, Timestamps) {
  for (const char* text :
       {"2024-01-01", "2024-1-1", "2024-02-29", "2000-02-29",
        "2024-01-01T10:00:00Z", "2024-01-01t1:2:3Z",
        "2024-01-01T10:00:00.123456789012Z", "2024-01-01T10:00:00,5Z",
        "2024-01-01T10:00:00+24:60", "2024-01-01T10:00:00-05:30",
        "2024-01-01 10:00:00", "2024-01-01   1:0:0.5"}) {
    EXPECT_EQ(ResolveYamlScalar(text).type, Type::kTimestamp) << text;
  }
  for (const char* text : {"2024-13-01",
                           "2024-00-01",
                           "2023-02-29",
                           "1900-02-29",
                           "2024-04-31",
                           "2024-01-00",
                           "024-01-01",
                           "20240-01-01",
                           "2024-01-01T10:00:00",
                           "2024-01-01 10:00:00Z",
                           "2024-01-01T24:00:00Z",
                           "2024-01-01T10:60:00Z",
                           "2024-01-01T10:00:60Z",
                           "2024-01-01T10:00Z",
                           "2024-01-01T10:00:00+5:00",
                           "2024-01-01T10:00:00+25:00",
                           "2024-01-01T10:00:00+05:61",
                           "2024-01-01T10:00:00.Z",
                           "2024-01-01 ",
                           "2024-01-01x",
                           "2024-01",
                           "2024-01-001",
                           "+2024-01-01"}) {
    EXPECT_EQ(ResolveYamlScalar(text).type, Type::kText) << text;
  }
}

TEST(YamlScalarTest, TagsDecide) {
  const auto resolve = [](const char* tag, const char* text) {
    return ResolveTaggedYamlScalar(tag, text);
  };
  EXPECT_EQ(resolve("tag:yaml.org,2002:str", "12")->type, Type::kText);
  EXPECT_EQ(resolve("tag:yaml.org,2002:int", "0x10")->integer, 16);
  EXPECT_EQ(resolve("tag:yaml.org,2002:int", "18446744073709551615")->type,
            Type::kUnsigned);
  EXPECT_EQ(resolve("tag:yaml.org,2002:float", "12")->number, 12.0);
  EXPECT_EQ(resolve("tag:yaml.org,2002:float", "12")->type, Type::kFloat);
  EXPECT_TRUE(resolve("tag:yaml.org,2002:bool", "on")->truth);
  EXPECT_EQ(resolve("tag:yaml.org,2002:null", "~")->type, Type::kNull);
  EXPECT_EQ(resolve("tag:yaml.org,2002:timestamp", "2024-01-01")->type,
            Type::kTimestamp);
  EXPECT_EQ(resolve("!mine", "12")->type, Type::kText);
  EXPECT_EQ(resolve("tag:yaml.org,2002:set", "12")->type, Type::kText);

  for (const auto& [tag, text] :
       {std::pair<const char*, const char*>{"int", "1.5"},
        {"int", "x"},
        {"float", "x"},
        {"float", "2024-01-01"},
        {"float", "18446744073709551615"},
        {"bool", "1"},
        {"null", "x"},
        {"timestamp", "12"}}) {
    const auto scalar =
        ResolveTaggedYamlScalar(std::string("tag:yaml.org,2002:") + tag, text);
    EXPECT_THAT(std::string(scalar.status().message()),
                ::testing::EndsWith(absl::StrCat("`", text, "` as a !!", tag)));
  }
}

TEST(YamlScalarTest, NumbersToTheBase60) {
  for (const char* text : {"1:30", "-1:0", "+12:59:59", "1_0:30", "1:30.",
                           "1:30.5_", "190:20:30.15"}) {
    EXPECT_TRUE(IsBase60(text)) << text;
  }
  for (const char* text : {"", "1", ":30", "1:", "1:60", "1:123", "_1:30",
                           "1:30:", "1:30x", "1.5:30", "a:30"}) {
    EXPECT_FALSE(IsBase60(text)) << text;
  }
}

TEST(YamlScalarTest, NumbersHaveTheirShortestDigits) {
  const struct {
    double number;
    const char* text;
  } kNumbers[] = {{1e20, "1e+20"},
                  {1e21, "1e+21"},
                  {1234567.5, "1.2345675e+06"},
                  {1e-05, "1e-05"},
                  {0.0001, "0.0001"},
                  {0.00012345, "0.00012345"},
                  {123456.5, "123456.5"},
                  {999999.5, "999999.5"},
                  {1000000.5, "1.0000005e+06"},
                  {1.8446744073709552e19, "1.8446744073709552e+19"},
                  {0.1, "0.1"},
                  {-2.5, "-2.5"},
                  {0.75, "0.75"},
                  {5e-324, "5e-324"},
                  {1.7976931348623157e308, "1.7976931348623157e+308"}};
  for (const auto& number : kNumbers) {
    EXPECT_EQ(YamlNumber(number.number), number.text);
  }
  EXPECT_EQ(YamlNumber(INFINITY), ".inf");
  EXPECT_EQ(YamlNumber(-INFINITY), "-.inf");
  EXPECT_EQ(YamlNumber(NAN), ".nan");
  EXPECT_EQ(YamlNumber(0.1F), "0.1");
  EXPECT_EQ(YamlNumber(1e10F), "1e+10");
}

}  // namespace
}  // namespace fncache::text
