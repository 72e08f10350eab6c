// SPDX-License-Identifier: Apache-2.0
#include "sdk/serve/wire.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/function_v1.pb.h"

namespace fncache::sdk::serve {
namespace {

namespace v1 = apiextensions::fn::proto::v1;

TEST(WireTest, TheLastFieldOfANumberCounts) {
  v1::RunFunctionRequest request;
  request.mutable_meta()->set_tag("one");
  std::string bytes = request.SerializeAsString();
  (*request.mutable_context()->mutable_fields())["k"].set_number_value(1);
  request.mutable_meta()->set_tag("two");
  bytes += request.SerializeAsString();
  EXPECT_EQ(LastText(LastText(bytes, 1), 1), "two");
  EXPECT_EQ(LastText(bytes, 99), "");
}

TEST(WireTest, FieldsOfOtherTypesAreSkipped) {
  std::string bytes;
  AppendVarint(1, ~uint64_t{0}, &bytes);
  bytes += std::string(
      "\x11"
      "12345678",
      9);  // 64 bits
  bytes += std::string(
      "\x1d"
      "1234",
      5);  // 32 bits
  AppendText(4, "text", &bytes);
  int fields = 0;
  EXPECT_TRUE(ForEachText(bytes, [&](uint32_t number, absl::string_view text) {
    ++fields;
    EXPECT_EQ(number, 4u);
    EXPECT_EQ(text, "text");
  }));
  EXPECT_EQ(fields, 1);
}

TEST(WireTest, BrokenBytesAreNoMessage) {
  const auto ignore = [](uint32_t, absl::string_view) {};
  for (const char* bytes : {"\x0a",
                            "\x0a\x05"
                            "abc",
                            "\xff\xff\xff", "\x0b",
                            "\x09"
                            "1",
                            "\x0d"
                            "1",
                            "\x08"}) {
    EXPECT_FALSE(ForEachText(bytes, ignore)) << bytes;
  }
  EXPECT_FALSE(ForEachText(std::string(11, '\xff'), ignore));
  EXPECT_TRUE(ForEachText("", ignore));
}

TEST(WireTest, WhatIsAppendedIsProtobufs) {
  std::string meta;
  AppendText(1, std::string(300, 'x'), &meta);
  std::string bytes;
  AppendText(1, meta, &bytes);
  v1::RunFunctionRequest request;
  ASSERT_TRUE(request.ParseFromString(bytes));
  EXPECT_EQ(request.meta().tag(), std::string(300, 'x'));
}

}  // namespace
}  // namespace fncache::sdk::serve
