#include "common/log.h"

#include "gtest/gtest.h"

namespace fncache {
namespace {

TEST(LogTest, ValueThatLooksLikeALineOfItsOwnIsQuoted) {
  testing::internal::CaptureStderr();
  Log(LogLevel::kInfo, "hello", {{"peer", "a b\n2026 info x"}, {"n", 7}});
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_NE(line.find("hello peer=\"a b\\u000a2026 info x\" n=7\n"),
            std::string::npos)
      << line;
}

}  // namespace
}  // namespace fncache
