// SPDX-License-Identifier: Apache-2.0
#include "http2/target.h"

#include <sys/un.h>

#include <string>

#include "gtest/gtest.h"

namespace fncache::http2 {
namespace {

TEST(TargetTest, UnixSocketsHaveAPathOrAnAbstractName) {
  for (const char* text : {"unix:/a", "unix:///a", "unix:a", "unix-abstract:a",
                           "unix:9443", "unix:"}) {
    EXPECT_TRUE(IsUnix(text)) << text;
  }
  for (const char* text : {"unix", "unixes:1", "/a", "dns:unix:1", "h:1", ""}) {
    EXPECT_FALSE(IsUnix(text)) << text;
  }
  for (const char* text : {"unix:/a", "unix:///a", "unix:////a"}) {
    const auto target = ParseTarget(text);
    ASSERT_TRUE(target.ok()) << target.status();
    EXPECT_EQ(target->endpoints.at(0).text, "unix:/a") << text;
  }
}

// A path needs a NUL at its end, an abstract name one before it.
TEST(TargetTest, PathsAndAbstractNamesMayHave107Bytes) {
  for (const char* scheme : {"unix:", "unix-abstract:"}) {
    const auto longest = ParseTarget(scheme + std::string(107, 'a'));
    ASSERT_TRUE(longest.ok()) << longest.status();
    EXPECT_EQ(longest->endpoints.at(0).size, sizeof(sockaddr_un));
    const auto beyond = ParseTarget(scheme + std::string(108, 'a'));
    EXPECT_TRUE(absl::IsInvalidArgument(beyond.status())) << scheme;
  }
}

}  // namespace
}  // namespace fncache::http2
