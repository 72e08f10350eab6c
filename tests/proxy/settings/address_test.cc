#include "proxy/settings/address.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fncache::proxy::settings {
namespace {

using ::testing::HasSubstr;

TEST(AddressTest, TakesNamesAndLiteralAddresses) {
  for (const char* text :
       {"0.0.0.0:9443", "127.0.0.1:0", "localhost:1", "[::]:65535", "[::1]:80",
        "[fe80::1]:80", "[::ffff:1.2.3.4]:80", "a-b.c_d.example:443", "h:00080",
        "1.2.3.4.example:1"}) {
    EXPECT_TRUE(CheckAddress(text).ok()) << CheckAddress(text);
  }
}

TEST(AddressTest, RefusesWhatHasNoPort) {
  for (const char* text :
       {"", "localhost", "localhost:", "localhost:http", "localhost:-1",
        "localhost:+1", "localhost:65536", "localhost:100000", "localhost:1 ",
        "localhost: 1", "localhost:0x50", "[::1]", "9443"}) {
    const absl::Status status = CheckAddress(text);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(status.message(), HasSubstr("no port")) << text;
  }
}

TEST(AddressTest, RefusesWhatHasNoHost) {
  for (const char* text :
       {":9443", "[]:9443", "::1:9443", "[1.2.3.4]:80", "[h]:80", "[::1:80",
        "::1]:80", "1.2.3:80", "1.2.3.256:80", "999:80", "a b:80", "a/b:80",
        "http://a:80", "a\n:80", "[fe80::1%eth0]:80"}) {
    const absl::Status status = CheckAddress(text);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(status.message(), HasSubstr("no host")) << text;
  }
  EXPECT_FALSE(CheckAddress(std::string(254, 'a') + ":80").ok());
  EXPECT_FALSE(CheckAddress(absl::string_view("a\0b:80", 6)).ok());
}

TEST(AddressTest, ReasonsAreOneShortLine) {
  const absl::Status status = CheckAddress("a\nb" + std::string(5000, '\xff'));
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
  EXPECT_LT(status.message().size(), 600u);
}

TEST(AddressTest, CollideOnTheSamePortOfTheSameOrEveryHost) {
  const struct {
    const char* a;
    const char* b;
    bool collide;
  } kCases[] = {
      {"h:1", "h:1", true},
      {"h:1", "H:01", true},
      {"h:1", "h:2", false},
      {"h:1", "g:1", false},
      {"h:0", "h:0", false},
      {"0.0.0.0:0", "h:0", false},
      {"0.0.0.0:1", "h:1", true},
      {"0.0.0.0:1", "[::1]:1", true},
      {"[::]:1", "127.0.0.1:1", true},
      {"[0:0:0:0:0:0:0:0]:1", "127.0.0.1:1", true},
      {"[::1]:1", "127.0.0.1:1", false},
      {"[::1]:1", "[0::1]:1", true},
      {"0.0.0.0:1", "h:2", false},
  };
  for (const auto& test : kCases) {
    EXPECT_EQ(AddressesCollide(test.a, test.b), test.collide)
        << test.a << " " << test.b;
    EXPECT_EQ(AddressesCollide(test.b, test.a), test.collide)
        << test.b << " " << test.a;
  }
}

}  // namespace
}  // namespace fncache::proxy::settings
