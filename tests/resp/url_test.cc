// SPDX-License-Identifier: Apache-2.0
#include "resp/url.h"

#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace fncache::resp {
namespace {

TEST(UrlTest, EndpointsAreRead) {
  const auto plain = ParseUrl("redis://cache.example:6379");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->host, "cache.example");
  EXPECT_EQ(plain->port, 6379);
  EXPECT_FALSE(plain->tls);
  EXPECT_EQ(plain->unix_path, "");
  const auto tls = ParseUrl("rediss://[::1]:1");
  ASSERT_TRUE(tls.ok());
  EXPECT_EQ(tls->host, "::1");
  EXPECT_EQ(tls->port, 1);
  EXPECT_TRUE(tls->tls);
  const auto socket = ParseUrl("unix:/run/a@b/c:d");
  ASSERT_TRUE(socket.ok());
  EXPECT_EQ(socket->unix_path, "/run/a@b/c:d");
}

TEST(UrlTest, OthersAreRefused) {
  for (const char* url : {"",
                          "redis",
                          "http://a:1",
                          "redis://",
                          "redis://a",
                          "redis://a:",
                          "redis://:1",
                          "redis://a:0",
                          "redis://a:65536",
                          "redis://a:-1",
                          "redis://a:1/",
                          "redis://a:1/0",
                          "redis://a:1?x=1",
                          "redis://a:1#x",
                          "redis://::1:6379",
                          "redis://[::1]",
                          "redis://[::1",
                          "redis://[]:1",
                          "redis://a:x",
                          "unix:",
                          "REDIS://a:1",
                          " redis://a:1"}) {
    EXPECT_FALSE(ParseUrl(url).ok()) << url;
  }
}

TEST(UrlTest, AUserOrPasswordIsNotRepeated) {
  for (const char* url : {"redis://user:geheim@a:1", "redis://:geheim@a:1",
                          "rediss://geheim@a:1/0"}) {
    const auto endpoint = ParseUrl(url);
    ASSERT_FALSE(endpoint.ok());
    EXPECT_FALSE(absl::StrContains(endpoint.status().message(), "geheim"));
    EXPECT_TRUE(absl::StrContains(endpoint.status().message(), "password"));
  }
}

}  // namespace
}  // namespace fncache::resp
